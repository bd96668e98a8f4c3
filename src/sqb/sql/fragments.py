"""Expressions as spans of the user's text: which columns they read, which functions they call."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec
from sqlglot import exp

from sqb.sql.functions import AGGREGATES, GENERATORS, SCALARS, SYNTAX, WINDOWS
from sqb.sql.nested import Asks, Matters, Place, Unreadable, sub_queries
from sqb.sql.tokens import Tokens, dialect, spoken

if TYPE_CHECKING:
    from sqb.sql.query import Query

#: Reads the sub-query between two tokens.
ReadQuery = Callable[[int, int], "Query"]


class Unsupported(Exception):  # noqa: N818 - an outcome, not a failure
    """A part of a query that row-level refresh does not understand."""

    def __init__(self, what: str, code: str = "UNSUPPORTED") -> None:
        super().__init__(f"{code}({what})")
        self.what = what
        self.code = code


class ColumnUse(msgspec.Struct, frozen=True):
    """A column in an expression: its parts, where they begin and where each ends."""

    start: int
    parts: tuple[str, ...]
    ends: tuple[int, ...]


class Nested(msgspec.Struct, frozen=True):
    """A sub-query in an expression, with all that asks for it.

    ``values`` stand on the left of IN; ``matters`` says where NULL is as good as FALSE.
    """

    start: int
    end: int
    query: Query
    asks: Asks = "value"
    values: tuple[Fragment, ...] = ()
    negated: bool = False
    matters: Matters = "value"


class Field(msgspec.Struct, frozen=True):
    """A field of ``struct(…)`` without an alias: where it stands and what Spark calls it.

    ``column`` says that it is a column, after which it is called. Of other expressions the name is
    empty where it is not told by their place.
    """

    start: int
    end: int
    name: str
    column: bool


class CallUse(msgspec.Struct, frozen=True):
    """An aggregate or window function call that is not inside another one.

    ``arguments`` are the expressions between its parentheses; ``partition`` belongs to windows,
    and so do ``inner``: aggregates that a window function works on.
    """

    kind: Literal["aggregate", "window", "generator"]
    name: str
    start: int
    end: int
    arguments: tuple[Fragment, ...]
    distinct: bool = False
    filtered: bool = False
    ordered: bool = False
    partition: tuple[Fragment, ...] = ()
    columns: tuple[ColumnUse, ...] = ()
    inner: tuple[CallUse, ...] = ()
    queries: tuple[Nested, ...] = ()
    fields: tuple[Field, ...] = ()

    @property
    def span(self) -> Fragment:
        """The whole call as an expression."""
        return Fragment(
            self.start, self.end, self.columns, self.inner, self.queries, fields=self.fields
        )


class Fragment(msgspec.Struct, frozen=True):
    """One expression of the text; ``columns`` and ``queries`` are all in it, in calls too.

    ``fields`` are those of structs that no AS names.
    """

    start: int
    end: int
    columns: tuple[ColumnUse, ...]
    calls: tuple[CallUse, ...]
    queries: tuple[Nested, ...] = ()
    coalesce: tuple[Fragment, ...] = ()
    literal: int | None = None
    fields: tuple[Field, ...] = ()


#: Node classes that an expression may be made of; functions are judged by name.
_ALLOWED = (
    exp.Column,
    exp.Identifier,
    exp.Literal,
    exp.Boolean,
    exp.Null,
    exp.Paren,
    exp.Binary,
    exp.Unary,
    exp.Between,
    exp.In,
    exp.Case,
    exp.If,
    exp.DataType,
    exp.DataTypeParam,
    exp.ColumnDef,
    exp.Func,
    exp.Interval,
    exp.IntervalSpan,
    exp.Var,
    exp.Lambda,
    exp.Bracket,
    exp.Star,
    exp.Distinct,
    exp.Order,
    exp.Ordered,
    exp.Window,
    exp.WindowSpec,
    exp.Filter,
    exp.Where,
    exp.WithinGroup,
    exp.Tuple,
    exp.Slice,
    exp.IgnoreNulls,
    exp.RespectNulls,
    exp.PropertyEQ,
    exp.Alias,
    exp.Escape,
    exp.HexString,
    exp.RawString,
    exp.JSONPath,
    exp.JSONPathPart,
    exp.Any,
    exp.All,
)
#: Functions that need no parentheses.
_BARE = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentUser, exp.SessionUser)
_SUBQUERIES = (exp.Query, exp.Subquery, exp.Exists)
#: What lists values in parentheses.
_LISTED = (exp.In, exp.Window, exp.Any, exp.All)


#: Functions that take the name of a unit, and at which place.
_UNITS = {"date_trunc": 0, "trunc": 1}
#: Words that are syntax as well as the names of functions.
_CALLABLE = frozenset({"any", "some"})


def fragment(tokens: Tokens, begin: int, stop: int, read: ReadQuery) -> Fragment:
    """The expression of the tokens ``[begin, stop)``."""
    if begin >= stop:
        raise Unsupported("an empty expression")
    start = tokens.parsed[begin].start
    end = tokens.parsed[stop - 1].end + 1
    text = tokens.sql[start:end]
    if "/*+" in text:
        raise Unsupported("a hint inside an expression")
    places = _places(tokens, begin, stop)
    queries: list[Nested] = []
    for place in places:
        found = _nested(tokens, place, read)
        blank = "NULL".ljust(found.end - found.start)
        text = text[: found.start - start] + blank + text[found.end - start :]
        queries.append(found)
    tree = _parse(text)
    for node in tree.walk():
        is_function = isinstance(node.args.get("expression"), exp.Lambda)  # exists(array, x -> …)
        if isinstance(node, _SUBQUERIES) and not is_function:
            raise Unsupported("a sub-query inside an expression")
        if not isinstance(node, _ALLOWED):
            raise Unsupported(type(node).__name__)
        if isinstance(node, _BARE):
            # a column may be called so, and only where there is none is it the function
            raise Unsupported(node.sql("spark").lower())
        if isinstance(node, exp.Interval) and not _has_unit(node):
            raise Unsupported("a column named interval")
        if isinstance(node, exp.Tuple) and not isinstance(node.parent, _LISTED):
            raise Unsupported("a struct in parentheses")
        if isinstance(node, exp.Dot) and isinstance(node.this.unnest(), exp.Column):
            # (t).id is t.id to Spark, and t perhaps a relation
            raise Unsupported("a field of a column in parentheses")
        if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
            raise Unsupported("* inside an expression")
        if isinstance(node, exp.Lambda):
            _refuse_variables(node)
    columns = tuple(sorted((_column(c, start) for c in tree.find_all(exp.Column)), key=_start))
    expression = _Expression(tokens, [(place.begin, place.closed) for place in places], read)
    fields = expression.fields(begin, stop, columns)
    calls = expression.calls(begin, stop)
    return Fragment(
        start,
        end,
        columns,
        tuple(_filled(call, columns, queries, fields) for call in calls),
        tuple(queries),
        expression.coalesce(begin, stop),
        _position(tokens, begin, stop),
        fields,
    )


def _places(tokens: Tokens, begin: int, stop: int) -> list[Place]:
    """Where the sub-queries of an expression stand."""
    if not any(raw.upper() in ("SELECT", "WITH") for raw in tokens.raws[begin:stop]):
        return []
    words = [spoken(tokens.raws, i) for i in range(stop)]
    try:
        return sub_queries(words, begin, stop)
    except Unreadable as error:
        raise Unsupported(str(error)) from error


def _nested(tokens: Tokens, place: Place, read: ReadQuery) -> Nested:
    begin, stop = place.left
    if begin < stop and tokens.raws[begin] == "(" and _partner(tokens, begin, stop) == stop - 1:
        begin, stop = begin + 1, stop - 1
    sides = _split(tokens, begin, stop) if place.asks == "in" else []
    return Nested(
        tokens.parsed[place.begin].start,
        tokens.parsed[place.closed].end + 1,
        read(place.opened + 1, place.closed),
        place.asks,
        tuple(fragment(tokens, one, two, read) for one, two in sides),
        place.negated,
        place.matters,
    )


def _filled(
    call: CallUse,
    columns: tuple[ColumnUse, ...],
    queries: list[Nested],
    fields: tuple[Field, ...],
) -> CallUse:
    return msgspec.structs.replace(
        call,
        columns=tuple(use for use in columns if call.start <= use.start < call.end),
        queries=tuple(query for query in queries if call.start <= query.start < call.end),
        inner=tuple(_filled(one, columns, queries, fields) for one in call.inner),
        fields=tuple(field for field in fields if call.start <= field.start < call.end),
    )


#: What columns and keys are called in a plan.
_OWN_NAMES = re.compile(r"[ck]\d+|sqb_\w*|__[nw]", re.IGNORECASE)


def _refuse_variables(node: exp.Lambda) -> None:
    """Spark knows the variables of a lambda whatever their case; none may be taken for a column,
    nor a column of the plan for one."""
    names = {variable.name.lower() for variable in node.expressions}
    columns = {column.parts[0].name.lower() for column in node.this.find_all(exp.Column)}
    for name in sorted(names):
        if name in columns or _OWN_NAMES.fullmatch(name):
            raise Unsupported(f"a lambda over {name}")


def _parse(text: str) -> exp.Expr:
    try:
        found = dialect().parser().parse(dialect().tokenize(text), text)
    except Exception as error:  # what the parser does not read, and what it stumbles over
        raise Unsupported(f"the expression {text}") from error
    tree = found[0] if len(found) == 1 else None
    if tree is None or isinstance(tree, exp.Alias | exp.Command):
        raise Unsupported(f"the expression {text}")
    return tree


def _has_unit(node: exp.Interval) -> bool:
    """Is it an interval, such as ``INTERVAL 1 DAY`` or ``INTERVAL '1 day 2 hours'``?"""
    if node.args.get("unit") is not None:
        return True
    return isinstance(node.this, exp.Literal) and any(map(str.isalpha, node.name))


def _start(use: ColumnUse) -> int:
    return use.start


def _column(node: exp.Column, offset: int) -> ColumnUse:
    if isinstance(node.this, exp.Star):
        raise Unsupported("* inside an expression")
    parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
    if len(parts) != len(node.parts) or any("start" not in part.meta for part in parts):
        raise Unsupported(f"the column {node.name}")
    start = min(int(part.meta["start"]) for part in parts)
    ends = tuple(offset + int(part.meta["end"]) + 1 for part in parts)
    return ColumnUse(offset + start, tuple(str(part.this) for part in parts), ends)


class _Expression:
    """The tokens of one expression, without those of the sub-queries in it."""

    def __init__(self, tokens: Tokens, places: list[tuple[int, int]], read: ReadQuery) -> None:
        self.tokens = tokens
        self.raws = tokens.raws
        self.places = places
        self.read = read

    def fragments(self, begin: int, stop: int) -> tuple[Fragment, ...]:
        parts = _split(self.tokens, begin, stop)
        return tuple(fragment(self.tokens, a, b, self.read) for a, b in parts)

    def _ask_unit(self, name: str, opened: int, stop: int) -> None:
        """A unit is a string; sqlglot takes a column in its place for one."""
        closed = _partner(self.tokens, opened, stop)
        parts = _split(self.tokens, opened + 1, closed)
        begin, end = parts[_UNITS[name]] if len(parts) > _UNITS[name] else (0, 1)
        if end - begin != 1 or self.raws[begin][0] not in "'\"":
            raise Unsupported(f"{name} by a unit that is not written out")

    def calls(self, begin: int, stop: int) -> tuple[CallUse, ...]:
        """The outermost aggregate and window calls; every function's name is checked."""
        out: list[CallUse] = []
        inside = begin
        for i in range(begin, stop):
            name = self.raws[i].lower()
            if name == "array" and self.raws[i + 1 : i + 2] == ["["]:
                raise Unsupported("a column named array")
            if i + 1 >= stop or self.raws[i + 1] != "(":
                continue
            if any(a <= i <= b for a, b in self.places):
                continue
            if name.startswith("`"):  # a name in quotes may be that of any function
                raise Unsupported(f"the function {name}")
            if not name.replace("_", "a").isalnum():
                continue
            if i > begin and self.raws[i - 1] == ".":
                raise Unsupported(f"the function {name}")
            before = self.raws[i - 1].upper() if i > begin else ""
            if name in SYNTAX and (name not in _CALLABLE or before in ("LIKE", "ILIKE")):
                continue
            if not any(name in known for known in (SCALARS, AGGREGATES, WINDOWS, GENERATORS)):
                raise Unsupported(f"the function {name}")
            if name in _UNITS:
                self._ask_unit(name, i + 1, stop)
            if i < inside or (name in SCALARS and not self.is_over(i, stop)):
                continue
            call, inside = self.call(i, stop)
            out.append(call)
        return tuple(out)

    def fields(self, begin: int, stop: int, columns: tuple[ColumnUse, ...]) -> tuple[Field, ...]:
        """The fields of structs in the expression."""
        names = {(use.start, use.ends[-1]): use.parts[-1] for use in columns}
        found: list[Field] = []
        for i in range(begin, stop - 1):
            if self.raws[i].lower() != "struct" or self.raws[i + 1] != "(":
                continue
            parts = _split(self.tokens, i + 2, _partner(self.tokens, i + 1, stop))
            for place, (a, b) in enumerate(parts, 1):
                if a < b:
                    span = (self.tokens.parsed[a].start, self.tokens.parsed[b - 1].end + 1)
                    first, last = self._unwrapped(a, b)
                    parsed = self.tokens.parsed
                    inside = (parsed[first].start, parsed[last - 1].end + 1)
                    part = self.raws[last - 1] == "]" or self.raws[last - 2] == "."
                    name = names.get(inside) or ("" if part else f"col{place}")
                    found.append(Field(*span, name, inside in names))
        return tuple(found)

    def _unwrapped(self, begin: int, stop: int) -> tuple[int, int]:
        """The tokens without the parentheses around all of them."""
        while self.raws[begin] == "(" and _partner(self.tokens, begin, stop) == stop - 1:
            begin, stop = begin + 1, stop - 1
        return begin, stop

    def is_over(self, i: int, stop: int) -> bool:
        close = _partner(self.tokens, i + 1, stop)
        return close + 1 < stop and self.raws[close + 1].upper() == "OVER"

    def call(self, i: int, stop: int) -> tuple[CallUse, int]:
        name = self.raws[i].lower()
        close = _partner(self.tokens, i + 1, stop)
        begin, distinct = i + 2, False
        if begin < close and self.raws[begin].upper() in ("DISTINCT", "ALL"):
            distinct = self.raws[begin].upper() == "DISTINCT"
            begin += 1
        arguments: tuple[Fragment, ...] = ()
        if begin < close and self.raws[begin] != "*":
            arguments = self.fragments(begin, close)
        filtered = ordered = False
        partition: tuple[Fragment, ...] = ()
        inner: tuple[CallUse, ...] = ()
        kind: Literal["aggregate", "window", "generator"] = "aggregate"
        if name in GENERATORS:
            kind = "generator"
        at = close + 1
        while at < stop:
            word = self.raws[at].upper()
            if word == "FILTER":
                filtered, at = True, _partner(self.tokens, at + 1, stop) + 1
            elif word == "WITHIN":
                ordered, at = True, _partner(self.tokens, at + 2, stop) + 1
            elif word in ("IGNORE", "RESPECT"):
                at += 2
            elif word == "OVER":
                if self.raws[at + 1 : at + 2] != ["("]:
                    raise Unsupported("a named window")
                kind, over = "window", _partner(self.tokens, at + 1, stop)
                partition = self.partition(at + 2, over)
                at = over + 1
                inner = self.calls(i + 1, at)
            else:
                break
        if kind == "aggregate" and name in WINDOWS:
            raise Unsupported(f"{name} without OVER")
        use = CallUse(
            kind,
            name,
            self.tokens.parsed[i].start,
            self.tokens.parsed[at - 1].end + 1,
            arguments,
            distinct,
            filtered,
            ordered,
            partition,
            inner=inner,
        )
        return use, at

    def partition(self, begin: int, stop: int) -> tuple[Fragment, ...]:
        word = " ".join(self.raws[begin].upper().split()) if begin < stop else ""
        if word != "PARTITION BY":
            if word not in ("", "ORDER BY", "ROWS", "RANGE"):
                raise Unsupported(f"{word} in a window")
            return ()
        depth, at = 0, begin + 1
        while at < stop:
            folded = " ".join(self.raws[at].upper().split())
            if not depth and folded in ("ORDER BY", "SORT BY", "ROWS", "RANGE"):
                break
            depth += (self.raws[at] in "([") - (self.raws[at] in ")]")
            at += 1
        return self.fragments(begin + 1, at)

    def coalesce(self, begin: int, stop: int) -> tuple[Fragment, ...]:
        """The arguments, if the whole expression is COALESCE(a, b)."""
        if self.raws[begin].lower() != "coalesce" or self.raws[begin + 1 : begin + 2] != ["("]:
            return ()
        if _partner(self.tokens, begin + 1, stop) != stop - 1:
            return ()
        parts = self.fragments(begin + 2, stop - 1)
        return parts if len(parts) == 2 else ()


def _split(tokens: Tokens, begin: int, stop: int) -> list[tuple[int, int]]:
    parts: list[tuple[int, int]] = []
    depth, first = 0, begin
    for at in range(begin, stop):
        raw = tokens.raws[at]
        depth += (raw in ("(", "[", "{")) - (raw in (")", "]", "}"))
        if raw == "," and not depth:
            parts.append((first, at))
            first = at + 1
    return [*parts, (first, stop)]


def _partner(tokens: Tokens, i: int, stop: int) -> int:
    """Where the parenthesis at ``i`` closes."""
    depth = 0
    for at in range(i, stop):
        depth += (tokens.raws[at] == "(") - (tokens.raws[at] == ")")
        if not depth:
            return at
    raise Unsupported("(")


def _position(tokens: Tokens, begin: int, stop: int) -> int | None:
    """The number that GROUP BY 1 means."""
    raw = tokens.raws[begin]
    return int(raw) if stop - begin == 1 and raw.isdecimal() else None
