"""The types of a plan's columns as far as they follow from those of the tables alone.

Spark is the judge of types; this is for telling beforehand what it would say.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqb.refresh.ir import (
    Aggregate,
    Call,
    Col,
    Explode,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    Window,
    inputs,
    output,
)

#: The Spark type of a source's column; None: not known.
ColumnType = Callable[[str, str], str | None]

_COUNTS = frozenset({"count", "count_if", "count_distinct", "row_number", "rank", "dense_rank"})
#: Whole numbers with the digits that Spark reckons them with beside decimals.
_WHOLE = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_FLOATING = frozenset({"float", "double"})
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


def known_types(root: Node, of: ColumnType) -> dict[Col, str]:
    """The types that are known of all columns of a plan."""
    found: dict[Col, str] = {}
    _learn(root, of, found)
    return found


def _learn(node: Node, of: ColumnType, found: dict[Col, str]) -> None:
    for child in inputs(node):
        _learn(child, of, found)
    match node:
        case Scan():
            for col, physical in node.columns:
                _note(found, col, of(node.source, physical))
        case Project():
            for col, expr in node.items:
                _note(found, col, found.get(expr.column) if expr.column is not None else None)
        case Aggregate():
            for col, expr in node.keys:
                _note(found, col, found.get(expr.column) if expr.column is not None else None)
            for col, call in node.calls:
                _note(found, col, _called(call, found))
        case Window():
            for item in node.items:
                _note(found, item.column, _called(item.call, found))
        case SetOperation():
            sides = zip(node.columns, output(node.left), output(node.right), strict=True)
            for col, left, right in sides:
                same = found.get(left) == found.get(right)
                _note(found, col, found.get(left) if same else None)
        case Join():
            if node.mark is not None:
                found[node.mark] = "boolean"
        case Explode() | _:
            pass


def _note(found: dict[Col, str], col: Col, kind: str | None) -> None:
    if kind is not None:
        found[col] = kind


def _called(call: Call, found: dict[Col, str]) -> str | None:
    """The type of an aggregate over a plain column."""
    if call.function in _COUNTS:
        return "bigint"
    argument = call.arguments[0].column if len(call.arguments) == 1 else None
    kind = found.get(argument) if argument is not None else None
    if kind is None:
        return None
    if call.function in ("min", "max"):
        return kind
    if call.function not in ("sum", "try_sum", "avg", "mean"):
        return None
    if kind in _WHOLE and call.function in ("sum", "try_sum"):
        return "bigint"
    if kind in _WHOLE or kind in _FLOATING:
        return "double"
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        return None
    if call.function in ("avg", "mean"):
        return f"decimal({min(int(decimal[1]) + 4, 38)},{min(int(decimal[2]) + 4, 38)})"
    return f"decimal({min(int(decimal[1]) + 10, 38)},{decimal[2]})"


def mistied(root: Node, of: ColumnType) -> str | None:
    """A correlated sub-query tied by values of which several may equal one; None: there is none.

    Of each value of the inner side one group is made. The strings '1' and '01' are two, and both
    equal the number 1.
    """
    types = known_types(root, of)

    def look(node: Node) -> str | None:
        if isinstance(node, Join) and node.once:
            for equal in node.equalities:
                sides = [
                    types.get(e.column) if e.column else None for e in (equal.left, equal.right)
                ]
                if not one_to_one(*sides):
                    told = " and ".join(side or "a type that is not known" for side in sides)
                    return f"a correlated sub-query that compares {told}"
        return next((found for child in inputs(node) if (found := look(child))), None)

    return look(root)


def one_to_one(one: str | None, two: str | None) -> bool:
    """Does a value of one type equal at most one of the other?

    Of decimals that no third type holds, Spark rounds one before it compares them.

    >>> one_to_one("int", "bigint"), one_to_one("int", "string"), one_to_one("date", "date")
    (True, False, True)
    >>> one_to_one("decimal(38,0)", "decimal(38,18)"), one_to_one("int", "decimal(18,8)")
    (False, True)
    """
    if one is None or two is None:
        return False
    sides = [_digits(kind) for kind in (one, two)]
    known = [side for side in sides if side is not None]
    fits = len(known) == 2 and sum(map(max, *known)) <= 38
    return one == two or fits


def _digits(kind: str) -> tuple[int, int] | None:
    """How many digits stand before and behind the point of an exact number."""
    found = _DECIMAL.fullmatch(kind)
    if found is not None:
        return int(found[1]) - int(found[2]), int(found[2])
    return (_WHOLE[kind], 0) if kind in _WHOLE else None
