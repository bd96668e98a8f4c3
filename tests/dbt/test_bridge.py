"""A real dbt project on a real Spark, through plans and builds: what is handed to dbt, and why.

One project lives through the tests of this module, in their order: a build takes a minute.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dbt_lives import Life, blocked, checks, ended, idle, runs
from dbt_shop import visit

pytestmark = pytest.mark.dbt_long

ALL = {
    *("currencies", "stg_customers", "stg_orders", "stg_payments", "stg_visits"),
    *("fct_orders", "dim_customers", "fct_visits", "visits_by_customer"),
    *("customers_history", "raw_customers", "raw_orders", "raw_payments"),
}
BELOW_PAYMENTS = {"stg_payments", "fct_orders", "dim_customers", "visits_by_customer"}
BELOW_VISITS = {"stg_visits", "fct_visits", "visits_by_customer"}


@pytest.fixture(scope="module")
def life(iceberg_life: Life) -> Life:
    """The project, built once."""
    found = iceberg_life
    plan = found.plan()
    assert runs(plan) == dict.fromkeys(ALL, "first_run")
    assert "asking dbt what the project holds…" in plan.said
    result = found.build()
    assert (result.code, result.dbt_code) == (0, 0), result.said
    assert ended(result) == dict.fromkeys(ALL, "success")
    assert found.shop.changed() == []
    return found


def settled(life: Life) -> None:
    """Nothing is left to do, and nobody has to be asked."""
    result = life.build()
    assert idle(result), result
    assert result.dbt_code is None


def test_a_second_build_starts_nothing(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    settled(life)

    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("a process was started")

    with monkeypatch.context() as patched:
        patched.setattr("sqb.dbt.drive.subprocess.Popen", never)
        for request in ({}, {"command": "run"}):
            with life.open(**request) as project:
                assert project.plan().work == ()


def test_the_state_rows_of_a_build(life: Life) -> None:
    rows = life.state()
    assert {row["node_type"] for row in rows} == {"dbt"}
    names = {row["node_name"] for row in rows}
    assert {n.rpartition(".")[2] for n in names if not n.startswith(("test", "unit"))} == ALL
    assert sum(n.startswith("test.") for n in names) == 18
    assert sum(n.startswith("unit_test.") for n in names) == 1
    manifest = json.loads((life.shop.root / "target" / "manifest.json").read_text())
    for row in rows:
        node = manifest["nodes"].get(row["node_name"])
        if node is not None and node["resource_type"] in {"model", "seed"}:
            assert row["definition_hash"] == node["checksum"]["checksum"]
            assert (row["target_schema"], row["target_name"]) == (node["schema"], node["alias"])
    assert [row["source_name"] for row in life.state("_sqlbuild_source_freshness")] == [
        "source.shop.app.visits"
    ]


#: What a checksum misses: an edit, and what runs because of it.
EDITS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "a macro two levels down": (
        {"file": "macros/cents.sql", "old": "decimal(12", "new": "decimal(14"},
        {"stg_payments": "macro rounded"},
    ),
    "a macro of a package": (
        {"file": "dbt_packages/money/macros/digits.sql", "old": "2", "new": "3"},
        {"stg_payments": "macro money.digits", "currencies": "macro money.digits"},
    ),
    "the default of a variable": (
        {"file": "dbt_project.yml", "old": "2026-01-01", "new": "2026-01-02"},
        {"stg_orders": "var start_date"},
    ),
    "a variable of the call": (
        {"words": ("--vars", "{vip_from: 5}")},
        {"dim_customers": "var vip_from"},
    ),
    "a variable of a package": (
        {"file": "dbt_project.yml", "old": "currency: EUR", "new": "currency: CHF"},
        {"currencies": "var currency"},
    ),
    "the environment in a body": (
        {"environ": {"SHOP_REGION": "south"}},
        {"fct_orders": "env SHOP_REGION"},
    ),
    "an alias by a macro": (
        {
            "file": "macros/alias.sql",
            "text": "{% macro generate_alias_name(custom_alias_name=none, node=none) -%}\n"
            "{{ 'x_' ~ node.name if node.name == 'fct_visits' else node.name }}\n"
            "{%- endmacro %}\n",
        },
        {"fct_visits": "relation_missing", "visits_by_customer": "ref fct_visits"},
    ),
    "a setting of a model": (
        {
            "file": "models/marts/marts.yml",
            "old": "  - name: fct_visits\n",
            "new": "  - name: fct_visits\n    config: {tblproperties: {owner: web}}\n",
        },
        {"fct_visits": "config tblproperties"},
    ),
    "a tag": (
        {
            "file": "models/marts/marts.yml",
            "old": "  - name: fct_visits\n",
            "new": "  - name: fct_visits\n    config: {tags: [web]}\n",
        },
        {},
    ),
    "the version of a package": (
        {"file": "dbt_packages/money/dbt_project.yml", "old": "1.0.0", "new": "1.0.1"},
        {},
    ),
    "the table of a source": (
        {"words": ("--vars", "{visits_table: others}")},
        {"stg_visits": "source app.visits"},
    ),
    "a text": (
        {"file": "models/marts/dim_customers.sql", "old": "c.city,", "new": "c.city, 1 as one,"},
        {"dim_customers": "checksum_changed"},
    ),
    "an ephemeral model": (
        {"file": "models/marts/order_totals.sql", "old": "sum(amount)", "new": "max(amount)"},
        {"fct_orders": "ref order_totals"},
    ),
    "a seed": (
        {"file": "seeds/raw_payments.csv", "append": "9,3,card,100\n"},
        {"raw_payments": "checksum_changed"},
    ),
    "a description": (
        {
            "file": "models/marts/marts.yml",
            "old": "  - name: fct_visits\n",
            "new": "  - name: fct_visits\n    description: every visit\n",
        },
        {},
    ),
}
BELOW = {
    "stg_payments": ("fct_orders", "dim_customers", "visits_by_customer"),
    "stg_orders": ("fct_orders", "dim_customers", "visits_by_customer"),
    "fct_orders": ("dim_customers", "visits_by_customer"),
    "dim_customers": ("visits_by_customer",),
    "fct_visits": ("visits_by_customer",),
    "stg_visits": ("fct_visits", "visits_by_customer"),
    "raw_payments": tuple(sorted(BELOW_PAYMENTS)),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_changes(life: Life, edit: str) -> None:
    change, own = EDITS[edit]
    shop = life.shop
    expected = {
        below: "upstream_changed"
        for name in own
        for below in BELOW.get(name, ())
        if below not in own
    }
    path = shop.root / change["file"] if "file" in change else None
    before = path.read_text() if path is not None and path.exists() else None
    environ = dict(shop.environ)
    try:
        if path is not None:
            if "text" in change:
                path.write_text(change["text"])
            elif "append" in change:
                path.write_text((before or "") + change["append"])
            else:
                assert before is not None
                assert change["old"] in before
                path.write_text(before.replace(change["old"], change["new"]))
        shop.environ |= change.get("environ", {})
        plan = life.plan(*change.get("words", ()))
        assert runs(plan) == {**expected, **own}
    finally:
        shop.environ = environ
        if path is not None and before is not None:
            path.write_text(before)
        elif path is not None:
            path.unlink()
    # back where it was: dbt need not be asked
    assert idle(life.plan())


def test_another_schema_of_a_source_and_of_the_profile(life: Life) -> None:
    life.shop.environ["SHOP_SOURCE_SCHEMA"] = "elsewhere"
    plan = life.plan()
    del life.shop.environ["SHOP_SOURCE_SCHEMA"]
    assert runs(plan)["stg_visits"] == "source app.visits"
    assert set(runs(plan)) == BELOW_VISITS
    assert runs(life.plan("--target", "prod")) == dict.fromkeys(ALL, "first_run")
    # its schema comes from the environment: nothing is recorded there
    life.shop.environ["SHOP_SCHEMA"] = "prod_two"
    assert runs(life.plan("--target", "prod")) == dict.fromkeys(ALL, "first_run")
    del life.shop.environ["SHOP_SCHEMA"]
    settled(life)


def test_a_failed_model_is_tried_again_and_what_succeeded_is_not(life: Life) -> None:
    shop = life.shop
    good = (shop.root / "models/marts/dim_customers.sql").read_text()
    shop.write("models/marts/dim_customers.sql", good.replace("c.name", "upper(c.name) as name", 1))
    shop.replace("models/marts/dim_customers.sql", "c.city,", "c.cty,")
    shop.replace("models/staging/stg_payments.sql", "order_id,", "order_id + 0 as order_id,")
    result = life.build()
    assert result.dbt_code == 1, result.said
    assert ended(result) == {
        "stg_payments": "success",
        "fct_orders": "success",
        "dim_customers": "failed",
        "visits_by_customer": "blocked",
    }
    assert result.code == 1
    assert result.node("dim_customers")["error"]["code"] == "B012"
    plan = life.plan()
    assert runs(plan) == {
        "dim_customers": "checksum_changed",
        "visits_by_customer": "upstream_changed",
    }
    shop.replace("models/marts/dim_customers.sql", "c.cty,", "c.city,")
    assert ended(life.build()) == {"dim_customers": "success", "visits_by_customer": "success"}
    settled(life)


def test_a_failing_test_stays_owed_and_holds_back_what_is_below(life: Life) -> None:
    shop = life.shop
    shop.replace("tests/no_negative_amounts.sql", "amount < 0", "amount >= 0")
    plan = life.plan()
    assert (runs(plan), checks(plan)) == ({}, ["no_negative_amounts"])
    result = life.build()
    assert result.dbt_code == 1, result.said
    # never green by itself
    again = life.build()
    assert (again.code, checks(again)) == (1, ["no_negative_amounts"])
    # what is below must not be built on it, not even where the test is not selected
    shop.replace("models/marts/dim_customers.sql", "as is_vip", "as is_vip, 2 as two")
    scoped = life.plan("--select", "dim_customers")
    assert blocked(scoped) == {"dim_customers": "upstream_test_failed"}
    shop.replace("tests/no_negative_amounts.sql", "amount >= 0", "amount < 0")
    result = life.build()
    assert ended(result) == {"dim_customers": "success", "visits_by_customer": "success"}
    assert "no_negative_amounts" in checks(result)
    settled(life)


def test_run_leaves_the_tests_to_the_next_build(life: Life) -> None:
    life.shop.replace("models/staging/stg_orders.sql", "status\n", "lower(status) as status\n")
    result = life.sqb("dbt", "run")
    assert set(ended(result)) == {
        "stg_orders",
        "fct_orders",
        "dim_customers",
        "visits_by_customer",
    }
    assert checks(result) == []
    plan = life.plan()
    assert runs(plan) == {}
    assert "unique_stg_orders_order_id" in checks(plan)
    result = life.build()
    assert result.dbt_code == 0, result.said
    settled(life)


def test_new_rows_of_a_source(life: Life) -> None:
    life.visits(visit(3))
    plan = life.plan()
    assert runs(plan) == dict.fromkeys(BELOW_VISITS, "source_freshness_changed")
    assert runs(life.plan("--select", "fct_orders+")) == {}
    before = len(life.state("_sqlbuild_source_freshness"))
    assert ended(life.build()) == dict.fromkeys(BELOW_VISITS, "success")
    assert len(life.state("_sqlbuild_source_freshness")) == before + 1
    assert life.sql("select count(*) from shop.fct_visits") == [["3"]]
    settled(life)


def test_a_source_that_is_too_old_blocks_what_is_below(life: Life) -> None:
    now = datetime.now(timezone.utc)
    life.shop.environ["SQB_NOW"] = (now + timedelta(days=40)).isoformat()
    try:
        plan = life.plan()
        assert blocked(plan) == dict.fromkeys(BELOW_VISITS, "source_freshness_error")
        life.visits(visit(4, at=now + timedelta(days=39)))
        plan = life.plan()
        assert runs(plan) == dict.fromkeys(BELOW_VISITS, "source_freshness_changed")
    finally:
        del life.shop.environ["SQB_NOW"]
    assert ended(life.build()) == dict.fromkeys(BELOW_VISITS, "success")


def test_a_scoped_run_hides_nothing(life: Life) -> None:
    shop = life.shop
    shop.replace("models/staging/stg_payments.sql", "order_id + 0", "order_id * 1")
    result = life.build("--select", "stg_payments")
    assert ended(result) == {"stg_payments": "success"}
    plan = life.plan("--select", "dim_customers")
    assert any(w["node"] == "model.shop.dim_customers" for w in plan.document["warnings"])
    assert set(runs(life.plan())) == BELOW_PAYMENTS - {"stg_payments"}
    assert set(ended(life.build())) == BELOW_PAYMENTS - {"stg_payments"}
    settled(life)


def test_relations_that_others_dropped_or_wrote(life: Life) -> None:
    life.sql("drop table shop.visits_by_customer")
    life.sql("insert into shop.fct_orders select 99, 1, date '2026-02-01', 'open', 0, 'x'")
    plan = life.plan()
    assert runs(plan) == {
        "fct_orders": "relation_changed",
        "dim_customers": "upstream_changed",
        "visits_by_customer": "relation_missing",
    }
    assert set(ended(life.build())) == {"fct_orders", "dim_customers", "visits_by_customer"}
    assert life.sql("select count(*) from shop.fct_orders where order_id = 99") == [["0"]]
    settled(life)


def test_full_refresh_and_replay(life: Life) -> None:
    plan = life.plan("--full-refresh", "--select", "fct_visits")
    assert runs(plan) == {"fct_visits": "full_refresh"}
    assert plan.document["dbt"]["full_refresh"]
    shop = life.shop
    shop.replace("models/marts/fct_visits.sql", "page,", "lower(page) as page,")
    forward = life.plan()
    assert not forward.document["dbt"]["full_refresh"]
    assert forward.node("fct_visits")["replay"]["kind"] == "forward"
    toml = shop.root / "sqlbuild_project.toml"
    toml.write_text('name = "shop"\n[dbt]\nreplay_on_change = "full"\n')
    try:
        full = life.plan()
        assert full.document["dbt"]["full_refresh"]
        assert full.node("fct_visits")["replay"]["kind"] == "full"
        result = life.build()
        assert result.dbt_code == 0, result.said
    finally:
        toml.unlink()
    settled(life)


def test_a_view_that_becomes_a_table(life: Life) -> None:
    shop = life.shop
    shop.write(
        "models/staging/stg_customers.sql",
        "{{ config(materialized='table') }}\n"
        "select id as customer_id, name, city, updated_at\nfrom {{ ref('raw_customers') }}\n",
    )
    plan = life.plan()
    assert blocked(plan)["stg_customers"] == "view_in_the_way"
    assert "DROP VIEW" in plan.node("stg_customers")["detail"]["name"].upper()
    toml = shop.root / "sqlbuild_project.toml"
    toml.write_text('name = "shop"\n[dbt]\nreplace_views = true\n')
    try:
        result = life.build()
        assert result.dbt_code == 0, result.said
        assert ended(result)["stg_customers"] == "success"
    finally:
        toml.unlink()
    settled(life)


def test_the_plain_rule_and_the_one_without_formatting(life: Life) -> None:
    shop = life.shop
    toml = shop.root / "sqlbuild_project.toml"
    macro = (shop.root / "macros/cents.sql").read_text()
    text = (shop.root / "models/marts/fct_orders.sql").read_text()
    try:
        toml.write_text('name = "shop"\n[dbt]\nidentity = "checksum"\n')
        shop.write("macros/cents.sql", macro.replace("decimal(12", "decimal(13"))
        assert runs(life.plan()) == {}
        toml.write_text('name = "shop"\n[dbt]\nidentity = "normalised"\n')
        assert runs(life.plan())["stg_payments"] == "macro rounded"
        shop.write("macros/cents.sql", macro)
        shop.write("models/marts/fct_orders.sql", f"-- a remark\n{text.replace(', o.', ',  o.')}")
        assert runs(life.plan()) == {}
        toml.unlink()
        assert runs(life.plan())["fct_orders"] == "checksum_changed"
    finally:
        toml.unlink(missing_ok=True)
        shop.write("macros/cents.sql", macro)
        shop.write("models/marts/fct_orders.sql", text)
    assert idle(life.plan())


def test_explain(life: Life) -> None:
    life.shop.replace("macros/cents.sql", "decimal(12", "decimal(15")
    try:
        found = life.sqb("dbt", "explain", "stg_payments").document
        assert found["changed"] == [{"kind": "macro", "name": "rounded"}]
        assert found["downstream"] == ["model.shop.fct_orders"]
        wrong = life.sqb("dbt", "explain", "stg_paymets")
        assert wrong.error["help"] == "did you mean `stg_payments`?"
    finally:
        life.shop.replace("macros/cents.sql", "decimal(15", "decimal(12")


def test_the_users_own_artifacts_are_written_by_runs_alone(life: Life) -> None:
    target = life.shop.root / "target"
    before = {p: p.stat().st_mtime_ns for p in target.rglob("*") if p.is_file()}
    life.shop.replace("macros/cents.sql", "decimal(12", "decimal(16")
    life.plan("--select", "tag:staging")
    life.shop.replace("macros/cents.sql", "decimal(16", "decimal(12")
    assert {p: p.stat().st_mtime_ns for p in target.rglob("*") if p.is_file()} == before


def test_a_wrong_selection_or_project_touches_nothing(life: Life) -> None:
    rows = len(life.state())
    assert life.plan("--selector", "unheard_of").error["code"] == "B010"
    assert life.build("--selector", "unheard_of").error["code"] == "B010"
    assert len(life.state()) == rows


@pytest.fixture
def report(life: Life) -> Iterator[Path]:
    """A project of sqb's own around the dbt project, with a table and a view of it."""
    folder = life.shop.root.parent
    (folder / "models").mkdir()
    (folder / "sqlbuild_project.toml").write_text(
        f'name = "report"\n[targets.dev]\nschema = "report"\n'
        f'[catalog]\nuri = "{life.uri}"\nwarehouse = "{life.warehouse}"\n'
        '[dbt]\nproject_dir = "shop"\n'
    )
    (folder / "models" / "vips.sql").write_text(
        'SELECT count(*) AS vips FROM __dbt_ref("shop", "dim_customers") WHERE is_vip\n'
    )
    (folder / "models" / "cities.sql").write_text(
        "MODEL (materialized table);\n"
        'SELECT city, count(*) AS customers FROM __dbt_ref("shop", "stg_orders") o\n'
        'JOIN __dbt_ref("shop", "dim_customers") c ON c.customer_id = o.customer_id\n'
        "GROUP BY city\n"
    )
    (folder / "models" / "above.sql").write_text(
        "MODEL (materialized table);\nSELECT max(customers) AS most FROM cities\n"
    )
    yield folder
    (folder / "sqlbuild_project.toml").unlink()
    shutil.rmtree(folder / "models")


