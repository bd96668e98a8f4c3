"""Which columns of a result depend on the moment of the run.

The same query with two different moments gives two plans of one form; a column is dated if its
own expression differs or uses one that does. A filter that differs lets other rows through, but
says nothing about their values.
"""

from __future__ import annotations

from sqb.refresh.ir import (
    Aggregate,
    Col,
    Constants,
    Explode,
    Expr,
    Join,
    Node,
    Project,
    SetOperation,
    Single,
    Window,
    expressions,
    inputs,
    output,
)
from sqb.sql.fragments import Unsupported


def dated_columns(one: Node, other: Node) -> tuple[bool, ...]:
    """For each column of the result: does it depend on the moment?"""
    dated: set[Col] = set()
    _visit(one, other, dated)
    return tuple(col in dated for col in output(one))


def _visit(one: Node, other: Node, dated: set[Col]) -> None:
    if type(one) is not type(other):
        raise Unsupported("the plan has another form", "CONSTANT_MOVED")
    for left, right in zip(inputs(one), inputs(other), strict=True):
        _visit(left, right, dated)

    def judge(col: Col, mine: Expr, theirs: Expr) -> None:
        if mine != theirs or not mine.columns.isdisjoint(dated):
            dated.add(col)

    match one, other:
        case Project(), Project():
            for (col, mine), (_, theirs) in zip(one.items, other.items, strict=True):
                judge(col, mine, theirs)
        case Explode(), Explode():
            for col in one.made:
                judge(col, one.generator, other.generator)
        case Aggregate(), Aggregate():
            for (col, mine), (_, theirs) in zip(one.keys, other.keys, strict=True):
                judge(col, mine, theirs)
            for (col, call), (_, called) in zip(one.calls, other.calls, strict=True):
                judge(col, call.text, called.text)
        case Window(), Window():
            for item, their in zip(one.items, other.items, strict=True):
                judge(item.column, item.call.text, their.call.text)
        case SetOperation(), SetOperation():
            sides = zip(one.columns, output(one.left), output(one.right), strict=True)
            dated.update(col for col, left, right in sides if left in dated or right in dated)
        case Constants(), Constants():
            for rows, others in zip(one.rows, other.rows, strict=True):
                for col, mine, theirs in zip(output(one), rows, others, strict=True):
                    judge(col, mine, theirs)
        case Join(), Join() if one.mark is not None:
            read = frozenset(col for expr in expressions(one) for col in expr.columns)
            if _matching(one) != _matching(other) or not read.isdisjoint(dated):
                dated.add(one.mark)
        case Single(), Single():
            if one.child != other.child:
                dated.add(one.column)
        case _:
            pass


def _matching(node: Join) -> tuple[object, ...]:
    """All that a match depends on beside the row itself."""
    return node.right, node.equalities, node.residual
