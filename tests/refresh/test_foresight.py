"""What is told beforehand without Spark: types that follow from the tables', and advice."""

from __future__ import annotations

import pytest
from plans import plan_of, relation

from sqb.refresh.advice import Laid, advise, advise_volatile
from sqb.refresh.changes import TableChange
from sqb.refresh.cost import Size, Sizes
from sqb.refresh.ir import Col, output
from sqb.refresh.script import Script
from sqb.refresh.strategies import Situation, choose
from sqb.refresh.types import known_types

ADDED = TableChange("append", 1, 2, "", 1, 0, 10)
REWRITTEN = TableChange("changelog", 1, 2, "", 1, 1, 10)
KINDS = {"a": "int", "b": "decimal(18,2)", "c": "double"}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT a, b, c FROM t0", ["int", "decimal(18,2)", "double"]),
        ("SELECT a + 1 AS x, b FROM t0", [None, "decimal(18,2)"]),
        ("SELECT a, SUM(b) AS s FROM t0 GROUP BY a", ["int", "decimal(28,2)"]),
        ("SELECT SUM(a) AS s, SUM(c) AS f, COUNT(*) AS n FROM t0", ["bigint", "double", "bigint"]),
        ("SELECT MIN(b) AS lo, MAX(a) AS hi FROM t0", ["decimal(18,2)", "int"]),
        ("SELECT SUM(a * 2) AS s, STDDEV(b) AS m FROM t0", [None, None]),
        ("SELECT AVG(a) AS m, AVG(b) AS d FROM t0", ["double", "decimal(22,6)"]),
        ("SELECT TRY_SUM(a) AS s, MEAN(c) AS f FROM t0", ["bigint", "double"]),
        ("SELECT EXISTS (SELECT 1 FROM t1) AS m FROM t0", ["boolean"]),
        ("SELECT a, COUNT(*) OVER (PARTITION BY a) AS n FROM t0", ["int", "bigint"]),
        ("SELECT a FROM t0 UNION ALL SELECT a FROM t1", ["int"]),
        ("SELECT a FROM t0 UNION ALL SELECT b FROM t1", [None]),
        ("SELECT t0.b, t1.a FROM t0 LEFT JOIN t1 ON t0.a = t1.a", ["decimal(18,2)", "int"]),
    ],
)
def test_types_that_follow_from_the_tables(sql: str, expected: list[str | None]) -> None:
    plan = plan_of(sql)
    found = known_types(plan.root, lambda _, column: KINDS[column])
    assert [found.get(col) for col in output(plan.root)] == expected


def advised(
    sql: str,
    change: TableChange,
    mb: int = 1,
    laid: frozenset[str] = frozenset(),
    *,
    groups: bool = False,
    kind: str = "bigint",
) -> tuple[str, ...]:
    plan = plan_of(sql)
    types = {Col(f"c{number}"): kind for number in range(200)}
    situation = Situation(plan, {"t0": change}, types, frozenset({"t0"}))
    options = choose(situation, Script(relation, str)).options
    sizes = Sizes({"t0": Size(mb * 1_000_000, 1000, 1.0, change)}, 1000, 10)
    option = options[0] if options else None
    return advise(option, situation, sizes, {"t0": Laid(laid)}, groups)


COUNTS = "to the SELECT list: changes are then merged into groups"


@pytest.mark.parametrize(
    ("sql", "change", "expected"),
    [
        ("SELECT a, SUM(b) AS s FROM t0 GROUP BY a", ADDED, []),
        (
            "SELECT a, SUM(b) AS s FROM t0 GROUP BY a",
            REWRITTEN,
            [f"add COUNT(*) and COUNT(b) {COUNTS}"],
        ),
        (
            "SELECT a, SUM(b) AS s, COUNT(b) AS n FROM t0 GROUP BY a",
            REWRITTEN,
            [f"add COUNT(*) {COUNTS}"],
        ),
        ("SELECT a, SUM(b) AS s, COUNT(b) AS n, COUNT(*) AS k FROM t0 GROUP BY a", REWRITTEN, []),
        # no count would help
        ("SELECT a, MAX(b) AS s FROM t0 GROUP BY a", REWRITTEN, []),
        ("SELECT a, b FROM t0", REWRITTEN, []),
        (
            "SELECT MAX(b) AS s FROM t0 GROUP BY a",
            ADDED,
            ["add a to the SELECT list: changed rows are then found by it"],
        ),
    ],
)
def test_advice(sql: str, change: TableChange, expected: list[str]) -> None:
    assert list(advised(sql, change)) == expected


HAVING = "SELECT a, SUM(b) AS s, COUNT(b) AS n, COUNT(*) AS k FROM t0 GROUP BY a HAVING SUM(b) > 1"
HIGHEST = "SELECT a, MAX(b) AS s FROM t0 GROUP BY a HAVING MAX(b) > 1"
KEEP = "set row_state auto: changes are then merged into groups that are kept"


@pytest.mark.parametrize(
    ("sql", "change", "groups", "kind", "told"),
    [
        (HAVING, REWRITTEN, True, "bigint", True),
        (HAVING, ADDED, True, "bigint", True),
        (HAVING, REWRITTEN, False, "bigint", False),
        # kept groups are not merged where rows go, or never
        (HIGHEST, ADDED, True, "bigint", True),
        (HIGHEST, REWRITTEN, True, "bigint", False),
        (HAVING, REWRITTEN, True, "double", False),
        # it is cheap already
        ("SELECT a, SUM(b) AS s FROM t0 GROUP BY a", ADDED, True, "bigint", False),
        ("SELECT a, b FROM t0", REWRITTEN, True, "bigint", False),
    ],
)
def test_groups_are_to_be_kept_where_changes_would_be_merged_into_them(
    sql: str, change: TableChange, groups: bool, kind: str, told: bool
) -> None:
    assert (KEEP in advised(sql, change, groups=groups, kind=kind)) == told


def test_a_large_source_is_to_be_laid_out_by_the_key() -> None:
    sql = "SELECT a, COUNT(DISTINCT b) AS s FROM t0 GROUP BY a"
    told = ("sort or partition t0 by a: less of it is then read",)
    assert advised(sql, REWRITTEN, mb=1000) == told
    assert advised(sql, REWRITTEN, mb=1000, laid=frozenset({"a"})) == ()
    assert advised(sql, REWRITTEN, mb=10) == ()


def test_a_clock_is_to_be_removed() -> None:
    assert "remove current_timestamp()" in advise_volatile("CURRENT_TIMESTAMP")[0]
