"""Planning for an engine without early cut-off, and nodes that are wanted or barred."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from worlds import Node, World, chain, told

from sqb.planning.plan import Cause

CASES: list[tuple[str, Callable[[World], World], dict[str, str]]] = [
    ("nothing moved: nothing runs", lambda w: w, {}),
    (
        "what reads a node that runs, runs",
        lambda w: w.edit("orders", query="q2"),
        {"orders": "query_changed", "report": "upstream_changed"},
    ),
    (
        "a view is made anew when the rows behind it moved",
        lambda w: w.move_source("raw.orders", snapshot=2),
        {"stg": "source_changed", "orders": "upstream_changed", "report": "upstream_changed"},
    ),
    (
        "a view that comes back wakes its readers, though it shows the same rows",
        lambda w: w.dropped("stg"),
        {"stg": "relation_missing", "orders": "upstream_changed", "report": "upstream_changed"},
    ),
    (
        "a relation written by someone else",
        lambda w: w.foreign_write("orders"),
        {"orders": "relation_changed", "report": "upstream_changed"},
    ),
]


@pytest.mark.parametrize(
    ("move", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_without_early_cut_off(move: Callable[[World], World], expected: dict[str, str]) -> None:
    assert told(move(chain().built()).plan(eager=True)) == expected


def test_a_view_outside_of_the_selection_shows_what_moved_and_is_no_stale_upstream() -> None:
    world = chain().built().move_source("raw.orders", snapshot=2)
    plan = world.plan("orders", eager=True)
    assert told(plan) == {"orders": "upstream_changed"}
    assert plan.warnings == ()


def test_writes_of_others_can_be_overlooked() -> None:
    world = chain().built().foreign_write("orders")
    assert told(world.plan(overlook_writes=True)) == {}
    assert told(world.plan("report", overlook_writes=True)) == {}


def test_a_wanted_node_runs_if_nothing_else_makes_it_run() -> None:
    world = chain().built()
    wanted = {"orders": Cause("t", "test_owed"), "other": Cause("t", "test_owed")}
    world.edit("other", query="q2")
    assert told(world.plan(wanted=wanted, eager=True)) == {
        "other": "query_changed",
        "orders": "test_owed",
        "report": "upstream_changed",
    }
    assert told(world.plan("report", wanted=wanted)) == {}


def test_a_barred_node_blocks_what_is_below_but_only_if_it_has_to_run() -> None:
    world = chain().built()
    barred = {"orders": Cause("orders", "view_in_the_way")}
    assert told(world.plan(barred=barred)) == {}
    world.edit("orders", query="q2").edit("other", query="q2")
    plan = world.plan(barred=barred)
    assert told(plan) == {"other": "query_changed"}
    blocked = {n.name: (n.reason, n.cause) for n in plan.nodes if n.action == "block"}
    assert blocked == dict.fromkeys(("orders", "report"), ("view_in_the_way", barred["orders"]))


def test_a_node_without_a_relation_misses_none() -> None:
    world = World({"f": Node("function"), "t": Node("table", ("f",))}).built()
    del world.relations["f"]
    expected = world.expected
    from msgspec.structs import replace

    world.expected = lambda: {  # type: ignore[method-assign]
        name: replace(node, relation="") if name == "f" else node
        for name, node in expected().items()
    }
    assert told(world.plan()) == {}
    assert told(world.plan("t", force=True)) == {"t": "forced"}
    world.edit("f", query="q2")
    assert told(world.plan(eager=True)) == {"f": "query_changed", "t": "upstream_changed"}
