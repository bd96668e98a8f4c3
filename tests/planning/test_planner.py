"""What runs and why, as tables of cases over small worlds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from worlds import Node, World, chain, told

from sqb.errors import SqbError

CASES: list[tuple[str, Callable[[World], World], dict[str, str]]] = [
    ("nothing moved: nothing runs", lambda w: w, {}),
    (
        "a changed query runs, readers wait for its outcome",
        lambda w: w.edit("orders", query="q2"),
        {"orders": "query_changed", "report": "maybe <- orders"},
    ),
    (
        "a changed config runs, readers wait for its outcome",
        lambda w: w.edit("orders", config="c2"),
        {"orders": "config_changed", "report": "maybe <- orders"},
    ),
    (
        "a changed view moves its readers for certain",
        lambda w: w.edit("stg", query="q2"),
        {"stg": "query_changed", "orders": "upstream_changed", "report": "maybe <- orders"},
    ),
    (
        "new rows in a source run its readers through the view, which itself stays",
        lambda w: w.move_source("raw.orders", snapshot=2),
        {"orders": "upstream_changed", "report": "maybe <- orders"},
    ),
    (
        "a source that a table reads directly",
        lambda w: w.move_source("raw.other", snapshot=2),
        {"other": "source_changed"},
    ),
    (
        "a column added to a source without data is seen",
        lambda w: w.move_source("raw.other", schema="sx2"),
        {"other": "schema_changed"},
    ),
    (
        "a column added to a source recreates the view over it",
        lambda w: w.move_source("raw.orders", schema="so2"),
        {"stg": "schema_changed", "orders": "upstream_changed", "report": "maybe <- orders"},
    ),
    (
        "a changed seed is reloaded",
        lambda w: w.edit("rates", query="q2"),
        {"rates": "seed_changed", "orders": "maybe <- rates", "report": "maybe <- orders"},
    ),
    (
        "a relation written by someone else is rebuilt",
        lambda w: w.foreign_write("orders"),
        {"orders": "relation_changed", "report": "maybe <- orders"},
    ),
    ("compaction by someone else is no change", lambda w: w.compacted("orders"), {}),
    (
        "a dropped relation is rebuilt",
        lambda w: w.dropped("orders"),
        {"orders": "relation_missing", "report": "maybe <- orders"},
    ),
    (
        "a relation that someone else put in the place of a dropped one is rebuilt",
        lambda w: w.replaced("orders"),
        {"orders": "relation_changed", "report": "maybe <- orders"},
    ),
    (
        "a dropped view is recreated and wakes nobody: it shows the same rows",
        lambda w: w.dropped("stg"),
        {"stg": "relation_missing"},
    ),
    (
        "the query change is told rather than the foreign write",
        lambda w: w.foreign_write("orders").edit("orders", query="q2"),
        {"orders": "query_changed", "report": "maybe <- orders"},
    ),
]


@pytest.mark.parametrize(
    ("move", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_moved_decides_what_runs(
    move: Callable[[World], World], expected: dict[str, str]
) -> None:
    assert told(move(chain().built()).plan()) == expected


def test_a_first_run_builds_everything_in_order() -> None:
    plan = chain().plan()
    assert told(plan) == dict.fromkeys(("other", "rates", "stg", "orders", "report"), "first_run")
    order = [node.name for node in plan.nodes]
    assert order.index("stg") < order.index("orders") < order.index("report")


def test_force_runs_the_selection_and_only_it() -> None:
    plan = chain().built().plan("orders", force=True)
    assert told(plan) == {"orders": "forced"}
    assert [n.name for n in plan.nodes] == ["orders"]


def test_full_refresh_names_itself() -> None:
    assert told(chain().built().plan("report", full_refresh=True)) == {"report": "full_refresh"}


def test_a_model_that_is_deaf_to_full_refresh_runs_without_being_rebuilt() -> None:
    world = World({"t": Node("append", full_refresh=False), "u": Node("append")}).built()
    assert told(world.plan(full_refresh=True)) == {"t": "forced", "u": "full_refresh"}
    assert told(world.plan()) == {}


def test_an_edit_says_what_becomes_of_rows_that_are_there() -> None:
    nodes = {"log": Node("append", replay="forward"), "m": Node("merge", replay="forward")}
    world = World(nodes).built()
    for name in nodes:
        world.edit(name, query="q2")
    plan = world.plan()
    assert {n.name: n.replay for n in plan.nodes} == {"log": "forward", "m": "forward"}
    # a log promises nothing about what its query gives; a merge does
    assert [(w.code, w.node) for w in plan.warnings] == [("S311", "m")]


def test_a_new_day_runs_tables_that_use_the_date() -> None:
    world = World({"t": Node(constants=("current_date",)), "u": Node("table", ("t",))}).built()
    assert told(world.plan()) == {}
    world.constants = {"current_date": "2026-01-02"}
    assert told(world.plan()) == {"t": "constant_changed", "u": "maybe <- t"}


def test_a_new_day_moves_the_rows_behind_a_view_that_uses_the_date() -> None:
    nodes = {"v": Node("view", (), constants=("current_date",)), "t": Node("table", ("v",))}
    world = World(nodes).built()
    assert told(world.plan()) == {}
    world.constants = {"current_date": "2026-01-02"}
    assert told(world.plan()) == {"t": "upstream_changed"}


class TestScope:
    """A scoped build never hides a change, and never builds what was not asked for."""

    def test_a_scoped_build_hides_nothing_from_the_other_readers(self) -> None:
        world = World(
            {"a": Node("table", ("raw.x",)), "b": Node("table", ("raw.x",))},
            {"raw.x": ("u", "s", 1)},
        ).built()
        world.move_source("raw.x", snapshot=2).built("a", data="d2")
        assert told(world.plan()) == {"b": "source_changed"}

    def test_a_reader_of_something_built_earlier_runs(self) -> None:
        world = chain().built().edit("orders", query="q2").built("orders", data="d2")
        plan = world.plan()
        assert told(plan) == {"report": "upstream_changed"}

    def test_a_reader_of_something_rebuilt_to_the_same_rows_does_not_run(self) -> None:
        world = chain().built().edit("orders", query="q2").built("orders", data="d1")
        plan = world.plan()
        assert told(plan) == {}
        assert plan.rerecord == ("report",)

    def test_a_stale_upstream_outside_the_selection_is_told_and_not_built(self) -> None:
        world = chain().built().edit("orders", query="q2")
        plan = world.plan("report")
        assert told(plan) == {}
        assert [(w.code, w.node) for w in plan.warnings] == [("S302", "report")]
        assert "orders" in plan.warnings[0].message

    def test_a_model_with_its_own_change_runs_on_the_stale_upstream_and_stays_warned(self) -> None:
        world = chain().built().edit("orders", query="q2").edit("report", query="q2")
        plan = world.plan("report")
        assert told(plan) == {"report": "query_changed"}
        assert [w.code for w in plan.warnings] == ["S302"]

    def test_a_changed_view_outside_the_selection_does_not_move_its_readers(self) -> None:
        world = chain().built().edit("stg", query="q2")
        plan = world.plan("orders")
        assert told(plan) == {}
        assert [w.code for w in plan.warnings] == ["S302"]

    def test_a_foreign_write_outside_the_selection_is_no_reason(self) -> None:
        plan = chain().built().foreign_write("orders").plan("report")
        assert told(plan) == {}
        assert [w.code for w in plan.warnings] == ["S302"]

    def test_an_upstream_that_was_never_built_is_refused(self) -> None:
        with pytest.raises(SqbError) as error:
            chain().plan("report")
        assert error.value.code == "S301"
        assert "orders" in error.value.message

    def test_a_missing_source_is_refused(self) -> None:
        world = chain().built()
        del world.sources["raw.other"]
        world.nodes["other"] = Node("table", ("raw.gone",))
        world.sources["raw.gone"] = ("u", "s", 1)
        situation_sources = world.source_states()
        assert "raw.gone" in situation_sources
        world.source_states = dict  # type: ignore[method-assign]
        with pytest.raises(SqbError) as error:
            world.plan("other")
        assert error.value.code == "S303"


def test_the_cause_is_the_root_of_the_chain() -> None:
    plan = chain().built().edit("stg", query="q2").plan()
    causes = {n.name: (n.cause.node, n.cause.reason) for n in plan.nodes if n.cause}
    assert causes == {"orders": ("stg", "query_changed"), "report": ("stg", "query_changed")}


def test_the_summary_counts_every_selected_node_once() -> None:
    plan = chain().built().edit("orders", query="q2").plan()
    assert plan.summary() == {
        "selected": 5,
        "run": 1,
        "maybe": 1,
        "reuse": 0,
        "current": 3,
        "blocked": 0,
    }


def test_rows_that_moved_behind_a_view_are_blamed_on_their_source() -> None:
    plan = chain().built().move_source("raw.orders", snapshot=2).plan()
    causes = {n.name: (n.cause.node, n.cause.reason) for n in plan.nodes if n.cause}
    assert causes["orders"] == ("raw.orders", "source_changed")
    assert causes["report"] == ("raw.orders", "source_changed")


class TestFoundByReview:
    """Ways in which a change could hide, each seen to hide once."""

    def test_a_view_outside_the_selection_passes_a_change_on(self) -> None:
        world = World(
            {
                "t": Node("table", ("raw.x",)),
                "v": Node("view", ("t",)),
                "c": Node("table", ("v",)),
            },
            {"raw.x": ("u", "s", 1)},
        ).built()
        plan = world.move_source("raw.x", snapshot=2).plan("t", "c")
        assert told(plan) == {"t": "source_changed", "c": "maybe <- t"}

    def test_a_changed_view_over_a_foreign_write_still_moves_its_readers(self) -> None:
        world = World({"p": Node(), "v": Node("view", ("p",)), "c": Node("table", ("v",))}).built()
        plan = world.foreign_write("p").edit("v", query="q2").plan("v", "c")
        assert told(plan) == {"v": "query_changed", "c": "maybe <- v"}
        assert plan.rerecord == ()

    def test_a_dropped_and_edited_table_may_bring_other_columns_to_its_views(self) -> None:
        world = World({"t": Node(), "v": Node("view", ("t",))}).built()
        assert told(world.dropped("t").edit("t", query="q2").plan()) == {
            "t": "relation_missing",
            "v": "maybe <- t",
        }

    def test_a_new_day_does_not_mask_new_columns(self) -> None:
        world = World(
            {
                "t": Node("table", ("raw.x",), constants=("current_date",)),
                "v": Node("view", ("t",)),
            },
            {"raw.x": ("u", "s", 1)},
        ).built()
        world.constants = {"current_date": "2026-01-02"}
        plan = world.move_source("raw.x", schema="s2").plan()
        assert told(plan) == {"t": "constant_changed", "v": "maybe <- t"}

    def test_an_input_that_is_no_longer_read_is_a_change(self) -> None:
        world = World({"m": Node(), "c": Node("table", ("m",))}).built()
        assert told(world.edit("c", inputs=()).plan()) == {"c": "upstream_changed"}

    def test_a_view_follows_an_input_that_moved_to_another_place(self) -> None:
        world = World(
            {"v": Node("view", ("raw.x",)), "c": Node("table", ("v",))},
            {"raw.x": ("u", "s", 1)},
        ).built()
        world.places["raw.x"] = "raw2.x"
        assert told(world.plan()) == {"v": "source_changed"}
