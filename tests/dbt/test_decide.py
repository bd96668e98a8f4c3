"""What dbt is given to do and why, as tables of cases over a recorded project."""

from __future__ import annotations

import sys
from collections.abc import Callable
from subprocess import run
from typing import Any

import pytest
from dbt_manifests import VARS
from dbt_worlds import (
    COUNTRY,
    CUSTOMERS,
    DAY_US,
    DAYS,
    DIM_1,
    DIM_2,
    EPHEMERAL,
    FACT,
    NOW_US,
    RAW,
    RAW_CUSTOMERS,
    SEED,
    SNAP,
    STG,
    DbtWorld,
    config,
    facts,
    text,
    told,
)

from sqb.errors import SqbError
from sqb.identity.hashes import MODES

ALL = (DAYS, SEED, CUSTOMERS, DIM_1, DIM_2, SNAP, STG, FACT, COUNTRY)
BY_STG = {
    FACT: "upstream_changed <- stg_orders checksum_changed",
    COUNTRY: "upstream_changed <- stg_orders checksum_changed",
}


def macro(name: str, addition: str) -> Callable[[dict[str, Any]], None]:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["macros"][name]["macro_sql"] += addition

    return edit


def seed(checksum: str) -> Callable[[dict[str, Any]], None]:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["nodes"][SEED]["checksum"]["checksum"] = checksum

    return edit


def source(name: str, **fields: Any) -> Callable[[dict[str, Any]], None]:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["sources"][name].update(fields)

    return edit


def too_old(world: DbtWorld) -> DbtWorld:
    world.loaded_us = NOW_US - 3 * DAY_US
    return world


OTHER_DATE = {**VARS, "little": {**VARS["little"], "start_date": '"2026-02-01"'}}


def below(cause: str, *names: str) -> dict[str, str]:
    return dict.fromkeys(names, f"upstream_changed <- {cause}")


MOVED = "source_freshness_changed <- orders source_freshness_changed"
OLD = "BLOCK source_freshness_error <- orders source_freshness_error"