def test_models_of_sqb_on_top(life: Life, report: Path) -> None:
    built = life.build()
    assert built.code == 0, built
    assert ended(built) == dict.fromkeys(("vips", "cities", "above"), "success")
    direct = (
        "select max(n) from (select count(*) as n from shop.stg_orders o join shop.dim_customers c "
        "on c.customer_id = o.customer_id group by city)"
    )
    assert life.sql("select most from report.above") == life.sql(direct)
    again = life.build()
    assert (again.code, ended(again)) == (0, {})
    explained = life.sqb("dbt", "explain", "dim_customers").document
    assert (explained["action"], explained["changed"]) == ("skip", [])
    # a dbt model that runs makes its readers stale; one that fails blocks them
    life.shop.replace("models/staging/stg_orders.sql", "lower(status)", "lowr(status)")
    plan = life.plan("--select", "stg_orders")
    assert plan.node("cities")["reason"] == "upstream_changed"
    failed = life.build("--select", "stg_orders")
    assert failed.code == 1
    assert ended(failed) == {"stg_orders": "failed", "cities": "blocked", "above": "blocked"}
    assert blocked(failed)["cities"] == "external_upstream_failed"
    life.shop.replace("models/staging/stg_orders.sql", "lowr(status)", "upper(lower(status))")
    shutil.rmtree(report / ".sqb", ignore_errors=True)
    scoped = life.build("--select", "stg_orders", "--exclude", "test_type:data")
    assert scoped.code == 0, scoped
    # its rows are others, so the view's readers are rebuilt
    assert ended(scoped)["cities"] in {"success", "unchanged"}
    life.shop.replace("models/staging/stg_orders.sql", "upper(lower(status))", "lower(status)")
    assert life.build().dbt_code == 0
    settled(life)


