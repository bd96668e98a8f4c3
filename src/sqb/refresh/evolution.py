"""A table that is not rebuilt and a query with other columns: what becomes of the table."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

Columns = Sequence[tuple[str, str]]


class Evolution(msgspec.Struct, frozen=True):
    """What is done to a table's columns, and its columns afterwards with their types.

    ``given`` has the query's name of each of them; None: the query does not give it.
    """

    add: tuple[tuple[str, str], ...]
    drop: tuple[str, ...]
    widen: tuple[tuple[str, str], ...]
    columns: tuple[tuple[str, str], ...]
    given: tuple[str | None, ...]

    @property
    def alters(self) -> bool:
        """Does the table get other columns?"""
        return bool(self.add or self.drop or self.widen)


class Misfit(Exception):  # noqa: N818 - an outcome, not a failure
    """The query's columns do not go into the table as it may be changed."""


def evolve(policy: str, table: Columns, query: Columns) -> Evolution:
    """How a table takes in rows with the query's columns, matched by name.

    >>> evolve("append_new_columns", [("a", "int")], [("b", "string"), ("A", "int")]).add
    (('b', 'string'),)
    """
    theirs = {name.lower(): (name, kind) for name, kind in query}
    mine = {name.lower() for name, _ in table}
    add = tuple((name, kind) for name, kind in query if name.lower() not in mine)
    gone = tuple(name for name, _ in table if name.lower() not in theirs)
    if policy == "fail" and (add or gone):
        words = [f"`{name}` is new" for name, _ in add] + [f"`{name}` is gone" for name in gone]
        raise Misfit(f"its columns changed: {', '.join(words)}")
    if policy == "ignore":
        if gone:
            raise Misfit(f"the query no longer gives `{gone[0]}`")
        add = ()
    drop = gone if policy == "sync_all_columns" else ()
    widen: list[tuple[str, str]] = []
    columns: list[tuple[str, str]] = []
    for name, kind in table:
        if name in drop:
            continue
        wanted = theirs.get(name.lower(), (name, kind))[1]
        if not holds(kind, wanted):
            if policy not in ("append_new_columns", "sync_all_columns") or not widens(kind, wanted):
                raise Misfit(f"`{name}` is {wanted} in the query and {kind} in the table")
            widen.append((name, wanted))
            kind = wanted  # noqa: PLW2901 - the column's type from here on
        columns.append((name, kind))
    columns += add
    given = tuple(
        theirs[name.lower()][0] if name.lower() in theirs else None for name, _ in columns
    )
    return Evolution(add, drop, tuple(widen), tuple(columns), given)


_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_WHOLE = ("tinyint", "smallint", "int", "bigint")


def holds(kind: str, value: str) -> bool:
    """Can a column of this type hold every value of that one, as it is?

    >>> holds("bigint", "int"), holds("int", "bigint"), holds("decimal(10,2)", "decimal(8, 2)")
    (True, False, True)
    """
    kind, value = _plain(kind), _plain(value)
    if value in (kind, "void"):
        return True
    if kind in _WHOLE and value in _WHOLE:
        return _WHOLE.index(value) <= _WHOLE.index(kind)
    if (kind, value) == ("double", "float"):
        return True
    mine, theirs = _DECIMAL.fullmatch(kind), _DECIMAL.fullmatch(value)
    if mine and theirs:
        return mine[2] == theirs[2] and int(theirs[1]) <= int(mine[1])
    return False


def widens(kind: str, value: str) -> bool:
    """May Iceberg make a column of this type one of that type without touching its rows?"""
    kind, value = _plain(kind), _plain(value)
    mine, theirs = _DECIMAL.fullmatch(kind), _DECIMAL.fullmatch(value)
    if mine and theirs:
        return mine[2] == theirs[2] and int(mine[1]) < int(theirs[1])
    return (kind, value) in (("int", "bigint"), ("float", "double"))


def _plain(kind: str) -> str:
    return kind.lower().replace(", ", ",")
