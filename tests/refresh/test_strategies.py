"""Which strategies apply to which query under which change, and why the others do not."""

from __future__ import annotations

from collections import defaultdict

import pytest
from plans import plan_of, relation

from sqb.refresh.changes import TableChange
from sqb.refresh.ir import Col
from sqb.refresh.script import Script
from sqb.refresh.strategies import AffectedKey, Choice, GroupMerge, Situation, choose

ADDED = TableChange("append", 1, 2)
REWRITTEN = TableChange("changelog", 1, 2)


def chosen(
    sql: str, changes: dict[str, TableChange], kind: str = "bigint", *, old: bool = True
) -> Choice:
    types: dict[Col, str] = defaultdict(lambda: kind)
    # a mapping that knows every column
    for number in range(200):
        types[Col(f"c{number}")] = kind
    readable = frozenset(changes) if old else frozenset()
    return choose(Situation(plan_of(sql), changes, types, readable), Script(relation, str))


def told(choice: Choice) -> tuple[list[str], dict[str, str]]:
    return [o.name for o in choice.options], {r.name: r.code for r in choice.rejected}


TIED = (
    "WITH d AS (SELECT a, b FROM t0 QUALIFY row_number() OVER (PARTITION BY a ORDER BY c) = 1)"
    " SELECT t1.b, d.b AS x FROM t1 JOIN d ON t1.a = d.a"
)
CASES = [
    (
        "SELECT a, b FROM t0 WHERE c > 1",
        {"t0": ADDED},
        ["append", "affected_key", "bag_merge"],
        {"group_merge": "UNSUPPORTED"},
    ),
    (
        "SELECT a, b FROM t0 WHERE c > 1",
        {"t0": REWRITTEN},
        ["affected_key", "bag_merge"],
        {"append": "HAS_DELETES"},
    ),
    (
        "SELECT t0.b, t1.b AS d FROM t0 JOIN t1 ON t0.a = t1.a",
        {"t0": ADDED, "t1": ADDED},
        ["append", "affected_key", "bag_merge"],
        {},
    ),
    (
        "SELECT t0.b, t1.b AS d FROM t0 LEFT JOIN t1 ON t0.a = t1.a",
        {"t0": ADDED},
        ["append", "affected_key", "bag_merge"],
        {},
    ),
    (
        "SELECT t0.b, t1.b AS d FROM t0 LEFT JOIN t1 ON t0.a = t1.a",
        {"t1": ADDED},
        ["affected_key", "bag_merge"],
        {"append": "UNSUPPORTED"},
    ),
    (
        "SELECT a, SUM(b) AS s, COUNT(*) AS n FROM t0 GROUP BY a",
        {"t0": ADDED},
        ["group_merge", "affected_key", "bag_merge"],
        {"append": "UNSUPPORTED"},
    ),
    (
        "SELECT a, MAX(b) AS m FROM t0 GROUP BY a",
        {"t0": ADDED},
        ["group_merge", "affected_key", "bag_merge"],
        {},
    ),
    (
        "SELECT a, MAX(b) AS m, COUNT(*) AS n FROM t0 GROUP BY a",
        {"t0": REWRITTEN},
        ["affected_key", "bag_merge"],
        {"group_merge": "AGG_NOT_MERGEABLE"},
    ),
    (
        "SELECT a, SUM(b) AS s FROM t0 GROUP BY a",
        {"t0": REWRITTEN},
        ["affected_key", "bag_merge"],
        {"group_merge": "AGG_NOT_MERGEABLE"},
    ),
    (
        "SELECT a, SUM(b) AS s, COUNT(b) AS cb, COUNT(*) AS n FROM t0 GROUP BY a",
        {"t0": REWRITTEN},
        ["group_merge", "affected_key", "bag_merge"],
        {},
    ),
    (
        "SELECT a, SUM(b) AS s FROM t0 GROUP BY a HAVING SUM(b) > 3",
        {"t0": ADDED},
        ["affected_key", "bag_merge"],
        {"group_merge": "UNSUPPORTED"},
    ),
    (
        "SELECT SUM(b) AS s FROM t0 GROUP BY a",
        {"t0": ADDED},
        ["bag_merge"],
        {"group_merge": "KEY_NOT_IN_OUTPUT", "affected_key": "KEY_NOT_IN_OUTPUT"},
    ),
    (
        "SELECT a, b, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) AS r FROM t0",
        {"t0": REWRITTEN},
        ["affected_key"],
        {"bag_merge": "FREE_CHOICE"},
    ),
    (
        "SELECT c, COUNT(*) OVER (PARTITION BY a % 2) AS n FROM t0",
        {"t0": REWRITTEN},
        ["bag_merge"],
        {"affected_key": "KEY_NOT_IN_OUTPUT"},
    ),
    (
        TIED,
        {"t1": REWRITTEN},
        [],
        {"affected_key": "FREE_CHOICE", "bag_merge": "FREE_CHOICE"},
    ),
    (
        "SELECT a, FIRST(b) AS f FROM t0 GROUP BY a",
        {"t0": ADDED},
        ["affected_key"],
        {"group_merge": "AGG_NOT_MERGEABLE"},
    ),
]


@pytest.mark.parametrize(("sql", "changes", "options", "codes"), CASES)
def test_each_strategy_applies_or_says_why_not(
    sql: str, changes: dict[str, TableChange], options: list[str], codes: dict[str, str]
) -> None:
    found, rejected = told(chosen(sql, changes))
    assert found == options
    assert {name: rejected.get(name) for name in codes} == codes


def test_sums_of_floats_are_not_merged_and_replaced_only_by_whole_groups() -> None:
    sql = "SELECT a, SUM(b) AS s FROM t0 GROUP BY a"
    found, rejected = told(chosen(sql, {"t0": ADDED}, "double"))
    assert found == ["affected_key"]
    assert rejected["group_merge"] == "FLOAT_SUM"


def test_the_key_is_the_finest_that_can_be_derived() -> None:
    choice = chosen("SELECT a, b, c, COUNT(*) AS n FROM t0 GROUP BY a, b, c", {"t0": REWRITTEN})
    found = next(option for option in choice.options if isinstance(option, AffectedKey))
    assert len(found.key) == 3


def test_without_the_old_version_rows_are_still_replaced_by_key() -> None:
    sql = "SELECT a, COUNT(DISTINCT b) AS n FROM t0 GROUP BY a"
    found, rejected = told(chosen(sql, {"t0": REWRITTEN}, old=False))
    assert found == ["affected_key"]
    assert rejected["bag_merge"] == "NO_CHANGE_SET"


def test_a_merge_of_groups_knows_where_keys_and_aggregates_stand() -> None:
    choice = chosen("SELECT COUNT(*) AS n, a AS k, MAX(b) AS m FROM t0 GROUP BY a", {"t0": ADDED})
    found = next(option for option in choice.options if isinstance(option, GroupMerge))
    assert (found.keys, found.calls, found.signed) == ((1,), (0, 2), False)
