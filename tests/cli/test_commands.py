"""The commands that need no Spark, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

SCHEMAS = Path(__file__).parents[2] / "docs" / "json"


def test_plan_groups_by_reason_and_ends_with_counts(sqb, shop: Path) -> None:
    result = sqb("plan", cwd=shop)
    assert result.code == 0
    assert result.out.splitlines()[:-1] == [
        "First run (4)",
        "  raw_orders  seed",
        "  stg_orders  view",
        "  fct_orders  table",
        "  mart        table",
        "",
    ]
    assert result.out.splitlines()[-1].startswith("4 to run (")
    assert result.err == ""


def test_plan_json_has_the_fields_of_the_contract(sqb, shop: Path) -> None:
    plan = sqb("plan", "--json", cwd=shop).json("plan")
    assert plan["summary"] == {
        "selected": 4,
        "run": 4,
        "maybe": 0,
        "reuse": 0,
        "current": 0,
        "blocked": 0,
    }
    assert [node["name"] for node in plan["nodes"]] == [
        "raw_orders",
        "stg_orders",
        "fct_orders",
        "mart",
    ]
    assert {node["reason"] for node in plan["nodes"]} == {"first_run"}
    assert plan["virtual_env"] is None


@pytest.mark.parametrize(
    ("arguments", "code"), [([], 0), (["--fail-on", "run"], 1), (["--fail-on", "blocked"], 0)]
)
def test_plan_fails_only_on_what_it_was_told(
    sqb, shop: Path, arguments: list[str], code: int
) -> None:
    assert sqb("plan", *arguments, cwd=shop).code == code


def test_quiet_plan_is_its_last_line(sqb, shop: Path) -> None:
    assert len(sqb("plan", "-q", cwd=shop).out.splitlines()) == 1


def test_a_plan_of_an_empty_project_says_so(sqb, tmp_path: Path) -> None:
    (tmp_path / "sqlbuild_project.toml").write_text("")
    result = sqb("plan", cwd=tmp_path)
    assert result.code == 0
    assert result.out.startswith("Nothing to do: ")
    built = sqb("build", "--json", cwd=tmp_path)
    assert built.json("build")["summary"]["run_id"] is None


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ([], ["raw_orders", "stg_orders", "fct_orders", "mart"]),
        (["-s", "tag:daily"], ["stg_orders"]),
        (["-s", "mart", "-s", "seed:*"], ["raw_orders", "mart"]),
        (["-s", "stg_orders+", "--exclude", "mart"], ["stg_orders", "fct_orders"]),
    ],
)
def test_ls_lists_the_selection_parents_first(
    sqb, shop: Path, arguments: list[str], names: list[str]
) -> None:
    found = sqb("ls", "--json", *arguments, cwd=shop).json("ls")
    assert [node["name"] for node in found["nodes"]] == names
    assert sqb("ls", "-q", *arguments, cwd=shop).out.split() == names


def test_ls_as_text_has_type_and_path(sqb, shop: Path) -> None:
    assert sqb("ls", "-s", "stg_orders", cwd=shop).out == (
        "stg_orders  model  models/staging/stg_orders.sql\n"
    )


def test_compile_writes_sql_with_full_names_and_a_manifest(sqb, shop: Path) -> None:
    stale = shop / ".sqb/compiled/gone.sql"
    stale.parent.mkdir(parents=True)
    stale.write_text("")
    result = sqb("compile", cwd=shop)
    assert result.code == 0
    assert result.out.startswith("Compiled 3 models, 1 seed, 0 sources")
    assert (shop / ".sqb/compiled/fct_orders.sql").read_text() == (
        "SELECT id, amount * 2 AS amount\nFROM `lake`.`dev`.`stg_orders`\n"
    )
    assert not stale.exists()
    manifest = json.loads((shop / ".sqb/manifest.json").read_text())
    rules = json.loads((SCHEMAS / "manifest.schema.json").read_text())
    jsonschema.Draft202012Validator(rules).validate(manifest)
    by_name = {node["name"]: node for node in manifest["nodes"]}
    assert by_name["mart"]["depends_on"] == ["fct_orders"]


def test_compile_of_a_selection_leaves_the_rest(sqb, shop: Path) -> None:
    sqb("compile", cwd=shop)
    found = sqb("compile", "--json", "-s", "mart", cwd=shop).json("compile")
    assert found["written"] == [".sqb/compiled/mart.sql"]
    assert (shop / ".sqb/compiled/fct_orders.sql").exists()


def test_lineage_is_a_tree_that_shows_nothing_twice(sqb, shop: Path) -> None:
    (shop / "models/both.sql").write_text(
        "SELECT 1 AS x FROM fct_orders JOIN stg_orders USING (id)"
    )
    result = sqb("lineage", "both", "--direction", "upstream", cwd=shop)
    assert result.out.splitlines() == [
        "both model, upstream:",
        "├── fct_orders",
        "│   └── stg_orders",
        "│       └── raw_orders  seed",
        "└── stg_orders  (shown above)",
    ]


def test_lineage_respects_direction_and_depth(sqb, shop: Path) -> None:
    found = sqb("lineage", "stg_orders", "--json", "--depth", "1", cwd=shop).json("lineage")
    assert [node["name"] for node in found["nodes"]] == ["raw_orders", "stg_orders", "fct_orders"]
    assert found["edges"] == [
        {"from": "raw_orders", "to": "stg_orders"},
        {"from": "stg_orders", "to": "fct_orders"},
    ]
    below = sqb("lineage", "mart", "--direction", "downstream", cwd=shop)
    assert below.out.splitlines()[-1] == "└── nothing"


def test_init_gives_a_project_that_plans_at_once(sqb, tmp_path: Path) -> None:
    made = sqb("init", "shop", "--json", cwd=tmp_path).json("init")
    assert ".gitignore" in made["written"]
    assert (tmp_path / "shop/.gitignore").read_text().split() == [
        "lake/",
        ".sqb/",
        "sqlbuild_local.toml",
    ]
    plan = sqb("plan", "--json", cwd=tmp_path / "shop").json("plan")
    assert plan["summary"]["run"] == 3
    assert {node["materialized"] for node in plan["nodes"]} == {"seed", "view", "table"}


def test_init_refuses_what_is_there_and_writes_nothing(sqb, shop: Path, tmp_path: Path) -> None:
    before = sorted(shop.rglob("*"))
    assert sqb("init", cwd=shop).err.startswith("error[C009]: ")
    assert sorted(shop.rglob("*")) == before
    other = tmp_path / "other"
    (other / "models").mkdir(parents=True)
    (other / "models/stg_orders.sql").write_text("mine")
    assert sqb("init", str(other)).code == 2
    assert not (other / "sqlbuild_project.toml").exists()
    (tmp_path / "file").write_text("")
    assert "is a file" in sqb("init", "file", cwd=tmp_path).err


def test_init_adds_to_a_gitignore(sqb, tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.pyc\nlake/")
    sqb("init", cwd=tmp_path)
    assert (tmp_path / ".gitignore").read_text().split() == [
        "*.pyc",
        "lake/",
        ".sqb/",
        "sqlbuild_local.toml",
    ]


def test_clean_asks_and_needs_yes_without_a_terminal(sqb, shop: Path) -> None:
    sqb("compile", cwd=shop)
    refused = sqb("clean", "--json", cwd=shop)
    assert refused.code == 2
    assert refused.json("error")["error"]["code"] == "C010"
    assert (shop / ".sqb/manifest.json").exists()
    removed = sqb("clean", "--yes", "--json", cwd=shop).json("clean")["removed"]
    assert ".sqb/manifest.json" in removed
    assert not (shop / ".sqb").exists()
    assert sqb("clean", cwd=shop).out == "Nothing to remove\n"


def test_clean_keeps_the_state_of_virtual_environments(sqb, shop: Path) -> None:
    sqb("compile", cwd=shop)
    (shop / ".sqb/state.duckdb").write_text("precious")
    sqb("clean", "--yes", cwd=shop)
    left = sorted(path.name for path in (shop / ".sqb").iterdir())
    assert left == [".gitignore", "state.duckdb"]


def test_history_of_an_empty_lake_is_empty(sqb, shop: Path) -> None:
    assert sqb("history", cwd=shop).out == "Nothing was built yet\n"
    assert sqb("history", "--json", cwd=shop).json("history")["runs"] == []
    assert "was not built yet" in sqb("history", "mart", cwd=shop).out
    assert sqb("history", "mrt", cwd=shop).code == 2


def test_debug_tells_what_is_there(sqb, shop: Path) -> None:
    found = sqb("debug", "--json", cwd=shop).json("debug")
    by_name = {check["name"]: check for check in found["checks"]}
    assert by_name["compile"]["detail"] == "3 models, 1 seed, 0 sources"
    assert by_name["relations"] == {"name": "relations", "ok": True, "detail": "none yet"}
    assert by_name["project"]["ok"]


def test_debug_without_a_project_is_exit_1(sqb, tmp_path: Path) -> None:
    result = sqb("debug", "--json", cwd=tmp_path)
    assert result.code == 1
    assert not result.json("debug")["ok"]


def test_seed_without_seeds_is_an_error(sqb, shop: Path) -> None:
    assert "holds no seed" in sqb("seed", "-s", "mart", cwd=shop).err
    (shop / "seeds/raw_orders.csv").unlink()
    (shop / "models/staging/stg_orders.sql").write_text("SELECT 1 AS id, 2 AS amount")
    assert "no seeds" in sqb("seed", cwd=shop).err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(sqb, shell: str) -> None:
    assert "_SQB_COMPLETE" in sqb("completion", shell).out
    assert sqb("completion", shell, "--json").json("completion")["shell"] == shell


SECRETS = """
[catalog.properties]
token = "tok-123456"
[targets.dev.state]
connection = "postgresql://me:hunter22@db/x"
[vars]
api_key = "'abcd-efgh'"
"""


@pytest.mark.parametrize("arguments", [["explain", "leak"], ["explain", "leak", "--json"]])
def test_secrets_do_not_reach_the_terminal(sqb, shop: Path, arguments: list[str]) -> None:
    (shop / "sqlbuild_project.toml").write_text(SECRETS)
    (shop / "models/leak.sql").write_text(
        "SELECT 'tok-123456' AS a, @@api_key AS b, 'x://me:hunter22@db' AS c"
    )
    log = shop / "sqb.log"
    shown = sqb(*arguments, "--log-file", str(log), cwd=shop)
    assert shown.code == 0
    sqb("compile", cwd=shop)
    for text in (shown.out, (shop / ".sqb/compiled/leak.sql").read_text()):
        assert "***" in text
        assert not any(word in text for word in ("tok-123456", "hunter22", "abcd-efgh"))
    assert "tok-123456" not in log.read_text()
