"""Expressions as spans of the user's text: which columns they read, which functions they call."""

from __future__ import annotations

from typing import Literal

import msgspec
from sqlglot import exp
from sqlglot.errors import ParseError

from sqb.sql.functions import AGGREGATES, GENERATORS, SCALARS, SYNTAX, WINDOWS
from sqb.sql.tokens import Tokens, dialect


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


class CallUse(msgspec.Struct, frozen=True):
    """An aggregate or window function call that is not inside another one.

    ``arguments`` are the expressions between its parentheses; ``partition`` belongs to windows.
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

    @property
    def span(self) -> Fragment:
        """The whole call as an expression."""
        return Fragment(self.start, self.end, self.columns, ())


class Fragment(msgspec.Struct, frozen=True):
    """One expression of the text; ``columns`` has all columns in it, in calls too."""

    start: int
    end: int
    columns: tuple[ColumnUse, ...]
    calls: tuple[CallUse, ...]
    coalesce: tuple[Fragment, ...] = ()
    literal: int | None = None


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
)
_SUBQUERIES = (exp.Query, exp.Subquery, exp.Exists)


def fragment(tokens: Tokens, begin: int, stop: int) -> Fragment:
    """The expression of the tokens ``[begin, stop)``."""
    if begin >= stop:
        raise Unsupported("an empty expression")
    start = tokens.parsed[begin].start
    end = tokens.parsed[stop - 1].end + 1
    text = tokens.sql[start:end]
    if "/*+" in text:
        raise Unsupported("a hint inside an expression")
    tree = _parse(text)
    for node in tree.walk():
        if isinstance(node, _SUBQUERIES):
            raise Unsupported("a sub-query inside an expression")
        if not isinstance(node, _ALLOWED):
            raise Unsupported(type(node).__name__)
    columns = tuple(sorted((_column(c, start) for c in tree.find_all(exp.Column)), key=_start))
    calls = tuple(_with_columns(call, columns) for call in _calls(tokens, begin, stop))
    return Fragment(
        start,
        end,
        columns,
        calls,
        _coalesce(tokens, begin, stop),
        _position(tokens, begin, stop),
    )


def _with_columns(call: CallUse, columns: tuple[ColumnUse, ...]) -> CallUse:
    inside = tuple(use for use in columns if call.start <= use.start < call.end)
    return msgspec.structs.replace(call, columns=inside)


def _parse(text: str) -> exp.Expr:
    try:
        found = dialect().parser().parse(dialect().tokenize(text), text)
    except ParseError as error:
        raise Unsupported(f"the expression {text}") from error
    tree = found[0] if len(found) == 1 else None
    if tree is None or isinstance(tree, exp.Alias | exp.Command):
        raise Unsupported(f"the expression {text}")
    return tree


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


def _calls(tokens: Tokens, begin: int, stop: int) -> tuple[CallUse, ...]:
    """The outermost aggregate and window calls; every function's name is checked."""
    out: list[CallUse] = []
    inside = begin
    for i in range(begin, stop):
        name = tokens.raws[i].lower()
        if i + 1 >= stop or tokens.raws[i + 1] != "(" or not name.replace("_", "a").isalnum():
            continue
        if name in SYNTAX or (i > begin and tokens.raws[i - 1] == "."):
            if i > begin and tokens.raws[i - 1] == ".":
                raise Unsupported(f"the function {name}")
            continue
        known = name in SCALARS or name in AGGREGATES or name in WINDOWS or name in GENERATORS
        if not known:
            raise Unsupported(f"the function {name}")
        if i < inside or (name in SCALARS and not _is_over(tokens, i, stop)):
            continue
        call, inside = _call(tokens, i, stop)
        out.append(call)
    return tuple(out)


def _is_over(tokens: Tokens, i: int, stop: int) -> bool:
    close = _partner(tokens, i + 1, stop)
    return close + 1 < stop and tokens.raws[close + 1].upper() == "OVER"


def _call(tokens: Tokens, i: int, stop: int) -> tuple[CallUse, int]:
    name = tokens.raws[i].lower()
    close = _partner(tokens, i + 1, stop)
    begin, distinct = i + 2, False
    if begin < close and tokens.raws[begin].upper() in ("DISTINCT", "ALL"):
        distinct = tokens.raws[begin].upper() == "DISTINCT"
        begin += 1
    arguments: tuple[Fragment, ...] = ()
    if begin < close and tokens.raws[begin] != "*":
        arguments = tuple(fragment(tokens, a, b) for a, b in _split(tokens, begin, close))
    filtered = ordered = False
    partition: tuple[Fragment, ...] = ()
    kind: Literal["aggregate", "window", "generator"] = "aggregate"
    if name in GENERATORS:
        kind = "generator"
    at = close + 1
    while at < stop:
        word = tokens.raws[at].upper()
        if word == "FILTER":
            filtered, at = True, _partner(tokens, at + 1, stop) + 1
        elif word == "WITHIN":
            ordered, at = True, _partner(tokens, at + 2, stop) + 1
        elif word in ("IGNORE", "RESPECT"):
            at += 2
        elif word == "OVER":
            if tokens.raws[at + 1 : at + 2] != ["("]:
                raise Unsupported("a named window")
            kind, over = "window", _partner(tokens, at + 1, stop)
            partition = _partition(tokens, at + 2, over)
            at = over + 1
        else:
            break
    if kind == "aggregate" and name in WINDOWS:
        raise Unsupported(f"{name} without OVER")
    use = CallUse(
        kind,
        name,
        tokens.parsed[i].start,
        tokens.parsed[at - 1].end + 1,
        arguments,
        distinct,
        filtered,
        ordered,
        partition,
    )
    return use, at


def _partition(tokens: Tokens, begin: int, stop: int) -> tuple[Fragment, ...]:
    word = " ".join(tokens.raws[begin].upper().split()) if begin < stop else ""
    if word != "PARTITION BY":
        return ()
    depth, at = 0, begin + 1
    while at < stop:
        folded = " ".join(tokens.raws[at].upper().split())
        if not depth and folded in ("ORDER BY", "SORT BY", "ROWS", "RANGE"):
            break
        depth += (tokens.raws[at] in "([") - (tokens.raws[at] in ")]")
        at += 1
    return tuple(fragment(tokens, a, b) for a, b in _split(tokens, begin + 1, at))


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


def _coalesce(tokens: Tokens, begin: int, stop: int) -> tuple[Fragment, ...]:
    """The arguments, if the whole expression is COALESCE(a, b)."""
    if tokens.raws[begin].lower() != "coalesce" or tokens.raws[begin + 1 : begin + 2] != ["("]:
        return ()
    if _partner(tokens, begin + 1, stop) != stop - 1:
        return ()
    parts = _split(tokens, begin + 2, stop - 1)
    return tuple(fragment(tokens, a, b) for a, b in parts) if len(parts) == 2 else ()


def _position(tokens: Tokens, begin: int, stop: int) -> int | None:
    """The number that GROUP BY 1 means."""
    raw = tokens.raws[begin]
    return int(raw) if stop - begin == 1 and raw.isdecimal() else None