CASES: list[tuple[str, Callable[[DbtWorld], object], dict[str, str]]] = [
    ("nothing moved", lambda w: w, {}),
    (
        "a relation is missing",
        lambda w: w.drop(FACT),
        {FACT: "relation_missing", **below("fct_orders relation_missing", COUNTRY)},
    ),
    (
        "a view is missing",
        lambda w: w.drop(STG),
        {STG: "relation_missing", **below("stg_orders relation_missing", FACT, COUNTRY)},
    ),
    (
        "no fingerprint, though the relation stands",
        lambda w: w.rows.pop(FACT),
        {FACT: "first_run", **below("fct_orders first_run", COUNTRY)},
    ),
    (
        "no fingerprint and no relation",
        lambda w: (w.rows.pop(FACT), w.drop(FACT)),
        {FACT: "first_run", **below("fct_orders first_run", COUNTRY)},
    ),
    (
        "another text",
        lambda w: w.edit(text(STG, " limit 5", "c2")),
        {STG: "checksum_changed", **BY_STG},
    ),
    (
        "the missing relation is told rather than the other text",
        lambda w: w.edit(text(COUNTRY, " limit 5", "c2")).drop(COUNTRY),
        {COUNTRY: "relation_missing"},
    ),
    (
        "the other text is told rather than the other config",
        lambda w: w.edit(text(COUNTRY, " limit 5", "c2"), config(COUNTRY, partition_by="day")),
        {COUNTRY: "checksum_changed"},
    ),
    (
        "a macro two levels down",
        lambda w: w.edit(macro("macro.little.divided", " {# x #}")),
        {
            STG: "identity_changed macro divided",
            **below("stg_orders identity_changed", FACT, COUNTRY),
        },
    ),
    (
        "a variable",
        lambda w: w.edit(vars=OTHER_DATE),
        {
            STG: "identity_changed var start_date",
            **below("stg_orders identity_changed", FACT, COUNTRY),
        },
    ),
    (
        "a config",
        lambda w: w.edit(config(COUNTRY, partition_by="day")),
        {COUNTRY: "identity_changed config partition_by"},
    ),
    (
        "a source that is read from elsewhere",
        lambda w: w.edit(source(RAW, identifier="o2", relation_name="raw.o2")),
        {
            STG: "identity_changed source raw.orders",
            **below("stg_orders identity_changed", FACT, COUNTRY),
        },
    ),
    (
        "an ephemeral model: its readers see it",
        lambda w: w.edit(text(EPHEMERAL, " limit 5", "c2")),
        {
            FACT: "identity_changed ref paid_orders",
            **below("fct_orders identity_changed", COUNTRY),
        },
    ),
    (
        "a seed",
        lambda w: w.edit(seed("c2")),
        {SEED: "checksum_changed", **below("countries checksum_changed", FACT, COUNTRY)},
    ),
    (
        "a seed that was dropped",
        lambda w: w.drop(SEED),
        {SEED: "relation_missing", **below("countries relation_missing", FACT, COUNTRY)},
    ),
    (
        "a snapshot",
        lambda w: w.edit(config(SNAP, unique_key="other")),
        {SNAP: "identity_changed config unique_key"},
    ),
    (
        "someone else wrote",
        lambda w: w.write(FACT),
        {FACT: "relation_changed", **below("fct_orders relation_changed", COUNTRY)},
    ),
    (
        "someone else wrote, and the text is another",
        lambda w: w.edit(text(COUNTRY, " limit 5", "c2")).write(COUNTRY),
        {COUNTRY: "checksum_changed"},
    ),
    (
        "new rows in a source reach every model below it, views too",
        lambda w: w.move_source(),
        {STG: MOVED, FACT: MOVED, COUNTRY: MOVED},
    ),
    (
        "a snapshot below a source that moved",
        lambda w: w.move_source(RAW_CUSTOMERS),
        dict.fromkeys(
            (CUSTOMERS, DIM_1, DIM_2, SNAP, FACT, COUNTRY),
            "source_freshness_changed <- customers source_freshness_changed",
        ),
    ),
    (
        "a source that moved is told rather than a changed seed",
        lambda w: w.move_source().edit(seed("c2")),
        {SEED: "checksum_changed", STG: MOVED, FACT: MOVED, COUNTRY: MOVED},
    ),
    (
        "a node's own reason is told rather than the source that moved, but not to those below",
        lambda w: w.move_source().edit(text(STG, " limit 5", "c2")),
        {STG: "checksum_changed", FACT: MOVED, COUNTRY: MOVED},
    ),
    (
        "a source that is too old blocks all below",
        too_old,
        {STG: OLD, FACT: OLD, COUNTRY: OLD},
    ),
    (
        "a source that is too old beats every other reason",
        lambda w: too_old(w).move_source().edit(text(FACT, " limit 5", "c2"), seed("c2")),
        {SEED: "checksum_changed", STG: OLD, FACT: OLD, COUNTRY: OLD},
    ),
    (
        "a source that can't be seen",
        lambda w: w.sources.update({RAW_CUSTOMERS: None}) or setattr(w, "loaded_us", None),
        dict.fromkeys(
            (CUSTOMERS, DIM_1, DIM_2, SNAP, FACT, COUNTRY),
            "source_unknown <- customers source_unknown",
        ),
    ),
    (
        "a table becomes a view, which dbt can do",
        lambda w: w.edit(config(COUNTRY, materialized="view")),
        {COUNTRY: "identity_changed config materialized"},
    ),
    (
        "a view becomes a table, which dbt can't do",
        lambda w: w.edit(config(STG, materialized="table")),
        {
            STG: "BLOCK view_in_the_way view DROP VIEW little.stg_orders",
            FACT: "BLOCK view_in_the_way <- stg_orders view_in_the_way",
            COUNTRY: "BLOCK view_in_the_way <- stg_orders view_in_the_way",
        },
    ),
]


