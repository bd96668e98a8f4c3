"""The entry point: commands, help, errors and exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import sqb as package
from sqb.cli import main as entry
from sqb.errors import SqbError
from sqb.project.variables import parse_vars

Sqb = Callable[..., "object"]


def test_version(sqb):
    assert sqb("--version").out == f"sqb {package.__version__}\n"


def test_help_names_every_command_and_what_comes_later(sqb):
    result = sqb("--help")
    assert result.code == 0
    for name in (*entry.COMMANDS, *entry.LATER):
        assert name in result.out


@pytest.mark.parametrize(
    "name",
    [
        *(name for name in entry.COMMANDS if name not in ("spark", "dbt")),
        *(f"spark {name}" for name in ("start", "stop", "status", "conf")),
        *(f"dbt {name}" for name in ("plan", "build", "run", "explain")),
    ],
)
def test_every_help_has_an_example_and_fits_the_page(sqb, name: str) -> None:
    result = sqb(*name.split(), "--help")
    assert result.code == 0
    assert "Example:" in result.out
    assert f"sqb {name}" in result.out
    assert "Common options:" in result.out
    assert max(len(line) for line in result.out.splitlines()) <= 80


@pytest.mark.parametrize(
    "name",
    [
        *(n for n in entry.COMMANDS if n not in ("spark", "dbt")),
        *("spark start", "spark conf", "dbt build", "dbt explain"),
    ],
)
def test_help_shows_no_option_that_the_command_refuses(sqb, name: str, tmp_path) -> None:
    shown = "--select" in sqb(*name.split(), "--help").out
    words = {"query": ["SELECT 1"], "playground": ["x"], "completion": ["bash"]}
    words |= {"explain": ["x"], "lineage": ["x"], "dbt explain": ["x"]}
    told = sqb(*name.split(), *words.get(name, []), "--select", "x", cwd=tmp_path).err
    assert (f"`sqb {name}` takes no --select" in told) is not shown


def test_a_selection_in_the_environment_is_for_commands_that_select(
    sqb, shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQB_SELECT", "mart")
    assert sqb("ls", "-q", cwd=shop).out == "mart\n"
    assert sqb("lineage", "mart", cwd=shop).code == 0


@pytest.mark.parametrize("name", list(entry.COMMANDS))
def test_the_list_of_commands_says_what_their_help_says(name: str) -> None:
    command = entry.cli.get_command(click.Context(entry.cli), name)
    assert command is not None
    first = entry.COMMANDS[name].rstrip(".").split(",")[0].split(" and ")[0].split(" in ")[0]
    assert (command.help or "").startswith(first.split(":")[0][:12])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["run"], "C008", "did you mean `build --no-tests --no-audits`?"),
        (["run", "-s", "x"], "C008", "did you mean `build --no-tests --no-audits`?"),
        (["buidl"], "C008", "did you mean `build`?"),
        (["zzz"], "C008", "sqb --help"),
        (["dbt", "plan", "--target", "x"], "B001", "there is no dbt_project.yml"),
        (["dbt", "build", "--fail-fast"], "C008", "come after `--`"),
        (["verify", "fct_order"], "S001", "did you mean `fct_orders`?"),
        (["clone", "--help"], "C011", "arrives in release 0.5"),
        (["freshness", "--fail-on-stale"], "C008", "--fail-on-stale needs --state"),
        (["state", "locks"], "C011", "arrives in release 0.5"),
        (["plan", "--targt", "x"], "C008", "did you mean `--target`?"),
        (["--target", "x", "plan"], "C008", "options come after the command"),
        (["plan", "--fail-on", "x"], "C008", "fail-on"),
        (["build", "--concurrency", "0"], "C008", "concurrency"),
        (["plan", "--refresh", "row"], "C008", "refresh"),
        (["plan", "--virtual-env", "x"], "C011", "release 0.5"),
        (["build", "--defer-to", "prod"], "C011", "release 0.5"),
        (["plan", "--include-stale-upstreams"], "C011", "release 0.5"),
        (["explain"], "C008", "missing argument"),
        (["plan", "--vars", "[1]"], "C008", "--vars"),
        (["plan", "--select", "nope"], "S001", "matched nothing"),
        (["plan", "--target", "nope"], "C006", "nope"),
        (["plan", "--project-dir", "nope"], "C001", "does not exist"),
        (["explain", "fct_order"], "S001", "did you mean `fct_orders`?"),
        (["lineage", "fct_order"], "S001", "did you mean `fct_orders`?"),
        (["ls", "--log-file", "models"], "C008", "can't be written"),
        (["clean", "--select", "x"], "C008", "--select"),
        (["query", " ; "], "C008", "empty"),
    ],
)
def test_a_wrong_call_is_exit_2_with_code_and_help(
    sqb, shop: Path, arguments: list[str], code: str, words: str
) -> None:
    result = sqb(*arguments, cwd=shop)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error[{code}]: ")
    assert words in result.err
    as_json = sqb(arguments[0], *arguments[1:], "--json", cwd=shop)
    if "--help" not in arguments:
        assert as_json.code == 2
        assert as_json.json("error")["error"]["code"] == code
        assert as_json.err == ""


def test_an_error_shows_the_line_it_speaks_of(sqb, shop: Path) -> None:
    (shop / "models/fct_orders.sql").write_text("SELECT id\nFROM stg_order\n")
    result = sqb("plan", cwd=shop / "models")
    assert result.code == 2
    assert result.err.splitlines() == [
        result.err.splitlines()[0],
        "  --> models/fct_orders.sql:2",
        "   |",
        " 2 | FROM stg_order",
        "   |",
        "help: did you mean `stg_orders`?",
    ]
    assert result.err.startswith("error[P005]: ")


def test_no_project_is_an_error(sqb, tmp_path: Path) -> None:
    result = sqb("build", cwd=tmp_path)
    assert result.code == 2
    assert "error[C001]" in result.err
    assert "sqb init" in result.err


def test_a_bug_shows_no_traceback_without_debug(
    sqb, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("at postgresql://ann:hunter2@host/db")

    monkeypatch.setattr("sqb.api.Project.plan", fail)
    result = sqb("plan", cwd=shop)
    assert result.code == 1
    assert result.err.startswith("error[X004]: unexpected ZeroDivisionError")
    assert "--debug" in result.err
    assert "Traceback" not in result.err
    assert "hunter2" not in result.err
    debugged = sqb("plan", "--debug", cwd=shop)
    assert "Traceback" in debugged.err
    assert "hunter2" not in debugged.err


def test_an_interrupt_is_exit_130(sqb, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("sqb.api.Project.build", stop)
    result = sqb("build", cwd=shop)
    assert result.code == 130
    assert "Traceback" not in result.err


def test_a_reader_that_goes_away_is_no_error(shop: Path) -> None:
    source = Path(package.__file__).parents[1]
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m sqb plan --force | true"],
        cwd=shop,
        env={"PYTHONPATH": str(source), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, {}),
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ("a: 1", {"a": 1}),
        ("{a: x, b: [1]}", {"a": "x", "b": [1]}),
    ],
)
def test_vars_are_json_or_yaml(text: str | None, expected: dict[str, object]) -> None:
    assert parse_vars(text) == expected


@pytest.mark.parametrize("text", ["x", "[1]", "1: 2", "a: [", '"a"'])
def test_vars_that_are_no_mapping_are_refused(text: str) -> None:
    with pytest.raises(SqbError) as caught:
        parse_vars(text)
    assert caught.value.code == "C008"


def test_common_options_can_come_from_the_environment(
    sqb, shop: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SQB_PROJECT_DIR", str(shop))
    monkeypatch.setenv("SQB_SELECT", "stg_orders mart")
    monkeypatch.setenv("SQB_JSON", "1")
    found = sqb("ls", cwd=tmp_path).json("ls")
    assert [node["name"] for node in found["nodes"]] == ["stg_orders", "mart"]
    monkeypatch.setenv("SQB_TARGET", "nope")
    assert sqb("ls", cwd=tmp_path).json("error")["error"]["code"] == "C006"


def test_the_log_file_gets_what_is_printed(sqb, shop: Path, tmp_path: Path) -> None:
    log = tmp_path / "logs" / "sqb.log"
    sqb("plan", "--log-file", str(log), cwd=shop)
    sqb("plan", "--target", "nope", "--log-file", str(log), cwd=shop)
    text = log.read_text()
    assert "First run (4)" in text
    assert "error[C006]" in text


HEAVY = (
    "pyspark",
    "pyiceberg",
    "pyarrow",
    "sqlglot",
    "rich",
    "yaml",
    "jsonschema",
    "urllib.request",
)


@pytest.mark.parametrize("arguments", [["plan"], ["ls"], ["plan", "--json"], ["plan", "-q"]])
def test_a_cached_project_is_planned_without_heavy_imports(
    process, shop: Path, arguments: list[str]
) -> None:
    assert process("plan", cwd=shop).code == 0
    code = (
        "import sys, json\n"
        "from sqb.cli.main import run\n"
        f"run({arguments!r})\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)\n"
    )
    loaded = set(json.loads(process(cwd=shop, python=("-c", code)).err))
    assert loaded.isdisjoint(HEAVY)
