"""A grouped query as two: its groups with what their aggregates are made of, and a query over them.

Together they give the rows of the query as it was written. All expressions are cut out of the
user's text; only names that tie the two together are new. The columns of the tables are not
known here, so what could mean two things is left as it is: ``Whole``, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from sqb.sql.analysis import BoundConstant
from sqb.sql.cursor import Cursor
from sqb.sql.fragments import CallUse, ColumnUse, Fragment, Unsupported
from sqb.sql.places import places
from sqb.sql.query import Item, Select
from sqb.sql.spellings import Spellings, column_name, folded, only_column
from sqb.sql.splice import Patchwork, Spliced
from sqb.sql.state_columns import Aggregates, Whole, fresh
from sqb.sql.structure import structure
from sqb.sql.tokens import Tokens, split

#: What the groups are called in the query over them.
GROUPS = "sqb_s"
_BEHIND_GROUPS = frozenset(
    {"GROUP BY", "HAVING", "QUALIFY", "WINDOW", "ORDER BY", "SORT BY", "CLUSTER BY"}
    | {"DISTRIBUTE BY", "LIMIT", "OFFSET", "|>"}
)
#: Types and functions by which a value could be told from the same value out of a table.
_NOT_KEPT = frozenset(
    {"COLLATE", "COLLATION", "TYPEOF", "TINYINT", "SMALLINT", "BYTE", "SHORT", "CHAR"}
    | {"CHARACTER", "VARCHAR", "BINARY"}
)


class Split(msgspec.Struct, frozen=True):
    """The query that makes the groups, and the one over them; both know where they came from."""

    groups: Spliced
    over: Spliced


def split_groups(tokens: Tokens, constants: Iterable[BoundConstant], relation: str) -> Split:
    """Split a query; ``relation`` is the name that its groups will have.

    Raises ``Whole`` where it can't be split, or where that would not help.
    """
    read = _bound(tokens, constants)
    word = next((raw for raw in read.raws if raw.upper() in _NOT_KEPT), None)
    if word is not None:
        raise Whole(f"a table does not keep all that {word} tells")
    try:
        query = structure(read)
        if query.first is not None:
            raise Whole("LIMIT needs the rows of all groups")
        if not isinstance(query.body, Select):
            raise Whole("it does not end in GROUP BY")
        return _Splitter(tokens.sql, read, query.body).split(relation)
    except Unsupported as found:
        raise Whole(f"{found.what} is not understood") from found


def _bound(tokens: Tokens, constants: Iterable[BoundConstant]) -> Tokens:
    """The text with a value in the place of each constant, everything else where it was."""
    text = tokens.sql
    for found in constants:
        blank = "'" + "d" * (found.end - found.start - 2) + "'"
        text = text[: found.start] + blank + text[found.end :]
    return tokens if text == tokens.sql else split(text)


#: A place of the text and what comes there instead.
_Edit = tuple[int, int, str]


class _Key(msgspec.Struct, frozen=True):
    """What is grouped by: where it is written, its tokens, and how GROUP BY names it.

    ``alias`` is set where GROUP BY names a result, which then keeps its name.
    """

    start: int
    end: int
    tokens: tuple[object, ...]
    named: tuple[int, int] | None
    alias: str | None = None


class _Splitter:
    """One SELECT on its way to be two."""

    def __init__(self, sql: str, read: Tokens, select: Select) -> None:
        self.sql, self.read, self.select = sql, read, select
        self.starts = [token.start for token in read.parsed]
        self._find_clauses()
        self._check()
        self.items = [(item, _name(item)) for item in select.items]
        pieces = [item.expr for item in select.items if item.expr is not None]
        self.pieces = [*pieces, *select.group, *(c.expr for c in select.having if c.expr)]
        self.spelled = Spellings(read, select, self.pieces)
        self.keys = self._keys()
        taken = {key.alias.lower() for key in self.keys if key.alias}
        self.names = [key.alias or fresh("g", taken) for key in self.keys]
        calls = [call for piece in self.pieces for call in piece.calls]
        self.aggregates = Aggregates(read, calls, self.spelled.plain, taken)

    # What is there

    def _find_clauses(self) -> None:
        count = len(self.read.raws)
        while count and self.read.raws[count - 1] == ";":
            count -= 1
        cursor = Cursor(self.read, 0, count)
        if cursor.take("WITH"):
            while True:
                cursor.name()
                if cursor.word() == "(":
                    cursor.inner()
                cursor.need("AS")
                cursor.inner()
                if not cursor.take(","):
                    break
        if cursor.word() != "SELECT":
            raise Whole("it does not begin with SELECT")
        self.begin = self.starts[cursor.at]
        cursor.at += 1
        hinted = cursor.at
        while cursor.word().startswith("/*+"):
            cursor.at += 1
        self.hints = self._span(hinted, cursor.at)
        cursor.until({"FROM"} | _BEHIND_GROUPS)
        if cursor.word() != "FROM":
            raise Whole("it reads no table")
        rows = cursor.until(_BEHIND_GROUPS)
        self.rows = self._span(rows.at, rows.stop)
        if cursor.take("GROUP BY"):
            cursor.until(_BEHIND_GROUPS)
        self.having = (0, 0)
        if cursor.take("HAVING"):
            having = cursor.until(_BEHIND_GROUPS)
            self.having = self._span(having.at, having.stop)

    def _span(self, begin: int, stop: int) -> tuple[int, int]:
        if begin >= stop:
            return 0, 0
        return self.starts[begin], self.read.parsed[stop - 1].end + 1

    def _check(self) -> None:
        select = self.select
        if select.sets is not None:
            raise Whole("it groups by several sets")
        if select.qualify:
            raise Whole("it uses QUALIFY")
        if any(item.star is not None for item in select.items):
            raise Whole("its SELECT list holds *")
        if any(part.expr is None for part in select.having):
            raise Whole("its HAVING holds a sub-query")
        pieces = [item.expr for item in select.items] + [part.expr for part in select.having]
        found = [piece for piece in pieces if piece is not None]
        if any(piece.queries for piece in found):
            raise Whole("it computes with a sub-query")
        calls = [call for piece in found for call in piece.calls]
        if any(call.kind == "window" for call in calls):
            raise Whole("it uses a window function")
        if any(call.kind == "generator" for call in calls):
            raise Whole("it makes several rows of one")
        if not (calls or select.group or select.group_all):
            raise Whole("it does not end in GROUP BY")

    # What is grouped by

    def _keys(self) -> list[_Key]:
        listed = [item.expr for item, _ in self.items if item.expr is not None]
        found = [self._key(piece, None) for piece in listed if not piece.calls]
        if not self.select.group_all:
            found = [
                self._of_item(piece, listed) or self._key(piece, (piece.start, piece.end))
                for piece in self.select.group
            ]
        keys: list[_Key] = []
        for key in found:
            same = [k for k in keys if k.tokens == key.tokens]
            if any(self.sql[k.start : k.end] != self.sql[key.start : key.end] for k in same):
                raise Whole("it groups by one thing in two spellings")
            if not same:
                keys.append(key)
        return keys

    def _key(self, piece: Fragment, named: tuple[int, int] | None) -> _Key:
        return _Key(piece.start, piece.end, self.spelled.plain(piece.start, piece.end), named)

    def _of_item(self, piece: Fragment, listed: Sequence[Fragment]) -> _Key | None:
        """The result that an entry of GROUP BY names, by its number or by its name."""
        if piece.calls or piece.queries:
            raise Whole("it groups by an aggregate or a sub-query")
        if piece.literal is not None:
            if not 0 < piece.literal <= len(listed) or listed[piece.literal - 1].calls:
                raise Whole(f"it groups by {piece.literal}")
            return self._key(listed[piece.literal - 1], None)
        use = only_column(piece)
        name = folded(use)[0] if use is not None and len(use.parts) == 1 else None
        found = [(item, n) for item, n in self.items if name and n.lower() == name]
        if not found or name is None:
            return None
        item, alias = found[0]
        assert item.expr is not None
        if any(folded(use)[-1] == name for use in item.expr.columns):
            return None  # a column of that name is there, and comes first
        others = {
            self.spelled.column(use)
            for other in self.select.group
            if other is not piece
            for use in other.columns
        }
        if (
            len(found) > 1
            or item.expr.calls
            or {self.spelled.column(use) for use in item.expr.columns} <= others
        ):
            raise Whole(f"{name} may be a column or a result")
        key = self._key(item.expr, (piece.start, piece.end))
        return msgspec.structs.replace(key, alias=alias)

    # The query over the groups

    def _over(self, piece: Fragment, items: Sequence[tuple[Item, str]]) -> list[_Edit]:
        """What to replace in an expression so that it is one over the groups.

        ``items`` are results that it may use by their names.
        """
        inside = [(call.start, call.end) for call in piece.calls]
        if any(not any(a <= field.start < b for a, b in inside) for field in piece.fields):
            raise Whole("a struct has fields that no AS names")
        edits: list[_Edit] = []
        for call in piece.calls:
            self._one_meaning(call)
            edits.append((call.start, call.end, _column(self.aggregates.name(call))))
        tokens = self.spelled.tokens(piece.start, piece.end)
        plain = [token for token, _, _ in tokens]
        for n in sorted(range(len(self.keys)), key=lambda n: -len(self.keys[n].tokens)):
            for i, j in places(plain, self.keys[n].tokens):
                start, end = tokens[i][1], tokens[j - 1][2]
                if all(end <= a or b <= start for a, b, _ in edits):
                    edits.append((start, end, _column(self.names[n])))
        for use in piece.columns:
            if not any(a <= use.start < b for a, b, _ in edits):
                edits.append((use.start, use.ends[-1], self._by_name(use, items)))
        return edits

    def _by_name(self, use: ColumnUse, items: Sequence[tuple[Item, str]]) -> str:
        """A result that an expression names."""
        name = use.parts[-1]
        found = [item for item, n in items if n.lower() == name.lower()]
        if len(use.parts) > 1 or len(found) != 1 or found[0].expr is None:
            raise Whole(f"{'.'.join(use.parts)} stands beside GROUP BY")
        piece = found[0].expr
        text = Patchwork(self.sql)
        text.replaced(piece.start, piece.end, self._over(piece, ()))
        return f"({text.spliced().text})"

    def _one_meaning(self, call: CallUse) -> None:
        """In an aggregate a name is a column, unless there is none and a result has the name."""
        for use in call.columns:
            for item, name in self.items:
                piece = item.expr
                if piece is None or piece.calls or name.lower() != use.parts[0].lower():
                    continue
                if column_name(piece) != name.lower():
                    raise Whole(f"{name} may be a column or a result")

    def _named_before(self, n: int) -> None:
        """A result may use those before it by name, if no column has the name."""
        item = self.items[n][0]
        assert item.expr is not None
        inside = [(call.start, call.end) for call in item.expr.calls]
        for use in item.expr.columns:
            if any(a <= use.start < b for a, b in inside):
                continue
            for other, name in self.items[:n]:
                same = name.lower() == use.parts[0].lower()
                if same and other.expr is not None and column_name(other.expr) != name.lower():
                    raise Whole(f"{name} may be a column or a result")

    def _having(self) -> list[_Edit]:
        edits: list[_Edit] = []
        pieces = [part.expr for part in self.select.having if part.expr is not None]
        for piece in pieces:
            # what every side of an OR asks for is listed again beside it
            if any(p.start <= piece.start and piece.end <= p.end and p != piece for p in pieces):
                continue
            inside = [(call.start, call.end) for call in piece.calls]
            for use in piece.columns:
                if not any(a <= use.start < b for a, b in inside):
                    self._not_both(use)
            edits += self._over(piece, self.items)
        return edits

    def _not_both(self, use: ColumnUse) -> None:
        """A name in HAVING must not be both a column that is grouped by and another result."""
        name = use.parts[0].lower()
        is_key = any(
            len(key.tokens) == 1 and isinstance(key.tokens[0], tuple) and key.tokens[0][-1] == name
            for key in self.keys
        )
        for item, other in self.items:
            assert item.expr is not None
            renamed = other.lower() == name and column_name(item.expr) != name
            if renamed and is_key and len(use.parts) == 1:
                raise Whole(f"{name} may be a column or a result")

    # The two

    def split(self, relation: str) -> Split:
        """The two queries."""
        over = Patchwork(self.sql)
        over.add("SELECT DISTINCT " if self.select.distinct else "SELECT ", self.begin)
        for n, (item, name) in enumerate(self.items):
            piece = item.expr
            assert piece is not None
            self._named_before(n)
            over.add(", " * (n > 0), piece.start)
            over.replaced(piece.start, piece.end, self._over(piece, ()))
            over.add(f" AS {quoted(name)}", piece.start)
        over.add(f"\nFROM {quoted(relation)} AS {GROUPS}", self.rows[0])
        start, end = self.having
        if end:
            over.add("\nWHERE ", start)
            over.replaced(start, end, self._having())
        elif not self.select.distinct:
            made = [self._simply(item) for item in self.select.items]
            if self.aggregates.enough(made, len(self.keys)):
                raise Whole("its own columns are enough to merge changes into its groups")
        return Split(self._groups(), over.spliced())

    def _simply(self, item: Item) -> int | CallUse | None:
        """The key or the aggregate that a result is, and nothing more."""
        piece = item.expr
        assert piece is not None
        tokens = self.spelled.plain(piece.start, piece.end)
        for n, key in enumerate(self.keys):
            if key.tokens == tokens:
                return n
        calls = piece.calls
        alone = len(calls) == 1 and (calls[0].start, calls[0].end) == (piece.start, piece.end)
        return calls[0] if alone else None

    def _groups(self) -> Spliced:
        text = Patchwork(self.sql)
        text.copy(0, self.begin)
        text.add("SELECT ", self.begin)
        if self.hints[1]:
            text.copy(*self.hints)
            text.add(" ", self.begin)
        for key, name in zip(self.keys, self.names, strict=True):
            text.copy(key.start, key.end)
            text.add(f" AS {quoted(name)}, ", key.start)
        for n, (name, kept) in enumerate(self.aggregates.columns):
            text.add(", " * (n > 0), self.begin)
            at = next((part[0] for part in kept.parts if not isinstance(part, str)), self.begin)
            for part in kept.parts:
                if isinstance(part, str):
                    text.add(part, at)
                else:
                    text.copy(*part)
            text.add(f" AS {quoted(name)}", self.begin)
        text.add("\n", self.rows[0])
        text.copy(*self.rows)
        for n, key in enumerate(self.keys):
            text.add(", " if n else "\nGROUP BY ", self.rows[1])
            if key.named is None:
                text.add(str(n + 1), key.start)
            else:
                text.copy(*key.named)
        return text.spliced()


def quoted(name: str) -> str:
    """A name in quotes.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def _column(name: str) -> str:
    return f"{GROUPS}.{quoted(name)}"


def _name(item: Item) -> str:
    """What a result is called."""
    if item.alias is not None:
        return item.alias
    use = only_column(item.expr) if item.expr is not None else None
    if use is not None:
        return use.parts[-1]
    raise Whole("a result has no name")
