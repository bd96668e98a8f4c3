"""Which tables of a query drive it, and which ones it only looks things up in.

A table that is joined by equality on a key that is unique in it adds at most one partner to each
row: a change of it brings no new rows into a log. So the lookups hang below the drivers, each by
its key, perhaps one below the other. A key may be unique because someone says so, or only by the
rows that happen to be there. In doubt a table drives, since rows that are left out are lost; so
does what the query begins with, if its key is not declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from sqb.refresh.ir import (
    Aggregate,
    Col,
    Distinct,
    Equality,
    Explode,
    Expr,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Window,
    inputs,
    output,
    scans,
)
from sqb.refresh.types import one_to_one


class Side(msgspec.Struct, frozen=True):
    """One table in one join: the columns that it is joined by, each with the others that it meets.

    A table is a number: its place among the scans, or one beyond them for what is made from many
    rows. ``meets`` are all that it is compared with, also by what is no column or is equal without
    being the same. NULL is equal in ``null_safe`` columns. ``preserved``: the table's own rows are
    in the result in any case, so it can't be looked up in here. ``where`` are conditions
    over the table's columns, for its rows to be met at all.
    """

    table: int
    columns: Mapping[str, frozenset[int]]
    meets: frozenset[int]
    null_safe: frozenset[str] = frozenset()
    preserved: bool = False
    where: tuple[Expr, ...] = ()

    def met(self, known: frozenset[int]) -> frozenset[str]:
        """The columns that are compared with these tables alone."""
        return frozenset(name for name, others in self.columns.items() if others <= known)


#: Asks the rows of a table for which conditions hold whether columns are unique in them; NULL
#: counts in the last columns.
Unique = Callable[[str, frozenset[str], frozenset[str], tuple[Expr, ...]], bool]
#: Spark's type of an expression over the columns of a node; None: not known.
KindOf = Callable[[Node, Expr], "str | None"]


def lookups(
    root: Node,
    changed: Iterable[str],
    keys: Mapping[str, frozenset[str]],
    unique: Unique,
    kind_of: KindOf = lambda _node, _expr: None,
) -> frozenset[str]:
    """The changed tables that are only looked up in: all their occurrences are.

    ``keys`` are declared unique keys; ``unique`` is asked about the others.
    """
    tables = [scan.source for scan in scans(root)]
    hanging = below(root, keys, unique, kind_of)
    driving = {name for number, name in enumerate(tables) if number not in hanging}
    return frozenset(name for name in changed if name in tables and name not in driving)


def below(
    root: Node,
    keys: Mapping[str, frozenset[str]],
    unique: Unique,
    kind_of: KindOf = lambda _node, _expr: None,
) -> dict[int, frozenset[str]]:
    """The occurrences of tables that hang below others, with the columns that they hang by."""
    return _Hanging(root, keys, unique, kind_of).found()


class _Hanging:
    def __init__(
        self,
        root: Node,
        keys: Mapping[str, frozenset[str]],
        unique: Unique,
        kind_of: KindOf,
    ) -> None:
        self.keys, self.unique = keys, unique
        self.tables = [scan.source for scan in scans(root)]
        joins = _Joins(root, kind_of)
        self.groups = joins.groups
        self.sides: dict[int, list[Side]] = {
            n: [] for n in (*range(len(self.tables)), *joins.groups)
        }
        self.joins = joins.found
        for join in joins.found:
            for side in join:
                self.sides[side.table].append(side)
        self._asked: dict[tuple[str, frozenset[str], frozenset[str], tuple[Expr, ...]], bool] = {}

    def found(self) -> dict[int, frozenset[str]]:
        every = frozenset(self.sides)
        drivers = {n for n in every if not any(self._by(side, every) for side in self.sides[n])}
        while True:
            hanging = self._closure(drivers)
            left = [n for n in sorted(every) if n not in drivers and n not in hanging]
            if 0 in hanging and not self._declared(0):
                # what the query begins with is no lookup by chance
                drivers.add(0)
                continue
            if not left:
                return {n: by for n, by in hanging.items() if n < len(self.tables)}
            known = frozenset({*drivers, *hanging})
            knot = self._knot(left)
            drivers |= (
                # what it is joined to has several of it
                {n for n in left if any(side.meets & known for side in self.sides[n])}
                # each could be looked up in another: what only happens to be unique may drive
                or {n for n in knot if not self._declared(n)}
                or {knot[0]}
            )

    def _knot(self, left: list[int]) -> list[int]:
        """Of these tables, those that hang below no others than hang below them."""
        every = frozenset(self.sides)
        above = {
            n: {m for side in self.sides[n] if self._by(side, every) for m in side.meets - {n}}
            for n in left
        }
        for _ in left:
            above = {n: ms.union(*(above.get(m, set()) for m in ms)) for n, ms in above.items()}
        return [n for n in left if all(n in above.get(m, ()) for m in above[n])] or left

    def _closure(self, drivers: set[int]) -> dict[int, frozenset[str]]:
        hanging: dict[int, frozenset[str]] = {}
        while True:
            known = frozenset({*drivers, *hanging})
            more = {
                n: by
                for n, sides in self.sides.items()
                if n not in known
                for by in [next(filter(None, (self._by(s, known) for s in sides)), None)]
                if by
            }
            if not more:
                return hanging
            hanging |= more

    def _by(self, side: Side, known: frozenset[int]) -> frozenset[str] | None:
        """The columns that a table hangs by below those that are known; None: it does not."""
        columns = side.met(known - {side.table})
        if not columns or side.preserved:
            return None
        if side.table in self.groups:
            return columns if self.groups[side.table] <= columns else None
        name = self.tables[side.table]
        if name in self.keys:
            return columns if self._covers(name, columns) else None
        if self._met_by_key(side):
            return None
        asked = (name, columns, side.null_safe & columns, side.where)
        if asked not in self._asked:
            self._asked[asked] = self.unique(*asked)
        return columns if self._asked[asked] else None

    def _met_by_key(self, side: Side) -> bool:
        """Is it joined to the declared key of another table, which then is the lookup?"""
        (join,) = [found for found in self.joins if any(one is side for one in found)]
        return any(
            other is not side and not other.preserved and self._by_key(other) for other in join
        )

    def _by_key(self, side: Side) -> bool:
        if side.table in self.groups:
            return False
        return self._covers(self.tables[side.table], frozenset(side.columns))

    def _covers(self, name: str, columns: frozenset[str]) -> bool:
        return name in self.keys and self.keys[name] <= {column.lower() for column in columns}

    def _declared(self, number: int) -> bool:
        return number not in self.groups and self.tables[number] in self.keys


class _Joins:
    """The joins of a plan, each with the tables that it compares.

    ``groups`` are what is made from many rows, with the columns that are unique in it, if any are.
    """

    def __init__(self, root: Node, kind_of: KindOf) -> None:
        self.found: list[list[Side]] = []
        self.groups: dict[int, frozenset[str]] = {}
        self._kind_of = kind_of
        #: For each column: the tables it is made from, and the one column that it is, if it is one.
        self._tables: dict[Col, frozenset[int]] = {}
        self._columns: dict[Col, tuple[int, str]] = {}
        #: For each table the conditions on its rows that were met so far.
        self._where: dict[int, tuple[Expr, ...]] = {}
        self._numbers = iter(range(len(scans(root))))
        self._next = len(scans(root))
        self._visit(root)

    def _visit(self, node: Node) -> None:
        for child in inputs(node):
            self._visit(child)
        match node:
            case Scan():
                number = next(self._numbers)
                for col, name in node.columns:
                    self._columns[col], self._tables[col] = (number, name), frozenset({number})
            case Project():
                for col, expr in node.items:
                    self._tables[col] = self._made_from(expr.columns)
                    if expr.column is not None and expr.column in self._columns:
                        self._columns[col] = self._columns[expr.column]
            case Join(kind="inner" | "left"):
                self._join(node)
            case Explode():
                beside = self._made_from(output(node.child))
                for col in output(node):
                    self._tables.setdefault(col, beside)
                    self._columns.pop(col, None)  # there may be several of each row
            case Filter():
                self._where |= self._conditions([node.predicate])
            case Window() | Distinct() | Join(kind="semi" | "anti" | "mark"):
                beside = self._made_from(output(inputs(node)[0]))
                for col in output(node):
                    self._tables.setdefault(col, beside)
            case _:
                # what is made from many rows is not a table that is looked up in
                number, self._next = self._next, self._next + 1
                for col in output(node):
                    self._columns[col], self._tables[col] = (number, col.name), frozenset({number})
                keys = [col.name for col, _ in node.keys] if isinstance(node, Aggregate) else []
                self.groups[number] = frozenset(keys or ["?"])

    def _made_from(self, cols: Iterable[Col]) -> frozenset[int]:
        found = (self._tables.get(col, frozenset[int]()) for col in cols)
        return frozenset(number for tables in found for number in tables)

    def _join(self, node: Join) -> None:
        found: dict[int, _Joined] = {}
        for equality in node.equalities:
            one, two = equality.left, equality.right
            alike = self._alike(node, equality)
            for mine, theirs in ((one, two), (two, one)):
                others = self._made_from(theirs.columns)
                at = self._columns.get(mine.column) if mine.column is not None else None
                for number in self._made_from(mine.columns):
                    joined = found.setdefault(number, _Joined())
                    joined.meets |= others
                    joined.preserved |= node.kind == "left" and mine is one
                    if alike and others and at is not None:
                        joined.columns[at[1]] = joined.columns.get(at[1], frozenset()) | others
                        joined.null_safe |= {at[1]} if equality.null_safe else set()
        where = self._where | self._conditions(node.residual)
        self.found.append(
            [
                Side(
                    n,
                    j.columns,
                    frozenset(j.meets),
                    frozenset(j.null_safe),
                    j.preserved,
                    where.get(n, ()),
                )
                for n, j in found.items()
            ]
        )
        if node.kind == "inner":
            self._where = where

    def _conditions(self, exprs: Iterable[Expr]) -> dict[int, tuple[Expr, ...]]:
        """Of each table that one of them speaks of alone, all that is known by then."""
        out: dict[int, tuple[Expr, ...]] = {}
        for expr in exprs:
            places = [self._columns.get(part) for part in expr.parts if isinstance(part, Col)]
            numbers = {place[0] if place is not None else -1 for place in places}
            number = numbers.pop() if len(numbers) == 1 else -1
            if number == -1 or number in self.groups:
                continue
            parts = (Col(self._columns[p][1]) if isinstance(p, Col) else p for p in expr.parts)
            known = out.get(number) or self._where.get(number, ())
            out[number] = (*known, Expr(tuple(parts)))
        return out

    def _alike(self, node: Join, equality: Equality) -> bool:
        """Are values of both sides equal only if they are the same?"""
        one = self._kind_of(node.left, equality.left)
        two = self._kind_of(node.right, equality.right)
        return one is None or two is None or one_to_one(one, two)


class _Joined:
    """A ``Side`` in the making."""

    def __init__(self) -> None:
        self.columns: dict[str, frozenset[int]] = {}
        self.meets: set[int] = set()
        self.null_safe: set[str] = set()
        self.preserved = False
