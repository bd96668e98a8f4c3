"""Which column a name in a query means, as Spark resolves it: by relation, whatever the case."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sqb.refresh.ir import Col, Expr, column
from sqb.sql.fragments import CallUse, ColumnUse, Fragment, Unsupported


class Named(msgspec.Struct, frozen=True):
    """A relation in FROM: what it is called and its columns in order."""

    alias: str
    columns: tuple[tuple[str, Col], ...]


class Scope(msgspec.Struct, frozen=True):
    """The relations that a block sees. ``merged`` are columns of USING, which have no relation;
    ``outer`` is the block around a correlated sub-query."""

    relations: tuple[Named, ...] = ()
    merged: tuple[tuple[str, Expr], ...] = ()
    hidden: frozenset[Col] = frozenset()
    outer: Scope | None = None

    def find(self, parts: Sequence[str]) -> tuple[Expr, int]:
        """What a name means, and how many of its parts were used; the rest are fields."""
        found = self._find(parts)
        if found is not None:
            return found
        if self.outer is not None:
            return self.outer.find(parts)
        raise Unsupported(f"the column {'.'.join(parts)}")

    def _find(self, parts: Sequence[str]) -> tuple[Expr, int] | None:
        folded = [part.lower() for part in parts]
        if len(folded) > 1:
            for relation in self.relations:
                if relation.alias.lower() == folded[0]:
                    col = _only(relation.columns, folded[1])
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

    def star(self, qualifier: Sequence[str]) -> list[tuple[str, Expr]]:
        """The columns that ``*`` stands for."""
        if not qualifier:
            rest = [
                (name, column(col))
                for relation in self.relations
                for name, col in relation.columns
                if col not in self.hidden
            ]
            return [*self.merged, *rest]
        for relation in self.relations:
            if relation.alias.lower() == qualifier[-1].lower():
                return [(name, column(col)) for name, col in relation.columns]
        raise Unsupported(f"{'.'.join(qualifier)}.*")


def _only(columns: Sequence[tuple[str, Col]], wanted: str) -> Col | None:
    hits = [col for name, col in columns if name.lower() == wanted]
    if len(hits) > 1:
        raise Unsupported(f"the ambiguous column {wanted}")
    return hits[0] if hits else None


Resolve = Callable[[ColumnUse], tuple[Expr, int]]


def expression(
    sql: str, piece: Fragment, resolve: Resolve, calls: Mapping[CallUse, Col] | None = None
) -> Expr:
    """The user's text with its columns replaced, and its calls by the columns that hold them."""
    calls = calls or {}
    done: list[tuple[int, int, Expr]] = [
        (call.start, call.end, column(calls[call])) for call in piece.calls if call in calls
    ]
    for use in piece.columns:
        if any(start <= use.start < end for start, end, _ in done):
            continue
        expr, used = resolve(use)
        done.append((use.start, use.ends[used - 1], expr))
    parts: list[str | Col] = []
    at = piece.start
    for start, end, expr in sorted(done, key=lambda item: item[0]):
        if start > at:
            parts.append(sql[at:start])
        whole = expr.column is not None or (start, end) == (piece.start, piece.end)
        parts += expr.parts if whole else ["(", *expr.parts, ")"]
        at = end
    if at < piece.end:
        parts.append(sql[at : piece.end])
    if len(done) == 1 and (done[0][0], done[0][1]) == (piece.start, piece.end):
        return done[0][2]
    inner = tuple(expression(sql, arg, resolve, calls) for arg in piece.coalesce)
    return Expr(_joined(parts), inner)


def _joined(parts: Sequence[str | Col]) -> tuple[str | Col, ...]:
    out: list[str | Col] = []
    for part in parts:
        if isinstance(part, str) and out and isinstance(out[-1], str):
            out[-1] += part
        else:
            out.append(part)
    return tuple(out)
