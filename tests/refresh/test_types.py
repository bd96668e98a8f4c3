"""What types tell of a plan before Spark is asked."""

from __future__ import annotations

import pytest
from plans import plan_of

from sqb.refresh.types import mistied

QUERY = "SELECT a, (SELECT COUNT(*) FROM t1 WHERE t1.b = t0.a AND t1.a <=> t0.b) AS n FROM t0"


@pytest.mark.parametrize(
    ("outer", "inner", "tied"),
    [
        ("int", "int", True),
        ("bigint", "int", True),
        ("int", "decimal(10,2)", True),
        ("string", "string", True),
        # '1' and '01' are two groups, and both equal 1
        ("int", "string", False),
        ("string", "int", False),
        ("double", "bigint", False),
        ("date", "string", False),
        (None, "int", False),
    ],
)
def test_a_correlated_sub_query_compares_values_one_to_one(
    outer: str | None, inner: str, tied: bool
) -> None:
    types = {("t0", "a"): outer, ("t1", "b"): inner, ("t0", "b"): "int", ("t1", "a"): "int"}
    found = mistied(plan_of(QUERY).root, lambda source, column: types.get((source, column)))
    assert (found is None) is tied
    if not tied:
        assert found is not None
        assert "a correlated sub-query that compares" in found


def test_other_joins_may_compare_what_they_like() -> None:
    plan = plan_of("SELECT t0.a FROM t0 JOIN t1 ON t1.b = t0.a WHERE EXISTS (SELECT 1 FROM t2)")
    assert mistied(plan.root, lambda _source, column: "int" if column == "a" else "string") is None