@pytest.mark.parametrize(
    ("move", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_moved_decides_what_dbt_runs(
    move: Callable[[DbtWorld], object], expected: dict[str, str]
) -> None:
    world = DbtWorld()
    world.build()
    move(world)
    plan = world.plan()
    assert told(plan) == expected
    # and after a build everything rests, unless it can't
    if (
        not any(node.action == "block" for node in plan.nodes)
        and None not in world.sources.values()
    ):
        world.build()
        assert world.plan().work == ()


def test_a_first_build_runs_everything_and_a_second_one_nothing() -> None:
    world = DbtWorld()
    first = world.build()
    assert told(first) == dict.fromkeys(ALL, "first_run")
    assert len(first.work) == len(ALL) + 5
    second = world.plan()
    assert second.work == ()
    assert {n.reason for n in second.nodes} == {"no_change"}


#: An edit, and what runs by itself under each identity.
SENSES: list[tuple[str, Callable[[DbtWorld], object], dict[str, dict[str, str]]]] = [
    (
        "text",
        lambda w: w.edit(text(COUNTRY, " limit 5", "c2")),
        {mode: {COUNTRY: "checksum_changed"} for mode in MODES},
    ),
    (
        "a comment",
        lambda w: w.edit(text(COUNTRY, "\n-- words", "c2")),
        {
            "full": {COUNTRY: "checksum_changed"},
            "normalised": {},
            "checksum": {COUNTRY: "checksum_changed"},
        },
    ),
    (
        "config",
        lambda w: w.edit(config(COUNTRY, partition_by="day")),
        {
            "full": {COUNTRY: "identity_changed config partition_by"},
            "normalised": {COUNTRY: "identity_changed config partition_by"},
            "checksum": {},
        },
    ),
    (
        "an ephemeral model",
        lambda w: w.edit(text(EPHEMERAL, " limit 5", "c2")),
        {
            mode: {
                FACT: "identity_changed ref paid_orders",
                **below("fct_orders identity_changed", COUNTRY),
            }
            for mode in MODES
        },
    ),
    (
        "a comment in an ephemeral model",
        lambda w: w.edit(text(EPHEMERAL, "\n-- words", "c2")),
        {
            "normalised": {},
            "checksum": {
                FACT: "identity_changed ref paid_orders",
                **below("fct_orders identity_changed", COUNTRY),
            },
        },
    ),
    (
        "a write by someone else",
        lambda w: w.write(COUNTRY),
        {
            "full": {COUNTRY: "relation_changed"},
            "normalised": {COUNTRY: "relation_changed"},
            "checksum": {},
        },
    ),
    (
        "a write by someone else, above",
        lambda w: w.write(FACT),
        {"checksum": {}},
    ),
    (
        "a moved source",
        lambda w: w.move_source(),
        {"checksum": {STG: MOVED, FACT: MOVED, COUNTRY: MOVED}},
    ),
]


@pytest.mark.parametrize(
    ("move", "mode", "expected"),
    [
        pytest.param(move, mode, expected, id=f"{name}, {mode}")
        for name, move, senses in SENSES
        for mode, expected in senses.items()
    ],
)
def test_the_sense_of_identity_decides_what_counts(
    move: Callable[[DbtWorld], object], mode: str, expected: dict[str, str]
) -> None:
    world = DbtWorld()
    world.build()
    move(world)
    assert told(world.identity(mode).plan()) == expected


@pytest.mark.parametrize("before", MODES)
@pytest.mark.parametrize("after", MODES)
def test_another_sense_of_identity_makes_nothing_stale(before: str, after: str) -> None:
    world = DbtWorld(identity=before)
    world.build()
    assert world.identity(after).plan().work == ()


class TestScope:
    """A scoped run hides nothing, and runs nothing that was not asked for."""

    def test_a_changed_upstream_outside_of_the_selection_is_only_told(self) -> None:
        world = DbtWorld()
        world.build()
        world.edit(text(FACT, " limit 5", "c2"))
        plan = world.plan(COUNTRY)
        assert told(plan) == {}
        assert [(w.code, w.node) for w in plan.warnings] == [("S302", COUNTRY)]
        assert "fct_orders; --select +by_country" in plan.warnings[0].message

    def test_a_changed_seed_outside_of_the_selection_is_only_told(self) -> None:
        world = DbtWorld()
        world.build()
        world.edit(seed("c2"))
        plan = world.plan(FACT)
        assert told(plan) == {}
        assert [w.node for w in plan.warnings] == [FACT]

    def test_an_upstream_that_was_built_alone_makes_its_readers_run(self) -> None:
        world = DbtWorld()
        world.build()
        world.edit(text(FACT, " limit 5", "c2"))
        assert told(world.build(FACT)) == {FACT: "checksum_changed"}
        assert told(world.plan()) == {COUNTRY: "upstream_changed <- fct_orders upstream_changed"}

    def test_a_view_that_was_made_alone_makes_its_readers_run(self) -> None:
        world = DbtWorld()
        world.build()
        world.edit(text(STG, " limit 5", "c2"))
        world.build(STG)
        plan = world.plan()
        assert list(told(plan)) == [FACT, COUNTRY]

    def test_rows_flow_through_a_view_that_is_not_selected(self) -> None:
        world = DbtWorld()
        world.build()
        world.move_source()
        plan = world.build(FACT)
        assert told(plan) == {FACT: MOVED}
        assert plan.warnings == ()
        # the view itself was not made anew, and what reads the table was not built
        assert list(told(world.plan())) == [STG, FACT, COUNTRY]

    def test_a_source_that_moved_is_told_also_after_the_view_was_made_alone(self) -> None:
        world = DbtWorld()
        world.build()
        world.move_source()
        world.build(STG)
        assert told(world.plan())[FACT] == MOVED

    def test_one_reader_that_was_built_hides_the_change_from_no_other(self) -> None:
        world = DbtWorld()
        world.build()
        world.move_source(RAW_CUSTOMERS)
        world.build(CUSTOMERS, DIM_1)
        assert list(told(world.plan())) == [DIM_2, SNAP, FACT, COUNTRY]

    def test_a_node_between_two_selected_ones_holds_the_change_back_if_it_is_a_table(self) -> None:
        world = DbtWorld()
        world.build()
        world.edit(seed("c2"))
        assert told(world.plan(SEED, COUNTRY)) == {SEED: "checksum_changed"}

    def test_an_upstream_that_was_never_built_is_refused(self) -> None:
        world = DbtWorld()
        with pytest.raises(SqbError, match=r"S301.*fct_orders") as caught:
            world.plan(COUNTRY)
        assert caught.value.exit_code == 2
        assert told(world.plan(COUNTRY, defer=True)) == {COUNTRY: "first_run"}

    def test_too_old_is_too_old_in_any_selection(self) -> None:
        world = DbtWorld()
        world.build()
        too_old(world)
        assert told(world.plan(COUNTRY)) == {COUNTRY: OLD}


class TestRun:
    """``dbt run`` is for models alone."""

    def test_seeds_and_snapshots_are_left_to_build(self) -> None:
        world = DbtWorld()
        world.build()
        world.edit(seed("c2"), config(SNAP, unique_key="other"))
        plan = world.plan(command="run")
        assert plan.work == ()
        assert {n.type for n in plan.nodes} == {"dbt_model"}
        assert plan.resources == len([n for n in world.nodes.values() if n.type == "model"])
        assert [(w.code, w.node) for w in plan.warnings] == [("S302", FACT), ("S302", COUNTRY)]

    def test_a_seed_that_was_never_loaded_is_refused(self) -> None:
        with pytest.raises(SqbError, match="S301") as caught:
            DbtWorld().plan(command="run")
        assert SEED in caught.value.message

    def test_with_defer_what_is_missing_is_not_stale(self) -> None:
        plan = DbtWorld().plan(FACT, command="run", defer=True)
        assert told(plan) == {FACT: "first_run"}
        assert plan.warnings == ()


def function(text: str) -> Callable[[dict[str, Any]], None]:
    """A function that a model calls."""

    def edit(manifest: dict[str, Any]) -> None:
        manifest["functions"] = {
            "function.little.double_it": {
                "unique_id": "function.little.double_it",
                "name": "double_it",
                "resource_type": "function",
                "package_name": "little",
                "schema": "little",
                "alias": "double_it",
                "relation_name": "little.double_it",
                "raw_code": text,
                "checksum": {"name": "sha256", "checksum": text},
            }
        }
        manifest["nodes"][COUNTRY]["depends_on"]["nodes"].append("function.little.double_it")

    return edit


def test_a_function_has_no_relation_to_miss() -> None:
    world = DbtWorld()
    world.edit(function("x * 2"))
    world.build()
    world.relations.pop("function.little.double_it", None)
    assert world.plan().work == ()
    world.undo().edit(function("x + x"))
    plan = world.plan()
    assert told(plan) == {
        "function.little.double_it": "checksum_changed",
        **below("double_it checksum_changed", COUNTRY),
    }
    assert [n.type for n in plan.others if n.action == "run"] == ["dbt_function", "dbt_test"]


class TestFullRefresh:
    def test_it_runs_what_is_selected_and_only_that(self) -> None:
        world = DbtWorld()
        world.build()
        plan = world.plan(FACT, full_refresh=True)
        assert told(plan) == {FACT: "full_refresh"}
        assert plan.full_refresh
        assert [n.replay for n in plan.nodes] == ["full"]

    def test_it_comes_before_every_other_reason_but_an_old_source(self) -> None:
        world = DbtWorld()
        world.build()
        world.edit(text(FACT, " limit 5", "c2")).move_source(RAW_CUSTOMERS).drop(COUNTRY)
        assert set(told(world.plan(full_refresh=True)).values()) == {"full_refresh"}
        too_old(world)
        assert told(world.plan(full_refresh=True))[FACT] == OLD

    def test_it_loads_seeds_again(self) -> None:
        world = DbtWorld()
        world.build()
        assert told(world.plan(SEED, full_refresh=True)) == {SEED: "full_refresh"}

    @pytest.mark.parametrize(
        ("policy", "flag", "replay"), [("forward_only", False, "forward"), ("full", True, "full")]
    )
    def test_the_policy_decides_what_becomes_of_rows(
        self, policy: str, flag: bool, replay: str
    ) -> None:
        world = DbtWorld(replay_on_change=policy)
        world.build()
        assert not world.plan().full_refresh, "no model work"
        world.edit(text(FACT, " limit 5", "c2"))
        plan = world.plan()
        assert plan.full_refresh is flag
        assert {n.name: n.replay for n in plan.nodes if n.replay} == {FACT: replay}

    def test_a_seed_alone_is_no_model_work(self) -> None:
        world = DbtWorld(replay_on_change="full")
        world.build()
        world.edit(seed("c2"))
        assert not world.plan(SEED).full_refresh
        assert world.plan().full_refresh

    def test_a_model_that_refuses_it_keeps_its_rows(self) -> None:
        world = DbtWorld(replay_on_change="full")
        world.build()
        world.edit(config(FACT, full_refresh=False))
        plan = world.plan()
        assert plan.full_refresh
        assert {n.name: n.replay for n in plan.nodes if n.replay} == {FACT: "forward"}


class TestViewsInTheWay:
    def test_with_replace_views_they_are_dropped_before(self) -> None:
        world = DbtWorld(replace_views=True)
        world.build()
        world.edit(config(STG, materialized="table"))
        plan = world.plan()
        assert told(plan)[STG] == "identity_changed config materialized"
        assert plan.drop_views == {STG: "DROP VIEW little.stg_orders"}

    def test_one_that_nobody_has_to_write_over_stays(self) -> None:
        world = DbtWorld(identity="checksum")
        world.build()
        world.edit(config(STG, materialized="table"))
        plan = world.plan()
        assert told(plan) == {}
        assert plan.drop_views == {}

    def test_one_that_dbt_sees_is_for_dbt_to_drop(self) -> None:
        world = DbtWorld()
        world.build()
        world.relations[STG] = facts(uuid="", kind="view")
        world.edit(config(STG, materialized="table"))
        assert told(world.plan())[STG] == "identity_changed config materialized"

    def test_one_at_the_place_of_a_model_never_built_blocks_it(self) -> None:
        world = DbtWorld()
        world.relations[COUNTRY] = facts(uuid="u", kind="view")
        plan = world.plan()
        assert told(plan)[COUNTRY].startswith("BLOCK view_in_the_way view DROP VIEW")
        assert told(plan)[FACT] == "first_run"


def test_what_failed_is_not_recorded_and_tries_again() -> None:
    world = DbtWorld()
    world.build()
    world.edit(text(STG, " limit 5", "c2"))
    world.build(fails=[FACT])
    assert STG in world.rows
    plan = world.plan()
    assert list(told(plan)) == [FACT, COUNTRY]
    world.build()
    assert world.plan().work == ()


def test_a_failed_first_build_leaves_a_first_run() -> None:
    world = DbtWorld()
    world.build(fails=[FACT])
    assert told(world.plan()) == {
        FACT: "first_run",
        COUNTRY: "first_run",
    }


def test_relations_that_only_dbt_can_describe_are_planned_alike() -> None:
    world = DbtWorld()
    world.build()
    for name, found in world.relations.items():
        world.relations[name] = facts(uuid="", kind=found.kind, shape="")
    world.rows.clear()
    world._made = lambda node: facts(  # type: ignore[method-assign]
        uuid="", kind="view" if node.materialized == "view" else "table", shape=""
    )
    world.build()
    assert world.plan().work == ()
    world.edit(text(FACT, " limit 5", "c2"))
    world.build(FACT)
    assert told(world.plan()) == {COUNTRY: "upstream_changed <- fct_orders upstream_changed"}


def test_deciding_loads_nothing_heavy() -> None:
    heavy = "yaml jinja2 pyiceberg pyarrow sqlglot pyspark rich"
    code = (
        "import sys, sqb.dbt.decide, sqb.dbt.plan_text, sqb.dbt.recording\n"
        f"print([m for m in '{heavy}'.split() if m in sys.modules])"
    )
    found = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
