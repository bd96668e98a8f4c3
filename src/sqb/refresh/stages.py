"""What names and calls mean at a stage of a block: after FROM, after GROUP BY, after OVER."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from sqb.refresh.ir import Call, Expr
from sqb.refresh.scope import Resolve, Scope, by_name, expression
from sqb.sql.fragments import CallUse, ColumnUse, Fragment, Unsupported
from sqb.sql.places import places, without_parentheses
from sqb.sql.query import Conjunct, Item
from sqb.sql.tokens import compared, is_string, split

#: A token of an expression: its text in upper case, or the column it is; and where it stands.
Atom = tuple["str | Expr", int, int]


class Out(msgspec.Struct, frozen=True):
    """One column of a block's result: its name, and its text or (from ``*``) its expression."""

    name: str
    piece: Fragment | None
    expr: Expr | None

    @property
    def calls(self) -> tuple[CallUse, ...]:
        """The aggregates and window functions in it."""
        return self.piece.calls if self.piece is not None else ()


class Key(msgspec.Struct, frozen=True):
    """What a group is made by: the expression, its tokens, and what it is called above."""

    expr: Expr
    tokens: tuple[str | Expr, ...]
    above: Expr


class Stage(msgspec.Struct, frozen=True):
    """A stage of a block. ``keys`` are None before GROUP BY; ``known`` and ``scalars`` are calls
    and sub-queries that are columns by now; ``items`` may be used by name."""

    sql: str
    scope: Scope
    items: tuple[Out, ...] = ()
    keys: tuple[Key, ...] | None = None
    known: Mapping[CallUse, Expr] = {}
    scalars: Mapping[int, Expr] = {}

    def plain(self, use: ColumnUse) -> tuple[Expr, int]:
        """A column of FROM, which after GROUP BY must be one of the keys."""
        expr, used = self.scope.find(use.parts)
        if self.keys is None:
            return expr, used
        for key in self.keys:
            if key.expr == expr:
                return key.above, used
        raise Unsupported(f"{'.'.join(use.parts)} beside GROUP BY")

    def expression(self, piece: Fragment) -> Expr:
        """An expression at this stage."""
        return self._expression(piece, self.plain)

    def _expression(self, piece: Fragment, resolve: Resolve) -> Expr:
        others = self._grouped_parts(piece)
        return expression(self.sql, piece, resolve, self.known, self.scalars, others)

    def _grouped_parts(self, piece: Fragment) -> list[tuple[int, int, Expr]]:
        """Where the expressions that are grouped by stand in another one."""
        if self.keys is None:
            return []
        found: list[tuple[int, int, Expr]] = []
        atoms = atoms_of(self.sql, piece, self.scope)
        inside = [(call.start, call.end) for call in piece.calls if call in self.known]
        for key in sorted(self.keys, key=lambda key: -len(key.tokens)):
            for i, j in places([atom[0] for atom in atoms], key.tokens):
                start, end = atoms[i][1], atoms[j - 1][2]
                taken = [*inside, *((a, b) for a, b, _ in found)]
                if all(end <= a or b <= start for a, b in taken):
                    found.append((start, end, key.above))
        return found

    def value(self, item: Out) -> Expr:
        """What a column of the result is; it may name those before it."""
        before = self.items[: self.items.index(item)] if item in self.items else ()
        if item.piece is not None:
            return self._expression(item.piece, self._or_item(before))
        assert item.expr is not None
        if self.keys is None:
            return item.expr
        for key in self.keys:
            if key.expr == item.expr:
                return key.above
        raise Unsupported("* beside GROUP BY")

    def _or_item(self, items: Sequence[Out]) -> Resolve:
        """A column of FROM; where there is none, a result by its name."""

        def either(use: ColumnUse) -> tuple[Expr, int]:
            try:
                self.scope.find(use.parts)
            except Unsupported:
                named = [item for item in items if item.name.lower() == use.parts[0].lower()]
                if len(named) != 1:
                    raise
                return self.value(named[0]), 1
            return self.plain(use)

        return either

    def call(self, call: CallUse) -> Call:
        """A call, with what it works on at this stage."""
        text = self.expression(call.span)
        arguments = tuple(self.expression(arg) for arg in call.arguments)
        name = f"{call.name}_distinct" if call.distinct else call.name
        return Call(name, text, arguments, call.filtered)

    def condition(self, conjunct: Conjunct) -> Expr:
        """A condition over a block's results, which may use the names in its select list."""
        if conjunct.expr is None:
            raise Unsupported("EXISTS or IN in HAVING or QUALIFY")
        # what is inside an aggregate is a column of FROM
        inside = [call for call in conjunct.expr.calls if call.kind == "aggregate"]
        for use in conjunct.expr.columns:
            if not any(call.start <= use.start < call.end for call in inside):
                self._one_meaning(use)
        return self._expression(conjunct.expr, self._or_item(self.items))

    def _one_meaning(self, use: ColumnUse) -> None:
        """A name that is a column and the name of another result might mean either."""
        named = [item for item in self.items if item.name.lower() == use.parts[0].lower()]
        try:
            expr, _ = self.scope.find(use.parts)
        except Unsupported:
            return
        for item in named:
            below = Stage(self.sql, self.scope)
            if item.calls or (item.piece and item.piece.queries) or below.value(item) != expr:
                raise Unsupported(f"{use.parts[0]}, a column and the name of another result")


def atoms_of(sql: str, piece: Fragment, scope: Scope) -> list[Atom]:
    """An expression's tokens, with its columns as what they are."""
    resolve = by_name(scope)
    out: list[Atom] = []
    uses: list[Atom] = []
    for use in piece.columns:
        try:
            expr, used = resolve(use)
        except Unsupported:
            continue
        uses.append((expr, use.start, use.ends[used - 1]))
    for token in split(sql[piece.start : piece.end]).parsed:
        start, end = piece.start + token.start, piece.start + token.end + 1
        if out and start < out[-1][2]:
            continue
        column = next((use for use in uses if use[1] <= start < use[2]), None)
        out.append(column or (compared(sql[start:end]), start, end))
    return out


def tokens_of(sql: str, piece: Fragment, scope: Scope) -> tuple[str | Expr, ...]:
    """An expression without white space, case and the parentheses around it."""
    return without_parentheses([atom[0] for atom in atoms_of(sql, piece, scope)])


def item_name(sql: str, item: Item) -> str:
    """What a result is called: a column or a string by itself, whatever parentheses are around."""
    if item.alias is not None:
        return item.alias
    piece = item.expr
    assert piece is not None
    text = sql[piece.start : piece.end]
    found = split(text)
    begin = next((n for n, raw in enumerate(found.raws) if raw != "("), 0)
    inside = without_parentheses(found.raws)
    tokens = found.parsed[begin : begin + len(inside)]
    if len(piece.columns) == 1 and piece.columns[0].start == piece.start + tokens[0].start:
        use = piece.columns[0]
        if use.ends[-1] == piece.start + tokens[-1].end + 1:
            return use.parts[-1]
    if all(is_string(token) for token in tokens):
        return "".join(token.text for token in tokens)
    return text
