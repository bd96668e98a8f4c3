"""Averages of groups: what they need beside them, and when they are computed again."""

from __future__ import annotations

import pytest
from plans import plan_of
from rounds import averaged

from sqb.refresh.averages import Average, average, averages, forbidden, not_averaged
from sqb.refresh.ir import Aggregate, Col, Project

WHOLE = {"try_sum": "bigint", "avg": "double"}
DECIMAL = {"try_sum": "decimal(28,2)", "avg": "decimal(22,6)"}
ALONE = "SELECT a, AVG(b) AS m, TRY_SUM(b) AS s, COUNT(b) AS c FROM t0 GROUP BY a"


def groups(sql: str) -> Aggregate:
    root = plan_of(sql).root
    assert isinstance(root, Project)
    assert isinstance(root.child, Aggregate)
    return root.child


def refused(sql: str, kinds: dict[str, str]) -> str | None:
    node = groups(sql)
    types = {col: kinds[call.function] for col, call in node.calls if call.function in kinds}
    (col,) = (col for col, call in node.calls if call.function in ("avg", "mean"))
    found = not_averaged(node, col, types)
    return found and found[0]


@pytest.mark.parametrize(
    ("sql", "kinds", "code"),
    [
        (f"SELECT a, {averaged('b')} FROM t0 GROUP BY a", WHOLE, None),
        (ALONE.replace("TRY_SUM", "SUM"), DECIMAL, "AGG_NOT_MERGEABLE"),
        (f"SELECT a, {averaged('abs(b) + c')} FROM t0 GROUP BY a", WHOLE, None),
        (ALONE, WHOLE, "AGG_NOT_MERGEABLE"),
        (ALONE, DECIMAL, None),
        (ALONE, {"try_sum": "decimal(28,13)", "avg": "decimal(22,17)"}, None),
        (ALONE, {"try_sum": "decimal(28,14)", "avg": "decimal(22,18)"}, "AGG_NOT_MERGEABLE"),
        (ALONE, {"try_sum": "decimal(38,2)", "avg": "decimal(36,6)"}, "AGG_NOT_MERGEABLE"),
        (ALONE, {"try_sum": "decimal(38,18)", "avg": "decimal(38,22)"}, "AGG_NOT_MERGEABLE"),
        (ALONE, {"try_sum": "double", "avg": "double"}, "FLOAT_SUM"),
        (ALONE, {}, "FLOAT_SUM"),
        ("SELECT a, AVG(b) AS m, TRY_SUM(b) AS s FROM t0 GROUP BY a", WHOLE, "AGG_NOT_MERGEABLE"),
        (ALONE.replace("SUM(b)", "SUM(c)"), WHOLE, "AGG_NOT_MERGEABLE"),
        (
            ALONE.replace("AVG(b)", "AVG(b) FILTER (WHERE c > 1)"),
            DECIMAL,
            "AGG_NOT_MERGEABLE",
        ),
    ],
)
def test_an_average_needs_its_sum_and_count_and_a_type_whose_digits_are_known(
    sql: str, kinds: dict[str, str], code: str | None
) -> None:
    assert refused(sql, kinds) == code


def test_an_average_knows_what_it_follows_from() -> None:
    node = groups(f"SELECT a, {averaged('b')} FROM t0 GROUP BY a")
    (found,) = averages(node).values()
    calls = dict(node.calls)
    assert found.large is not None
    assert [calls[col].function for col in (found.total, found.count)] == ["try_sum", "count"]
    assert "4503599627370496" in str(calls[found.large].text)


def test_sums_that_are_no_doubles_and_very_large_groups_are_refused() -> None:
    total, count, large = Col("s"), Col("c"), Col("l")
    named = {total: "s", count: "c", large: "l"}
    (whole,) = forbidden(Average(total, count, large), "double", named, "m")
    assert "s NOT BETWEEN -9007199254740991 AND 9007199254740991 OR l > 0" in whole.rows
    (decimal,) = forbidden(Average(total, count, None), "decimal(22,6)", named, "m")
    assert "c >= 1000000000000" in decimal.rows
    assert "m IS NULL" in decimal.rows
    assert decimal.rows.startswith("(c > 0 AND s IS NULL) OR ")


def test_a_decimal_is_divided_so_that_no_digit_is_rounded_twice() -> None:
    sql = average("s", "n", "decimal(22,6)")
    assert "div" in sql
    assert "AS DECIMAL(22,2)) / CAST(n AS DECIMAL(20,0)) AS DECIMAL(7,6))" in sql
