"""The sources of a manifest: how each is watched, what one look gives."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_worlds import DAY_US, NOW_US, facts, written

from sqb.dbt.nodes import DbtNode, Freshness
from sqb.dbt.watch import needs_value, sight, watch
from sqb.errors import SqbError
from sqb.freshness.values import Answer
from sqb.identity.data_id import UNKNOWN
from sqb.project.source_specs import AgePolicy


def source(**declared: Any) -> DbtNode:
    return DbtNode(
        "source.shop.raw.orders",
        "raw.orders",
        "source",
        "shop",
        "models/sources.yml",
        schema="raw",
        alias="orders",
        relation_name="raw.orders",
        freshness=Freshness(**declared) if declared else None,
    )


DECLARED: list[tuple[str, dict[str, Any], str, str | None, AgePolicy | None]] = [
    ("nothing", {}, "adapter", None, None),
    ("thresholds alone", {"error_after": (2, "day")}, "adapter", None, AgePolicy(None, 172_800)),
    (
        "a column",
        {"loaded_at_field": "loaded_at", "warn_after": (30, "minute")},
        "column",
        "SELECT max(loaded_at) FROM raw.orders",
        AgePolicy(1_800, None),
    ),
    (
        "a column with a filter",
        {"loaded_at_field": "loaded_at", "filter": "day > 5", "warn_after": (1, "hour")},
        "column",
        "SELECT max(loaded_at) FROM raw.orders WHERE day > 5",
        AgePolicy(3_600, None),
    ),
    (
        "an expression",
        {"loaded_at_field": "to_timestamp(at)"},
        "sql",
        "SELECT max(to_timestamp(at)) FROM raw.orders",
        None,
    ),
    (
        "a query",
        {"loaded_at_query": "select max(t) from {{ this }};"},
        "sql",
        "select max(t) from raw.orders",
        None,
    ),
    ("a query that only dbt can render", {"loaded_at_query": "{{ m() }}"}, "sql", None, None),
]


@pytest.mark.parametrize(
    ("declared", "strategy", "sql", "policy"),
    [case[1:] for case in DECLARED],
    ids=[case[0] for case in DECLARED],
)
def test_what_is_declared_says_how_age_is_told(
    declared: dict[str, Any], strategy: str, sql: str | None, policy: AgePolicy | None
) -> None:
    found = watch(source(**declared))
    assert found.freshness.strategy == strategy
    assert (found.probe.sql if found.probe else None) == sql
    assert found.freshness.age_policy == policy
    assert found.place == ("raw", "orders")


def test_another_period_is_refused() -> None:
    with pytest.raises(SqbError, match=r"`error_after` of source `raw\.orders`") as caught:
        watch(source(error_after=(1, "week")))
    assert (caught.value.code, caught.value.file) == ("B008", "models/sources.yml")


TABLE = facts(uuid="u", stamp_ms=(NOW_US - 5 * DAY_US) // 1000)
VIEW = facts(uuid="u", kind="view")
#: A day before the clock of these tests, which stands at day 1,000 of the epoch.
YESTERDAY = Answer("1972-09-26T00:00:00+00:00")
COLUMN = {"loaded_at_field": "t", "warn_after": (12, "hour"), "error_after": (2, "day")}


@pytest.mark.parametrize(
    ("declared", "found", "answer", "strategy", "status"),
    [
        pytest.param({}, TABLE, None, "adapter", "pass", id="nobody asked for an age"),
        pytest.param(
            {"error_after": (2, "day")}, TABLE, None, "adapter", "error", id="by the last commit"
        ),
        pytest.param(COLUMN, TABLE, YESTERDAY, "adapter", "warn", id="by the column"),
        pytest.param(COLUMN, TABLE, None, "adapter", "unknown", id="nobody was asked"),
        pytest.param(COLUMN, VIEW, YESTERDAY, "column", "warn", id="a view, by its value"),
        pytest.param(COLUMN, None, YESTERDAY, "column", "warn", id="no table, by its value"),
        pytest.param(COLUMN, None, None, "column", "unknown", id="nothing is known"),
    ],
)
def test_age(declared: Any, found: Any, answer: Any, strategy: str, status: str) -> None:
    seen = sight(watch(source(**declared)), found, answer, NOW_US)
    assert seen.strategy == strategy
    assert seen.age is not None
    assert seen.age.status == status


def test_a_table_moves_with_its_snapshot_whatever_its_value_says() -> None:
    watched = watch(source(**COLUMN))
    one = sight(watched, TABLE, YESTERDAY, NOW_US).state
    assert one == sight(watched, TABLE, Answer("1972-09-26T05:00:00+00:00"), NOW_US).state
    assert one != sight(watched, written(TABLE), YESTERDAY, NOW_US).state


def test_what_has_no_snapshot_moves_with_its_value() -> None:
    watched = watch(source(**COLUMN))
    one = sight(watched, None, YESTERDAY, NOW_US).state
    assert one == sight(watched, None, YESTERDAY, NOW_US + DAY_US).state
    assert one != sight(watched, None, Answer("1972-09-26T05:00:00+00:00"), NOW_US).state


def test_what_shows_nothing_is_unknown_and_says_why() -> None:
    seen = sight(watch(source()), None, None, NOW_US)
    assert seen.state is not None
    assert seen.state.data == UNKNOWN
    assert "no loaded_at_field" in seen.why
    seen = sight(watch(source(**COLUMN)), VIEW, Answer(None, "its value is NULL"), NOW_US)
    assert seen.why == "it is a view, and its value is NULL"


@pytest.mark.parametrize(
    ("declared", "found", "needed"),
    [
        ({}, None, False),
        ({"error_after": (1, "day")}, TABLE, False),
        (COLUMN, TABLE, True),
        ({"loaded_at_field": "t"}, TABLE, False),
        ({"loaded_at_field": "t"}, VIEW, True),
        ({"loaded_at_query": "select 1"}, None, True),
    ],
)
def test_a_value_is_asked_for_only_where_it_says_something(
    declared: Any, found: Any, needed: bool
) -> None:
    assert needs_value(watch(source(**declared)), found) is needed
