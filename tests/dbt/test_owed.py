"""Which tests run, when a test is owed, and what a failed one holds back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from dbt_worlds import (
    COUNTRY,
    CUSTOMERS,
    DAY_US,
    FACT,
    NOT_NULL,
    NOW_US,
    RAW,
    RELATIONSHIP,
    SEED,
    SINGULAR,
    SNAP,
    STG,
    UNIQUE,
    UNIT,
    DbtWorld,
    checked,
    config,
    facts,
    text,
    told,
)
from records import STAMP, of

from sqb.dbt.nodes import DbtNode
from sqb.dbt.owed import barred_below, ground, proof
from sqb.graph.graph import Graph
from sqb.identity.hashes import MODES

ON_FACT = (SINGULAR, NOT_NULL, RELATIONSHIP, UNIQUE)


def on_source(manifest: dict[str, Any]) -> None:
    """A generic test of a source."""
    test = copy.deepcopy(manifest["nodes"][NOT_NULL])
    test |= {"unique_id": "test.little.on_raw", "name": "on_raw", "attached_node": RAW}
    test["depends_on"]["nodes"] = [RAW]
    manifest["nodes"]["test.little.on_raw"] = test


def built(**settings: Any) -> DbtWorld:
    world = DbtWorld(**settings)
    world.build()
    assert world.plan().work == ()
    return world


def test_tests_of_models_that_run_run_and_no_others() -> None:
    world = built()
    world.edit(text(COUNTRY, " limit 5", "c2"))
    plan = world.plan()
    assert checked(plan) == {UNIT: "run upstream_changed"}
    assert plan.work == (COUNTRY, UNIT)


def test_a_test_of_several_nodes_runs_with_any_of_them() -> None:
    world = built()
    world.edit(config(SEED, delimiter=";"))
    assert checked(world.plan(SEED)) == {RELATIONSHIP: "run upstream_changed"}


OWED: list[tuple[str, Callable[[DbtWorld], object], dict[str, str]]] = [
    ("passed on this build", lambda w: w, {}),
    (
        "never run",
        lambda w: [w.rows.pop(name) for name in ON_FACT],
        dict.fromkeys(ON_FACT, "run test_owed never_run"),
    ),
    (
        "another test of that name",
        lambda w: w.edit(config(NOT_NULL, where="id > 0")),
        {NOT_NULL: "run test_owed changed"},
    ),
    (
        "another severity",
        lambda w: w.edit(config(NOT_NULL, severity="warn")),
        {NOT_NULL: "run test_owed changed"},
    ),
]


@pytest.mark.parametrize(
    ("move", "expected"), [case[1:] for case in OWED], ids=[case[0] for case in OWED]
)
def test_a_test_is_owed_until_it_passed_on_what_is_recorded(
    move: Callable[[DbtWorld], object], expected: dict[str, str]
) -> None:
    world = built()
    move(world)
    plan = world.plan()
    assert checked(plan) == expected
    assert told(plan) == {}, "a data test runs without its model"
    world.build()
    assert world.plan().work == ()


@pytest.mark.parametrize("outcome", ["fail", "error"])
def test_a_second_run_never_turns_green_by_itself(outcome: str) -> None:
    world = DbtWorld()
    for _ in range(3):
        plan = world.build(outcomes={NOT_NULL: outcome}, fails=[COUNTRY])
        assert NOT_NULL in plan.work
        assert COUNTRY in plan.work
    plan = world.plan()
    assert checked(plan) == {NOT_NULL: "run test_owed failed", UNIT: "run upstream_changed"}
    assert told(plan) == {COUNTRY: "first_run"}, "dbt holds it back if the test fails again"
    world.build()
    assert world.plan().work == ()


def test_a_warning_is_no_debt() -> None:
    world = DbtWorld()
    world.build(outcomes={RELATIONSHIP: "warn"})
    assert world.plan().work == ()


def test_run_leaves_the_tests_to_build() -> None:
    world = DbtWorld()
    world.build(SEED, SNAP, CUSTOMERS, without=[RELATIONSHIP])
    plan = world.build(command="run")
    assert plan.tests == ()
    assert world.plan(command="run").work == ()
    plan = world.plan()
    assert checked(plan) == {
        **dict.fromkeys(ON_FACT, "run test_owed never_run"),
        UNIT: "run upstream_changed",
    }
    # dbt runs a unit test only together with its model
    assert told(plan) == {COUNTRY: "test_owed <- few_by_country test_owed"}
    world.build()
    assert world.plan().work == ()


class TestHoldingBack:
    """A failed error-level test holds back what is below where dbt does not run it again."""

    def failed(self) -> DbtWorld:
        world = built()
        world.edit(text(FACT, " limit 5", "c2"))
        world.build(outcomes={NOT_NULL: "fail"})
        return world

    def test_dbt_run_builds_nothing_on_it(self) -> None:
        plan = self.failed().plan(command="run")
        assert told(plan) == {
            COUNTRY: "BLOCK upstream_test_failed <- 600c7b2b67 upstream_test_failed"
        }
        assert plan.work == ()

    def test_a_view_in_the_way_elsewhere_is_still_told(self) -> None:
        world = self.failed()
        world.edit(config(CUSTOMERS, materialized="table"))
        found = told(world.plan(command="run"))
        assert found[CUSTOMERS].startswith("BLOCK view_in_the_way")
        assert found[COUNTRY].startswith("BLOCK")

    def test_leaving_the_test_out_builds_nothing_on_it(self) -> None:
        plan = self.failed().plan(without=[NOT_NULL])
        assert told(plan)[COUNTRY].startswith("BLOCK upstream_test_failed")
        assert checked(plan) == {UNIT: "block upstream_test_failed"}

    def test_a_scoped_run_builds_nothing_on_it(self) -> None:
        assert told(self.failed().plan(COUNTRY))[COUNTRY].startswith("BLOCK upstream_test_failed")

    def test_what_is_current_stays_current(self) -> None:
        world = built()
        world.edit(config(NOT_NULL, where="id > 0"))
        world.build(outcomes={NOT_NULL: "fail"})
        assert told(world.plan(command="run")) == {}

    def test_a_new_build_of_the_model_is_not_held_back(self) -> None:
        world = self.failed()
        world.edit(text(FACT, " limit 6", "c3"))
        assert told(world.plan(command="run")) == {
            FACT: "checksum_changed",
            COUNTRY: "upstream_changed <- fct_orders checksum_changed",
        }

    def test_another_test_of_that_name_has_not_failed(self) -> None:
        world = self.failed()
        world.edit(config(NOT_NULL, severity="warn"))
        assert list(told(world.plan(command="run"))) == [COUNTRY]

    def test_a_test_of_several_nodes_guards_only_what_is_below_all(self) -> None:
        graph = Graph({"a": [], "b": ["a"], "c": ["b"], "d": ["a"], "e": [], "f": ["e", "a"]})
        rows = {}
        tests = []
        for name, parents in (("t1", ("a", "b")), ("t2", ("a", "e")), ("t3", ("d",))):
            test = DbtNode(name, name, "test", "p", "", parents=parents, severity="error")
            proof_ = proof(test, lambda parent, _: parent)
            rows[name] = of(STAMP, query="", local="", data=proof_, outcome="fail")
            tests.append(test)
        found = barred_below(tests, rows, lambda parent, _: parent, "full", graph)
        assert {name: cause.node for name, cause in found.items()} == {"c": "t1", "f": "t2"}


class TestUnitTests:
    def test_an_edited_one_runs_its_model(self) -> None:
        world = built()
        world.edit(lambda m: m["unit_tests"][UNIT]["expect"].update(rows=[]))
        plan = world.plan()
        assert told(plan) == {COUNTRY: "test_owed <- few_by_country test_owed"}
        assert checked(plan) == {UNIT: "run upstream_changed"}
        world.build()
        assert world.plan().work == ()

    def test_a_reason_of_the_model_itself_is_told_first(self) -> None:
        world = built()
        world.edit(lambda m: m["unit_tests"][UNIT]["expect"].update(rows=[]))
        world.edit(text(COUNTRY, " limit 5", "c2"))
        assert told(world.plan()) == {COUNTRY: "checksum_changed"}

    def test_new_rows_do_not_make_one_owed(self) -> None:
        world = built()
        world.move_source()
        world.build(command="run")
        plan = world.plan()
        assert UNIT not in checked(plan)
        assert checked(plan) == dict.fromkeys(ON_FACT, "run test_owed new_build")

    def test_one_that_is_selected_alone_is_told(self) -> None:
        world = built()
        world.edit(lambda m: m["unit_tests"][UNIT]["expect"].update(rows=[]))
        plan = world.plan(UNIT)
        assert plan.work == ()
        assert [w.code for w in plan.warnings] == ["B009"]


def test_a_test_of_a_source_is_owed_when_the_source_moved() -> None:
    world = DbtWorld()
    world.edit(on_source)
    world.build()
    assert world.plan().work == ()
    world.move_source()
    assert checked(world.plan())["test.little.on_raw"] == "run test_owed new_build"


def test_tests_of_what_is_blocked_are_blocked() -> None:
    world = built()
    world.loaded_us = NOW_US - 3 * DAY_US
    plan = world.plan()
    assert checked(plan) == {
        **dict.fromkeys(ON_FACT, "block source_freshness_error"),
        UNIT: "block source_freshness_error",
    }


@pytest.mark.parametrize("mode", MODES)
def test_a_proof_holds_in_every_sense_of_identity(mode: str) -> None:
    assert built().identity(mode).plan().tests[0].reason == "no_change"
    world = built().identity(mode)
    world.edit(config(NOT_NULL, where="id > 0"))
    assert (NOT_NULL in checked(world.plan())) is (mode != "checksum")


def test_a_test_that_was_skipped_leaves_the_older_outcome() -> None:
    world = built()
    world.edit(text(STG, " limit 5", "c2"))
    world.build(fails=[FACT])
    assert world.rows[NOT_NULL].outcome == "pass"
    assert told(world.plan())[FACT].startswith("upstream_changed")


@pytest.mark.parametrize(("uuid", "provable"), [("u", True), ("", False)])
def test_nothing_is_proven_on_a_relation_whose_rows_nothing_tells(
    uuid: str, provable: bool
) -> None:
    test = DbtNode("t", "t", "test", "p", "", parents=("seen.only",))
    on = ground({}, {"seen.only": facts(uuid=uuid)}, {})
    assert (proof(test, on) is not None) is provable
