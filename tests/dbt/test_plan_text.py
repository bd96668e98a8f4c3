"""A dbt plan for people and for programs, on plans as values."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from dbt_worlds import COUNTRY, FACT, NOT_NULL, STG, DbtWorld, config, text

from sqb.cli.render.dbt_documents import dbt_plan_document
from sqb.dbt.plan import DbtPlan
from sqb.dbt.plan_text import plan_lines, reason_text
from sqb.planning.plan import Cause, PlannedNode

SCHEMA = Path(__file__).parents[2] / "docs" / "json" / "dbt-plan.schema.json"


def model(
    name: str, action: str = "skip", reason: str = "no_change", **more: object
) -> PlannedNode:
    unique_id = f"model.analytics.{name}"
    return PlannedNode(unique_id, "dbt_model", "table", action, reason, **more)  # type: ignore[arg-type]


def test_everything_current() -> None:
    nodes = (model("dim_customers"), model("fct_orders"), model("dim_products"))
    assert list(plan_lines(DbtPlan("dev", nodes, resources=3))) == [
        "dbt (3 selected resources)",
        "  selected by dbt selector: 3 from dbt selector",
        "  planned models: 0 run, 3 current, 0 blocked",
        "  planned non-model dbt work: 0",
        "  skipped: all planned dbt models are current",
        "",
        "  Model plan",
        "    Current (3)",
        "      model.analytics.dim_customers   no change",
        "      model.analytics.fct_orders      no change",
        "      model.analytics.dim_products    no change",
    ]


def test_a_plan_with_everything_in_it() -> None:
    stg = "model.analytics.stg"
    plan = DbtPlan(
        "dev",
        (
            PlannedNode("seed.analytics.c", "dbt_seed", "seed", "run", "checksum_changed"),
            model("stg", "run", "identity_changed", detail={"kind": "macro", "name": "cents"}),
            model("fct", "run", "upstream_changed", cause=Cause(stg, "identity_changed")),
            model("old"),
            model(
                "late",
                "block",
                "source_freshness_error",
                cause=Cause("source.analytics.raw.x", "source_freshness_error"),
            ),
            model(
                "way", "block", "view_in_the_way", detail={"kind": "view", "name": "DROP VIEW w"}
            ),
        ),
        (
            PlannedNode(
                "test.analytics.t",
                "dbt_test",
                "test",
                "run",
                "test_owed",
                detail={"kind": "test", "name": "failed"},
            ),
        ),
        resources=8,
        selector="--select tag:x",
        full_refresh=True,
        drop_views={stg: "DROP VIEW d.stg"},
    )
    assert list(plan_lines(plan)) == [
        "dbt (8 selected resources)",
        "  selected by dbt selector: 8 from dbt selector (--select tag:x)",
        "  planned models: 2 run, 1 current, 2 blocked",
        "  planned non-model dbt work: 2",
        "  with --full-refresh: incremental models and seeds are rebuilt",
        "",
        "  Model plan",
        "    Run (2)",
        "      model.analytics.stg   macro changed: cents",
        "      model.analytics.fct   upstream changed (model.analytics.stg: macro changed: cents)",
        "    Current (1)",
        "      model.analytics.old   no change",
        "    Blocked (2)",
        "      model.analytics.late   source freshness error (source.analytics.raw.x)",
        "      model.analytics.way    view in the way: DROP VIEW w",
        "",
        "  Non-model plan",
        "    Run (2)",
        "      seed.analytics.c   checksum changed",
        "      test.analytics.t   test owed: failed before",
        "  first: DROP VIEW d.stg",
    ]


def test_nothing_that_can_run_is_not_called_current() -> None:
    plan = DbtPlan("dev", (model("a", "block", "source_freshness_error"), model("b")))
    assert "  skipped: nothing can run, see Blocked" in list(plan_lines(plan))


def test_many_current_models_are_counted() -> None:
    plan = DbtPlan("dev", tuple(model(f"m{i}") for i in range(300)))
    assert len(list(plan_lines(plan))) == 29
    assert list(plan_lines(plan))[-1] == "      … and 280 more, -v shows all"
    assert len(list(plan_lines(plan, verbose=True))) == 308


REASONS = [
    ("first_run", None, "first run"),
    ("full_refresh", None, "full refresh"),
    ("relation_missing", None, "relation missing"),
    ("checksum_changed", None, "checksum changed"),
    ("identity_changed", {"kind": "var", "name": "start_date"}, "var changed: start_date"),
    ("identity_changed", {"kind": "ref", "name": "paid"}, "ref changed: paid"),
    ("identity_changed", None, "identity changed"),
    ("test_owed", {"kind": "test", "name": "new_build"}, "test owed: not run on this build"),
    ("no_change", None, "no change"),
]


@pytest.mark.parametrize(("reason", "detail", "expected"), REASONS)
def test_reasons_are_the_words_of_dbt_users(
    reason: str, detail: dict[str, str] | None, expected: str
) -> None:
    assert reason_text(model("m", "run", reason, detail=detail)) == expected


def test_the_json_of_every_kind_of_plan_fits_its_schema() -> None:
    rules = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    world = DbtWorld()
    plans = [world.build(), world.plan()]
    world.edit(text(FACT, " limit 5", "c2"), config(COUNTRY, partition_by="day"))
    plans.append(world.build(outcomes={NOT_NULL: "fail"}))
    plans += [world.plan(), world.plan(command="run"), world.plan(FACT, full_refresh=True)]
    world.edit(config(STG, materialized="table")).move_source()
    plans.append(world.plan())
    for plan in plans:
        rules.validate(json.loads(json.dumps(dbt_plan_document(plan))))


def test_the_json_names_dbt_nodes_by_their_unique_id() -> None:
    world = DbtWorld()
    world.build()
    world.edit(config(FACT, partition_by="day"))
    found = dbt_plan_document(world.plan(FACT, selector="--select fct_orders"))
    nodes = {node["name"]: node for node in found["nodes"]}
    assert nodes[FACT] | {"strategy": None} == {
        "name": FACT,
        "type": "dbt_model",
        "materialized": "incremental",
        "action": "run",
        "reason": "identity_changed",
        "if_changed": None,
        "cause": None,
        "replay": {"kind": "forward", "duration": None},
        "strategy": None,
        "diff": None,
        "detail": {"kind": "config", "name": "partition_by"},
        "internal": False,
    }
    assert {node["type"] for node in found["nodes"]} == {"dbt_model", "dbt_test"}
    assert nodes[NOT_NULL]["cause"] == {"node": FACT, "reason": "identity_changed"}
    assert found["summary"] == {
        "selected": 5,
        "run": 5,
        "maybe": 0,
        "reuse": 0,
        "current": 0,
        "blocked": 0,
    }
    assert found["dbt"] == {
        "resources": 5,
        "selector": "--select fct_orders",
        "models": {"run": 1, "current": 0, "blocked": 0},
        "non_model_work": 4,
        "full_refresh": False,
        "drop_views": [],
    }


def test_tests_that_only_follow_their_model_are_counted() -> None:
    def test(name: str, action: str, reason: str) -> PlannedNode:
        return PlannedNode(f"test.a.{name}", "dbt_test", "test", action, reason)  # type: ignore[arg-type]

    follow = tuple(test(f"t{i}", "run", "upstream_changed") for i in range(4))
    owed = test("owed", "run", "test_owed")
    plan = DbtPlan("dev", (model("a", "run", "first_run"),), (*follow, owed), resources=6)
    assert list(plan_lines(plan))[-4:] == [
        "  Non-model plan",
        "    Run (5)",
        "      test.a.owed   test owed",
        "      … and 4 tests of what runs, -v shows all",
    ]
    assert sum("test.a.t" in line for line in plan_lines(plan, verbose=True)) == 4


def test_tests_alone_are_counted_without_an_and() -> None:
    follow = tuple(
        PlannedNode(f"test.a.t{i}", "dbt_test", "test", "run", "upstream_changed") for i in range(3)
    )
    plan = DbtPlan("dev", (model("a", "run", "first_run"),), follow, resources=4)
    assert list(plan_lines(plan))[-1] == "      3 tests of what runs, -v shows all"