def test_the_janitor_prunes_the_state_and_nothing_else(life: Life) -> None:
    later = (datetime.now(timezone.utc) + timedelta(days=60)).isoformat()
    before = {row["node_name"]: row["version_hash"] for row in life.state()}
    rows = len(life.state())
    assert rows > len(before)
    life.shop.environ["SQB_NOW"] = later
    try:
        swept = life.sqb("janitor", "--yes")
    finally:
        del life.shop.environ["SQB_NOW"]
    assert swept.code == 0, swept
    assert {entry["relation"] for entry in swept.document["removed"]} <= {
        "shop._sqlbuild_fingerprints",
        "shop._sqlbuild_source_freshness",
    }
    assert {row["node_name"]: row["version_hash"] for row in life.state()} == before
    assert len(life.state()) == len(before)
    settled(life)


def test_ctrl_c_keeps_what_was_done(life: Life) -> None:
    before = {row["run_id"] for row in life.state()}
    done, said = 0, []
    with subprocess.Popen(
        life.command("dbt", "build", "--full-refresh", "--threads", "1"),
        cwd=life.shop.root,
        env=life.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            done += " OK loaded " in line or " OK created " in line
            if done == 3:
                process.send_signal(signal.SIGINT)
                break
        said += process.stdout.readlines()
    assert process.returncode == 130, "".join(said)
    new = {row["node_name"] for row in life.state() if row["run_id"] not in before}
    # dbt may not have noted the very last one
    assert 2 <= len(new - {n for n in new if n.startswith("test.")}) < len(ALL)
    # what dbt had not finished is found, whatever it left
    life.build()
    settled(life)


def test_defer(life: Life, tmp_path: Path) -> None:
    artifacts = tmp_path / "dev"
    artifacts.mkdir()
    shutil.copy(life.shop.root / "target" / "manifest.json", artifacts)
    wish = ("--target", "prod", "--select", "dim_customers")
    assert "model.shop.fct_orders" in life.plan(*wish).error["message"]
    result = life.build(*wish, "--defer", "--state", str(artifacts))
    assert (result.code, ended(result)) == (0, {"dim_customers": "success"}), result.said
    assert life.sql("select count(*) from prod.dim_customers") == [["3"]]
    # in the schema of the target, the other one's rows are untouched
    assert {row["node_name"] for row in life.state(schema="prod")} >= {"model.shop.dim_customers"}
    settled(life)
