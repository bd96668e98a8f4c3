"""Scalar sub-queries of a plan: which there are, and the plan once their values are known.

A sub-query whose value is what it was may be replaced by that value: what its tables did is then
no change. Its rows are those of ``Single.child``, on the old and on the new tables.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqb.refresh.ir import (
    Col,
    Expr,
    Join,
    Node,
    Project,
    Single,
    column,
    inputs,
    output,
    with_inputs,
)


def singles(node: Node) -> list[Single]:
    """The scalar sub-queries that no other one holds, each once."""
    if isinstance(node, Single):
        return [node]
    found = [single for child in inputs(node) for single in singles(child)]
    return list({single.column: single for single in found}.values())


def bound(node: Node, values: Mapping[Col, str]) -> Node:
    """The plan with the values of sub-queries, given as SQL by their columns, in their place.

    >>> from sqb.refresh.ir import Scan
    >>> a, b, c = Col("a"), Col("b"), Col("c")
    >>> plan = Join("inner", Scan("t", ((a, "a"),)), Single(Scan("p", ((b, "b"),)), c))
    >>> bound(plan, {c: "3"}).items[-1]
    (Col(name='c'), Expr(parts=('3',), coalesce=()))
    """
    if isinstance(node, Join) and isinstance(node.right, Single) and node.right.column in values:
        left = bound(node.left, values)
        items = [(col, column(col)) for col in output(left)]
        items.append((node.right.column, Expr((values[node.right.column],))))
        return Project(left, tuple(items))
    return with_inputs(node, [bound(child, values) for child in inputs(node)])
