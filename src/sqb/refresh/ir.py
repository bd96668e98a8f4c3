"""The small plan that row-level refresh reasons about.

Every column has a name of its own in the whole plan, so a join needs no qualifiers and an
expression can be moved by substitution alone. Scalar expressions are text with columns in it: the
user's own words, never a reprint. A node that is not one of these is not refreshed by rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec


class Col(msgspec.Struct, frozen=True):
    """A column; its name is unique in the plan."""

    name: str


class Expr(msgspec.Struct, frozen=True):
    """A deterministic scalar expression: text with columns in it.

    ``coalesce`` holds the arguments where the whole expression is COALESCE(a, b): the one form
    whose meaning a rule has to know.
    """

    parts: tuple[str | Col, ...]
    coalesce: tuple[Expr, ...] = ()

    @property
    def columns(self) -> frozenset[Col]:
        """The columns that it reads."""
        return frozenset(part for part in self.parts if isinstance(part, Col))

    @property
    def column(self) -> Col | None:
        """The column that it merely hands on, if it does."""
        only = self.parts[0] if len(self.parts) == 1 else None
        return only if isinstance(only, Col) else None


def collated(expr: Expr) -> bool:
    """Does it make strings that differ compare as equal?

    >>> collated(Expr((Col("a"), " COLLATE UTF8_LCASE"))), collated(Expr((Col("collate"),)))
    (True, False)
    """
    return any(isinstance(part, str) and _COLLATE.search(part) for part in expr.parts)


_COLLATE = re.compile(r"\bCOLLATE\b", re.IGNORECASE)


def column(col: Col) -> Expr:
    """The expression that is a column."""
    return Expr((col,))


def joined(parts: Iterable[str | Col]) -> tuple[str | Col, ...]:
    """The parts of an expression, texts that stand side by side as one."""
    out: list[str | Col] = []
    for part in parts:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        else:
            out.append(part)
    return tuple(out)


def columns(cols: Iterable[Col]) -> tuple[Expr, ...]:
    """Each column as an expression."""
    return tuple(column(col) for col in cols)


def substitute(expr: Expr, defined: Mapping[Col, Expr]) -> Expr:
    """The expression over the columns that ``defined`` is written in.

    >>> a, b = Col("a"), Col("b")
    >>> substitute(Expr((a, " + 1")), {a: Expr((b, " * 2"))}).parts
    ('(', Col(name='b'), ' * 2', ')', ' + 1')
    """
    if not any(col in defined for col in expr.columns):
        return expr
    whole = expr.column
    if whole is not None:
        return defined[whole]
    parts: list[str | Col] = []
    for part in expr.parts:
        inner = defined.get(part) if isinstance(part, Col) else None
        if inner is None:
            parts.append(part)
        elif inner.column is not None:
            parts.append(inner.column)
        else:
            parts += ["(", *inner.parts, ")"]
    return Expr(tuple(parts), tuple(substitute(arg, defined) for arg in expr.coalesce))


class Scan(msgspec.Struct, frozen=True):
    """One occurrence of a table: its columns and what they are called there."""

    source: str
    columns: tuple[tuple[Col, str], ...]


class Constants(msgspec.Struct, frozen=True):
    """Rows that the query itself holds."""

    rows: tuple[tuple[Expr, ...], ...]
    columns: tuple[Col, ...]


class Single(msgspec.Struct, frozen=True):
    """The value of a scalar sub-query: one row, NULL where the child has none."""

    child: Node
    column: Col


class Filter(msgspec.Struct, frozen=True):
    """Rows for which the predicate is true.

    ``before`` is the predicate as it was when the old rows were made, where it was another: a
    constant in it, such as today's date, has moved.
    """

    child: Node
    predicate: Expr
    before: Expr | None = None


class Project(msgspec.Struct, frozen=True):
    """Columns computed from each row alone.

    ``before`` are the same columns as they were computed when the old rows were made, where a
    constant in them has moved.
    """

    child: Node
    items: tuple[tuple[Col, Expr], ...]
    before: tuple[tuple[Col, Expr], ...] | None = None


class Explode(msgspec.Struct, frozen=True):
    """A generator beside each row: the child's columns, then those it makes."""

    child: Node
    generator: Expr
    made: tuple[Col, ...]
    outer: bool = False


class Equality(msgspec.Struct, frozen=True):
    """A conjunct of a join: one side's expression equals the other's."""

    left: Expr
    right: Expr
    null_safe: bool = False


JoinKind = Literal["inner", "left", "full", "semi", "anti", "mark"]


class Join(msgspec.Struct, frozen=True):
    """A join; a right join is a left join swapped, a cross join an inner one without conjuncts.

    A mark join keeps every row of its left side, with whether the right one has a match beside it.
    ``once``: the right side has one row at most for each of the left, if both are of one type.
    ``plain``: rows match by equal columns of one type alone.
    """

    kind: JoinKind
    left: Node
    right: Node
    equalities: tuple[Equality, ...] = ()
    residual: tuple[Expr, ...] = ()
    mark: Col | None = None
    once: bool = False
    plain: bool = False


class Call(msgspec.Struct, frozen=True):
    """An aggregate or window function as text, with the name it is judged by.

    ``arguments`` are the expressions in it that rules need to see; ``text`` has everything.
    """

    function: str
    text: Expr
    arguments: tuple[Expr, ...] = ()
    filtered: bool = False


