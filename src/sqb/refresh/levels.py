"""One type on both sides of what is compared or put together, as Spark casts it.

A rule looks at one side of a set operation, and at keys of one side of a full join, alone. There a
value must be what it is in the whole: a number beside strings, a wider decimal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from sqb.refresh.ir import (
    Col,
    Expr,
    Join,
    Node,
    Project,
    SetOperation,
    column,
    inputs,
    output,
    with_inputs,
)
from sqb.refresh.restrict import plain_equalities
from sqb.refresh.types import one_to_one
from sqb.sql.fragments import Unsupported

#: Spark's types of a node's columns.
KindsOf = Callable[[Node], Sequence[str]]


def level(node: Node, kinds: KindsOf) -> Node:
    """The plan whose set operations put columns of one type together, and whose marks tell whether
    they are made by equal columns of one type.

    Raises ``Unsupported`` where Spark's cast can't be written, and for a full join whose sides are
    of types that compare otherwise than they are told apart.
    """
    node = with_inputs(node, [level(child, kinds) for child in inputs(node)])
    if isinstance(node, SetOperation):
        wanted = kinds(node)
        return with_inputs(node, [_cast(side, kinds(side), wanted) for side in inputs(node)])
    if isinstance(node, Join) and node.mark is not None and not node.residual:
        found = {
            col: kind
            for side in inputs(node)
            for col, kind in zip(output(side), kinds(side), strict=True)
        }
        pairs = [(e.left.column, e.right.column) for e in node.equalities]
        plain = all(one and two and one_to_one(found[one], found[two]) for one, two in pairs)
        return msgspec.structs.replace(node, plain=plain)
    if isinstance(node, Join) and node.kind == "full":
        found = dict(zip(output(node), kinds(node), strict=True))
        for equal in plain_equalities(node):
            one, two = (found[col] for e in (equal.left, equal.right) if (col := e.column))
            if not one_to_one(one, two):
                raise Unsupported(f"a full join that compares {one} and {two}")
    return node


def _cast(side: Node, given: Sequence[str], wanted: Sequence[str]) -> Node:
    if list(given) == list(wanted):
        return side
    items: list[tuple[Col, Expr]] = []
    for col, mine, kind in zip(output(side), given, wanted, strict=True):
        if mine != kind and ("<" in kind or "collate" in kind):
            raise Unsupported(f"a set operation of {mine} and {kind}")
        cast = column(col) if mine == kind else Expr(("CAST(", col, f" AS {kind})"))
        items.append((Col(f"{col.name}_as"), cast))
    return Project(side, tuple(items))
