"""Casts that Spark makes of the sides of a set operation, written out."""

from __future__ import annotations

import pytest

from sqb.refresh.ir import Col, Equality, Expr, Join, Node, Project, Scan, SetOperation, column
from sqb.refresh.levels import level
from sqb.sql.fragments import Unsupported

A, B, C = Col("c1"), Col("c2"), Col("c3")
LEFT, RIGHT = Scan("t", ((A, "a"),)), Scan("u", ((B, "b"),))
UNION = SetOperation("union", True, LEFT, RIGHT, (C,))


def levelled(node: Node, left: str, right: str, whole: list[str]) -> Node:
    kinds = {"t": [left], "u": [right]}
    return level(node, lambda one: kinds[one.source] if isinstance(one, Scan) else whole)


@pytest.mark.parametrize(
    ("left", "right", "whole", "casts"),
    [
        ("int", "int", "int", [None, None]),
        ("int", "string", "bigint", ["CAST(c1 AS bigint)", "CAST(c2 AS bigint)"]),
        ("decimal(10,2)", "decimal(18,4)", "decimal(18,4)", ["CAST(c1 AS decimal(18,4))", None]),
    ],
)
def test_a_side_has_the_type_of_the_whole(
    left: str, right: str, whole: str, casts: list[str | None]
) -> None:
    node = levelled(UNION, left, right, [whole])
    assert isinstance(node, SetOperation)
    found = []
    for side in (node.left, node.right):
        parts = side.items[0][1].parts if isinstance(side, Project) else None
        found.append(
            parts and "".join(part.name if isinstance(part, Col) else part for part in parts)
        )
    assert found == casts


def test_what_can_not_be_cast_is_refused() -> None:
    with pytest.raises(Unsupported, match="a set operation"):
        levelled(UNION, "array<int>", "array<bigint>", ["array<bigint>"])
    full = Join("full", LEFT, RIGHT, (Equality(column(A), column(B)),))
    with pytest.raises(Unsupported, match="a full join that compares string and int"):
        levelled(full, "string", "int", ["string", "int"])
    assert levelled(full, "int", "bigint", ["int", "bigint"]) == full


@pytest.mark.parametrize(
    ("left", "right", "plain"),
    [
        ("int", "int", True),
        ("int", "bigint", True),
        ("string", "string", True),
        ("string", "int", False),  # '1' and '01' both equal 1
        ("date", "timestamp", False),
    ],
)
def test_marks_tell_whether_equal_values_are_one(left: str, right: str, plain: bool) -> None:
    equal = Equality(column(A), column(B))
    mark = Join("mark", LEFT, RIGHT, (equal,), mark=C)
    found = levelled(mark, left, right, [])
    assert isinstance(found, Join)
    assert found.plain == plain
    more = Join("mark", LEFT, RIGHT, (equal,), (Expr((A, " > ", B)),), mark=C)
    assert levelled(more, left, right, []) == more
    sums = Join("mark", LEFT, RIGHT, (Equality(Expr((A, " + 1")), column(B)),), mark=C)
    assert levelled(sums, left, right, []) == sums