class Aggregate(msgspec.Struct, frozen=True):
    """GROUP BY; without keys it is one row whatever the input."""

    child: Node
    keys: tuple[tuple[Col, Expr], ...]
    calls: tuple[tuple[Col, Call], ...]


class WindowItem(msgspec.Struct, frozen=True):
    """One window function: what it is partitioned by, and all of its text."""

    column: Col
    partition: tuple[Expr, ...]
    call: Call


class Window(msgspec.Struct, frozen=True):
    """The child's columns, then one for each window function."""

    child: Node
    items: tuple[WindowItem, ...]


class Distinct(msgspec.Struct, frozen=True):
    """Each row once."""

    child: Node


SetKind = Literal["union", "except", "intersect"]


class SetOperation(msgspec.Struct, frozen=True):
    """Two inputs by position; ``columns`` are the names of the result."""

    kind: SetKind
    all: bool
    left: Node
    right: Node
    columns: tuple[Col, ...]


class Order(msgspec.Struct, frozen=True):
    """What rows are ordered by, and where NULL stands."""

    expr: Expr
    descending: bool
    nulls_first: bool


class Top(msgspec.Struct, frozen=True):
    """The first rows of the child by an order; it ends a query and stands nowhere else."""

    child: Node
    order: tuple[Order, ...]
    count: int


Node = (
    Scan
    | Constants
    | Single
    | Filter
    | Project
    | Explode
    | Join
    | Aggregate
    | Window
    | Distinct
    | SetOperation
    | Top
)


def output(node: Node) -> tuple[Col, ...]:
    """The columns of a node's rows, in order."""
    match node:
        case Scan():
            return tuple(col for col, _ in node.columns)
        case Constants():
            return node.columns
        case Single():
            return (node.column,)
        case Project():
            return tuple(col for col, _ in node.items)
        case Explode():
            return (*output(node.child), *node.made)
        case Join():
            left = output(node.left)
            if node.mark is not None:
                return (*left, node.mark)
            return left if node.kind in ("semi", "anti") else (*left, *output(node.right))
        case Aggregate():
            return (*(col for col, _ in node.keys), *(col for col, _ in node.calls))
        case Window():
            return (*output(node.child), *(item.column for item in node.items))
        case SetOperation():
            return node.columns
        case Filter() | Distinct() | Top():
            return output(node.child)


def inputs(node: Node) -> tuple[Node, ...]:
    """The nodes that a node reads."""
    match node:
        case Scan() | Constants():
            return ()
        case Join() | SetOperation():
            return (node.left, node.right)
        case _:
            return (node.child,)


def with_inputs(node: Node, children: Sequence[Node]) -> Node:
    """The node over other inputs."""
    names = ("left", "right") if len(children) == 2 else ("child",)
    changed = dict(zip(names, children, strict=True)) if children else {}
    return msgspec.structs.replace(node, **changed)


def scans(node: Node) -> list[Scan]:
    """Every occurrence of a table below a node."""
    if isinstance(node, Scan):
        return [node]
    return [scan for child in inputs(node) for scan in scans(child)]


def moved_constants(node: Node) -> bool:
    """Is there a filter or a column below that was another before?"""
    if isinstance(node, Filter | Project) and node.before is not None:
        return True
    return any(moved_constants(child) for child in inputs(node))


def positions(node: SetOperation) -> tuple[dict[Col, Expr], dict[Col, Expr]]:
    """What each column of the result is on the left and on the right."""
    left = dict(zip(node.columns, columns(output(node.left)), strict=True))
    right = dict(zip(node.columns, columns(output(node.right)), strict=True))
    return left, right


def expressions(node: Node) -> tuple[Expr, ...]:
    """What a node computes, over the columns of its inputs."""
    match node:
        case Scan() | Constants() | Single() | Distinct() | SetOperation():
            return ()
        case Filter():
            return (node.predicate, *([node.before] if node.before is not None else []))
        case Project():
            return tuple(expr for _, expr in (*node.items, *(node.before or ())))
        case Explode():
            return (node.generator,)
        case Join():
            sides = [expr for e in node.equalities for expr in (e.left, e.right)]
            return (*sides, *node.residual)
        case Aggregate():
            calls = [expr for _, call in node.calls for expr in (call.text, *call.arguments)]
            return (*(expr for _, expr in node.keys), *calls)
        case Window():
            return tuple(expr for i in node.items for expr in (i.call.text, *i.partition))
        case Top():
            return tuple(one.expr for one in node.order)


def hands_on_collated(node: Node) -> bool:
    """Is a string under a collation more than a part of a condition?"""
    within = [e for row in node.rows for e in row] if isinstance(node, Constants) else []
    if isinstance(node, Join):
        within += [expr for e in node.equalities for expr in (e.left, e.right)]
    elif not isinstance(node, Filter):
        within += expressions(node)
    return any(map(collated, within)) or any(map(hands_on_collated, inputs(node)))


def strange(node: Node) -> Col | None:
    """A column that is used where it is not; None: the plan is whole."""
    known = frozenset(col for child in inputs(node) for col in output(child))
    for expr in expressions(node):
        for col in expr.columns:
            if col not in known:
                return col
    found = (strange(child) for child in inputs(node))
    return next((col for col in found if col is not None), None)
