"""What the names in a query mean as far as its text tells: the columns of its tables are not known.

``t.a`` and ``a`` are one column where both are used and no other table has an ``a`` here: if
another had one, ``a`` alone would be an error.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from sqb.sql.fragments import ColumnUse, Fragment
from sqb.sql.places import without_parentheses
from sqb.sql.query import Joined, Nested, Relation, Select
from sqb.sql.tokens import Tokens, compared


class Spellings:
    """The expressions of a SELECT as tokens that can be compared."""

    def __init__(self, read: Tokens, select: Select, pieces: Sequence[Fragment]) -> None:
        self.read = read
        self.starts = [token.start for token in read.parsed]
        self.uses = {use.start: use for piece in pieces for use in piece.columns}
        self.tables = _tables(select)
        self.qualified: dict[tuple[str, ...], set[str]] = {}
        if any(join.using or join.natural for join in _joins(select.first, select.joins)):
            return  # such a join has columns of its own
        for use in self.uses.values():
            parts = folded(use)
            if len(parts) > 1 and parts[0] in self.tables:
                self.qualified.setdefault(parts[1:], set()).add(parts[0])

    def column(self, use: ColumnUse) -> tuple[str, ...]:
        """One spelling of a column: a name alone is that of the table it is qualified by."""
        parts = folded(use)
        if len(parts) > 1 and parts[0] in self.tables:
            return parts
        by = self.qualified.get(parts, set())
        return (*by, *parts) if len(by) == 1 else parts

    def tokens(self, start: int, end: int) -> list[tuple[object, int, int]]:
        """The tokens between two places, with columns as what they are, and where they stand."""
        out: list[tuple[object, int, int]] = []
        for i in range(bisect_left(self.starts, start), len(self.starts)):
            token = self.read.parsed[i]
            if token.start >= end:
                break
            if out and token.start < out[-1][2]:
                continue
            use = self.uses.get(token.start)
            raw = self.read.raws[i]
            if use is not None:
                out.append((self.column(use), use.start, use.ends[-1]))
            else:
                out.append((compared(raw), token.start, token.end + 1))
        return out

    def plain(self, start: int, end: int) -> tuple[object, ...]:
        """The tokens alone, without the parentheses around all of them."""
        return without_parentheses([token for token, _, _ in self.tokens(start, end)])


def _joins(first: Relation | None, joins: Sequence[Joined]) -> list[Joined]:
    """Joins with those in parentheses; the first relation counts as one that is joined to none."""
    found = [*([Joined("cross", first)] if first is not None else []), *joins]
    for join in tuple(found):
        if isinstance(join.relation, Nested):
            found += _joins(join.relation.first, join.relation.joins)
    return found


def _tables(select: Select) -> frozenset[str]:
    relations = [join.relation for join in _joins(select.first, select.joins)]
    names = [r.alias for r in relations if not isinstance(r, Nested)]
    names += [view.alias for view in select.laterals]
    return frozenset(name.lower() for name in names if name)


def folded(use: ColumnUse) -> tuple[str, ...]:
    """A column's name and what qualifies it, in lower case."""
    return tuple(part.lower() for part in use.parts)


def only_column(piece: Fragment) -> ColumnUse | None:
    """The column, if an expression is no more than one."""
    uses = piece.columns
    alone = len(uses) == 1 and (uses[0].start, uses[0].ends[-1]) == (piece.start, piece.end)
    return uses[0] if alone else None


def column_name(piece: Fragment) -> str | None:
    """Its name in lower case, without what qualifies it."""
    use = only_column(piece)
    return folded(use)[-1] if use is not None else None
