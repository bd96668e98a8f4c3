"""What the freshness of sources does to a plan: decided without Spark, by facts alone."""

from __future__ import annotations

import pytest
from worlds import Node, World

from sqb.freshness.sighting import Age
from sqb.planning.plan import Plan

HOUR = 3600


def told(plan: Plan) -> dict[str, str]:
    return {
        n.name: f"block <- {n.cause.node}" if n.action == "block" and n.cause else n.reason
        for n in plan.nodes
        if n.action != "skip"
    }


def codes(plan: Plan) -> list[tuple[str, str | None]]:
    return [(w.code, w.node) for w in plan.warnings]


def day(hour: int, minute: int = 0, second: int = 0) -> str:
    return f"2026-01-31T{hour:02}:{minute:02}:{second:02}+00:00"


def world(*, tolerance: int | None = None) -> World:
    """A watched source under a table, under a view with a table, and a table beside."""
    found = World(
        {
            "direct": Node("table", ("raw.x",)),
            "stg": Node("view", ("raw.x",)),
            "behind": Node("table", ("stg",)),
            "below": Node("table", ("behind",)),
            "beside": Node("table", ("raw.y",)),
        },
        {"raw.x": ("u", "s", 1), "raw.y": ("v", "s", 1)},
    )
    return found.watch("raw.x", value=day(6), tolerance=tolerance).built()


def test_an_unmoved_value_is_no_reason() -> None:
    plan = world().plan()
    assert told(plan) == {}
    assert plan.warnings == ()


@pytest.mark.parametrize(
    ("value", "tolerance", "runs"),
    [
        (day(7), None, True),
        (day(5), None, True),
        (day(7), HOUR, False),
        (day(7, second=1), HOUR, True),
        (day(6, 30), HOUR, False),
        (day(5, 59, 59), HOUR, True),
    ],
    ids=[
        "a later value",
        "an earlier value",
        "exactly the tolerance is tolerated",
        "a second more is not",
        "less than the tolerance is tolerated",
        "backwards is never tolerated",
    ],
)
def test_a_value_moves_its_readers_unless_tolerated(
    value: str, tolerance: int | None, runs: bool
) -> None:
    plan = world(tolerance=tolerance).watch("raw.x", value=value, at="at2").plan()
    expected = {"direct": "source_changed", "behind": "upstream_changed"} if runs else {}
    assert {n: r for n, r in told(plan).items() if n != "below"} == expected
    assert codes(plan) == ([] if runs else [("S305", "raw.x")])


def test_tolerated_steps_add_up() -> None:
    """Each reader compares with what it consumed, so the base does not slide."""
    found = world(tolerance=HOUR)
    assert told(found.watch("raw.x", value=day(6, 40)).plan()) == {}
    assert "direct" in told(found.watch("raw.x", value=day(7, 20)).plan())


def test_a_scoped_build_hides_the_value_from_nobody_else() -> None:
    found = world().watch("raw.x", value=day(7), at="at2").built("direct", data="d2")
    plan = found.plan()
    assert "direct" not in told(plan)
    assert told(plan)["behind"] == "upstream_changed"


def test_rows_that_move_under_an_equal_value_are_told() -> None:
    plan = world().watch("raw.x", at="at2").plan()
    assert told(plan) == {}
    assert codes(plan) == [("S305", "raw.x")]
    assert "direct" in plan.warnings[0].message


def test_rows_that_move_under_an_equal_value_are_told_to_their_readers_only() -> None:
    assert world().watch("raw.x", at="at2").plan("beside").warnings == ()


def test_other_columns_are_a_change_under_an_equal_value() -> None:
    plan = world().move_source("raw.x", schema="s2").plan()
    assert told(plan)["direct"] == "schema_changed"
    assert told(plan)["stg"] == "schema_changed"


def test_an_unknown_source_makes_its_readers_stale_and_says_why() -> None:
    plan = world().watch("raw.x", value=None).plan()
    assert told(plan) == {
        "direct": "source_unknown",
        "behind": "upstream_changed",
        "below": "upstream_changed",
    }
    assert codes(plan) == [("S306", "raw.x")]
    assert "NULL" in plan.warnings[0].message
    causes = {n.name: n.cause and n.cause.reason for n in plan.nodes}
    assert causes["behind"] == "source_unknown"


def test_a_source_that_is_too_old_blocks_all_below_and_nothing_else() -> None:
    found = world().watch("raw.x", age=Age("error", 7200, 3600)).edit("beside", query="q2")
    plan = found.edit("direct", query="q2").plan()
    assert told(plan) == {
        "direct": "block <- raw.x",
        "stg": "block <- raw.x",
        "behind": "block <- raw.x",
        "below": "block <- raw.x",
        "beside": "query_changed",
    }
    assert {n.reason for n in plan.nodes if n.action == "block"} == {"source_freshness_error"}
    assert codes(plan) == [("S307", "raw.x")]
    assert plan.summary()["blocked"] == 4


def test_what_is_blocked_is_not_described_either() -> None:
    """Its description comes with its definition, which is not the one that was built."""
    found = world().watch("raw.x", age=Age("error", 7200, 3600))
    found.edit("direct", query="q2", described="new").edit("beside", described="new")
    assert found.plan().redescribe == ("beside",)
    found.dropped("direct")
    assert found.plan("direct").redescribe == ()


def test_force_does_not_pass_a_source_that_is_too_old() -> None:
    plan = world().watch("raw.x", age=Age("error", 7200, 3600)).plan("direct", force=True)
    assert told(plan) == {"direct": "block <- raw.x"}


def test_the_block_reaches_through_what_is_not_selected() -> None:
    plan = world().watch("raw.x", age=Age("error", 7200, 3600)).plan("below")
    assert told(plan) == {"below": "block <- raw.x"}


def test_an_old_source_that_only_warns_blocks_nothing() -> None:
    plan = world().watch("raw.x", age=Age("warn", 7200, 3600)).plan()
    assert told(plan) == {}
    assert codes(plan) == [("S307", "raw.x")]
    assert "2h" in plan.warnings[0].message
