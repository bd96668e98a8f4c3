"""What a query is made of: blocks, relations and conditions, expressions as spans of the text."""

from __future__ import annotations

from typing import Literal

import msgspec

from sqb.sql.fragments import Fragment

JoinWord = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]

SetWord = Literal["union", "except", "intersect"]


class Item(msgspec.Struct, frozen=True):
    """One entry of a select list: an expression with its name, or ``*`` of a table or of all.

    ``without`` are the columns that ``*`` leaves out; ``aliases`` name several columns of one
    expression, which a generator makes.
    """

    expr: Fragment | None
    alias: str | None
    star: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


class Conjunct(msgspec.Struct, frozen=True):
    """One condition of an AND chain.

    ``equal`` splits ``a = b`` or ``a <=> b``. ``query`` is the sub-query of EXISTS or IN, whose
    left side is ``values``: one expression, or several in parentheses.
    """

    expr: Fragment | None = None
    equal: tuple[Fragment, Fragment] | None = None
    null_safe: bool = False
    query: Query | None = None
    values: tuple[Fragment, ...] = ()
    negated: bool = False


class Table(msgspec.Struct, frozen=True):
    """A name in FROM, by the offset of its reference in the text."""

    start: int
    alias: str


class Derived(msgspec.Struct, frozen=True):
    """A query in FROM."""

    query: Query
    alias: str | None
    columns: tuple[str, ...] = ()


class Joined(msgspec.Struct, frozen=True):
    """A join: the next relation and how it is joined to what stands before it."""

    kind: JoinWord
    relation: Relation
    on: tuple[Conjunct, ...] = ()
    using: tuple[str, ...] = ()
    natural: bool = False


class Nested(msgspec.Struct, frozen=True):
    """Joins in parentheses: they meet each other first."""

    first: Relation
    joins: tuple[Joined, ...]


class LateralView(msgspec.Struct, frozen=True):
    """LATERAL VIEW: a generator beside each row."""

    outer: bool
    generator: Fragment
    alias: str
    columns: tuple[str, ...]


Relation = Table | Derived | Nested


class Select(msgspec.Struct, frozen=True):
    """One SELECT block.

    ``sets`` are the grouping sets of ROLLUP and its kin, as positions in ``group``.
    """

    distinct: bool
    items: tuple[Item, ...]
    first: Relation | None
    joins: tuple[Joined, ...] = ()
    laterals: tuple[LateralView, ...] = ()
    where: tuple[Conjunct, ...] = ()
    group: tuple[Fragment, ...] = ()
    group_all: bool = False
    sets: tuple[tuple[int, ...], ...] | None = None
    having: tuple[Conjunct, ...] = ()
    qualify: tuple[Conjunct, ...] = ()


class SetQuery(msgspec.Struct, frozen=True):
    """Two queries combined."""

    kind: SetWord
    all: bool
    left: Body
    right: Body


class Values(msgspec.Struct, frozen=True):
    """Rows that are written in the text."""

    rows: tuple[tuple[Fragment, ...], ...]


Body = Select | SetQuery | Values


class Sorted(msgspec.Struct, frozen=True):
    """One entry of ORDER BY."""

    expr: Fragment
    descending: bool
    nulls_first: bool


class FirstRows(msgspec.Struct, frozen=True):
    """ORDER BY with LIMIT: so many rows by this order."""

    order: tuple[Sorted, ...]
    count: int


class Query(msgspec.Struct, frozen=True):
    """A query with its CTEs; ``ctes`` are seen by those after them and by the body.

    ``first`` is set where a whole text ends in ORDER BY and LIMIT, ``in_order`` where it ends in
    ORDER BY.
    """

    ctes: tuple[tuple[str, tuple[str, ...], Query], ...]
    body: Body
    first: FirstRows | None = None
    in_order: bool = False
