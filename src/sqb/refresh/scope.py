"""Which column a name in a query means, as Spark resolves it: by relation, whatever the case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sqb.refresh.ir import Col, Expr, column, joined
from sqb.sql.fragments import CallUse, ColumnUse, Field, Fragment, Unsupported


class Named(msgspec.Struct, frozen=True):
    """A relation in FROM: what it is called and its columns in order."""

    alias: str
    columns: tuple[tuple[str, Col], ...]


class Scope(msgspec.Struct, frozen=True):
    """The relations that a block sees. ``merged`` are columns of USING, which have no relation;
    ``outer`` is the block around a correlated sub-query. ``chained``: USING stands there twice."""

    relations: tuple[Named, ...] = ()
    merged: tuple[tuple[str, Expr], ...] = ()
    hidden: frozenset[Col] = frozenset()
    outer: Scope | None = None
    chained: bool = False

    def find(self, parts: Sequence[str]) -> tuple[Expr, int]:
        """What a name means, and how many of its parts were used; the rest are fields."""
        found = self._find(parts)
        if found is not None:
            return found
        if self.outer is not None:
            return self.outer.find(parts)
        raise Unsupported(f"the column {'.'.join(parts)}")

    def has(self, name: str) -> bool:
        """Does a name mean a column of these relations?"""
        return any(name == called.lower() for one in self.relations for called, _ in one.columns)

    def _find(self, parts: Sequence[str]) -> tuple[Expr, int] | None:
        folded = [part.lower() for part in parts]
        if len(folded) > 1:
            named = self._named(folded[0])
            col = _only(named.columns, folded[1]) if named is not None else None
            if col is not None:
                return column(col), 2
        merged = [expr for name, expr in self.merged if name.lower() == folded[0]]
        if merged:
            return merged[0], 1
        hits = [
            col
            for relation in self.relations
            for name, col in relation.columns
            if name.lower() == folded[0] and col not in self.hidden
        ]
        if len(hits) > 1:
            raise Unsupported(f"the ambiguous column {parts[0]}")
        return (column(hits[0]), 1) if hits else None

    def star(self, qualifier: Sequence[str], without: Sequence[str] = ()) -> list[tuple[str, Expr]]:
        """The columns that ``*`` stands for."""
        found = self._star(qualifier)
        left_out = {name.lower() for name in without}
        if not left_out <= {name.lower() for name, _ in found}:
            raise Unsupported(f"* EXCEPT ({', '.join(without)})")
        return [(name, expr) for name, expr in found if name.lower() not in left_out]

    def _star(self, qualifier: Sequence[str]) -> list[tuple[str, Expr]]:
        if not qualifier:
            rest = [
                (name, column(col))
                for relation in self.relations
                for name, col in relation.columns
                if col not in self.hidden
            ]
            return [*self.merged, *rest]
        if self.chained:
            raise Unsupported(f"{'.'.join(qualifier)}.* behind several USING")
        named = self._named(qualifier[-1].lower())
        if named is None or (len(qualifier) > 1 and self._named(qualifier[0].lower()) is not None):
            # the fields of a struct, perhaps
            raise Unsupported(f"{'.'.join(qualifier)}.*")
        return [(name, column(col)) for name, col in named.columns]

    def _named(self, alias: str) -> Named | None:
        """The relation that is called so; Spark may take either of two."""
        found = [relation for relation in self.relations if relation.alias.lower() == alias]
        if len(found) > 1:
            raise Unsupported(f"two relations called {alias}")
        return found[0] if found else None


def _only(columns: Sequence[tuple[str, Col]], wanted: str) -> Col | None:
    hits = [col for name, col in columns if name.lower() == wanted]
    if len(hits) > 1:
        raise Unsupported(f"the ambiguous column {wanted}")
    return hits[0] if hits else None


Resolve = Callable[[ColumnUse], tuple[Expr, int]]


def by_name(scope: Scope) -> Resolve:
    """Columns mean what they mean in a scope."""
    return lambda use: scope.find(use.parts)


def expression(
    sql: str,
    piece: Fragment,
    resolve: Resolve,
    calls: Mapping[CallUse, Expr] | None = None,
    scalars: Mapping[int, Expr] | None = None,
    others: Sequence[tuple[int, int, Expr]] = (),
) -> Expr:
    """The user's text with its columns, and everything that is known already, replaced.

    ``calls`` and ``scalars`` (by where they begin) are aggregates, window functions and
    sub-queries; ``others`` are spans of the text with what stands for them.
    """
    done = [(call.start, call.end, calls[call]) for call in piece.calls if calls and call in calls]
    done += [span for span in others if piece.start <= span[0] and span[1] <= piece.end]
    for nested in piece.queries:
        if _covered(nested.start, done):
            continue
        if scalars is None or nested.start not in scalars:
            raise Unsupported("a sub-query inside an expression")
        done.append((nested.start, nested.end, scalars[nested.start]))
    for use in piece.columns:
        if not _covered(use.start, done):
            expr, used = resolve(use)
            done.append((use.start, use.ends[used - 1], expr))
    names = [
        (field.end, field.end, Expr((" AS `" + field.name.replace("`", "``") + "`",)))
        for field in piece.fields
        if _renamed(field, done)
    ]
    parts: list[str | Col] = []
    at = piece.start
    for start, end, expr in sorted([*done, *names], key=lambda item: item[0]):
        if start > at:
            parts.append(sql[at:start])
        whole = expr.column is not None or (start, end) == (piece.start, piece.end)
        parts += expr.parts if whole or start == end else ["(", *expr.parts, ")"]
        at = end
    if at < piece.end:
        parts.append(sql[at : piece.end])
    if len(done) == 1 and (done[0][0], done[0][1]) == (piece.start, piece.end):
        return done[0][2]
    inner = tuple(expression(sql, arg, resolve, calls, scalars, others) for arg in piece.coalesce)
    return Expr(joined(parts), inner)


def _renamed(field: Field, spans: Sequence[tuple[int, int, Expr]]) -> bool:
    """Would the field of a struct be called after a column of the plan?"""
    mine = (field.start, field.end)
    if any(a <= mine[0] and mine[1] <= b and (a, b) != mine for a, b, _ in spans):
        return False  # it is a part of what is a column by now
    if not field.column and not any((a, b) == mine for a, b, _ in spans):
        return False
    if not field.name:
        raise Unsupported("a field of a struct that has no name")
    return True


def _covered(start: int, spans: Sequence[tuple[int, int, Expr]]) -> bool:
    return any(begin <= start < end for begin, end, _ in spans)
