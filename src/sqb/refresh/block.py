"""A query's text with what its names mean, and the plan that is made of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from sqb.refresh.ir import Col, Node
from sqb.refresh.scope import Scope
from sqb.sql.query import Query


class TableRef(msgspec.Struct, frozen=True):
    """A name that is a table: its source and columns, as they are called there."""

    source: str
    columns: tuple[str, ...]


class ViewRef(msgspec.Struct, frozen=True):
    """A name that is a view: its own text, its structure, and what its names mean."""

    sql: str
    query: Query
    lookup: Lookup
    columns: tuple[str, ...] | None = None


#: What the reference at an offset of the text is; None: a CTE.
Lookup = Callable[[int], "TableRef | ViewRef | None"]

Ctes = Mapping[str, "tuple[Query, tuple[str, ...], Ctes]"]


class Plan(msgspec.Struct, frozen=True):
    """A plan and what its columns are called, in order.

    ``words`` are all that the text mentions, in lower case: a column that comes or goes may change
    what one of them means. None: ``*`` stands there, which means all columns.
    """

    root: Node
    names: tuple[str, ...]
    words: frozenset[str] | None = frozenset()


class Names:
    """Column names that no other column of the plan has.

    ``in_order`` says that a query below the outermost one asks for an order, ``starred`` that one
    asks for all columns of something. ``texts`` are those of the query and of views.
    """

    def __init__(self) -> None:
        self._made = 0
        self.in_order = False
        self.starred = False
        self.texts: list[str] = []

    def fresh(self) -> Col:
        """A name that was not there before."""
        self._made += 1
        return Col(f"c{self._made}")


class Block(msgspec.Struct, frozen=True):
    """One text with what its names mean.

    ``outer`` is what a correlated sub-query sees around it; ``build`` makes the plan of a query
    that is seen from here. ``last``: nothing is done with its results, they are the table's.
    """

    sql: str
    lookup: Lookup
    ctes: Ctes
    outer: Scope | None
    names: Names
    build: Callable[[Block, Query], Plan]
    last: bool = False

    def fresh(self) -> Col:
        """A new column."""
        return self.names.fresh()

    def query(self, query: Query) -> Plan:
        """The plan of a query in this text that sees nothing of the rows around it."""
        return self.build(self.within(None), query)

    def within(self, outer: Scope | None) -> Block:
        """The same text, inside other rows."""
        return msgspec.structs.replace(self, outer=outer, last=False)
