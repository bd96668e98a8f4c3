"""The structure of a query: its clauses and sources, with every expression as a span of the text.

The tokens give the structure, sqlglot reads single expressions to find their columns; nothing is
printed anew. What is not understood here is ``Unsupported``, and a caller then does without.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from sqb.sql.fragments import Fragment, Unsupported, fragment
from sqb.sql.tokens import Tokens

JoinWord = Literal["inner", "left", "right", "full", "semi", "anti", "cross"]

SetWord = Literal["union", "except", "intersect"]

_CLAUSES = frozenset(
    {"FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "WINDOW", "LATERAL"}
    | {"ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "|>"}
)
_SET_WORDS = frozenset({"UNION", "EXCEPT", "MINUS", "INTERSECT"})
_JOIN_WORDS = frozenset(
    {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"}
)
_OPEN, _CLOSE = frozenset({"(", "[", "{"}), frozenset({")", "]", "}"})


class Item(msgspec.Struct, frozen=True):
    """One entry of a select list: an expression with its name, or ``*`` of a table or of all."""

    expr: Fragment | None
    alias: str | None
    star: tuple[str, ...] | None = None


class Conjunct(msgspec.Struct, frozen=True):
    """One condition of an AND chain.

    ``equal`` splits ``a = b`` or ``a <=> b``. ``query`` is the sub-query of EXISTS or IN, whose
    left side is ``value``.
    """

    expr: Fragment | None = None
    equal: tuple[Fragment, Fragment] | None = None
    null_safe: bool = False
    query: Query | None = None
    value: Fragment | None = None
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


class LateralView(msgspec.Struct, frozen=True):
    """LATERAL VIEW: a generator beside each row."""

    outer: bool
    generator: Fragment
    alias: str
    columns: tuple[str, ...]


Relation = Table | Derived


class Select(msgspec.Struct, frozen=True):
    """One SELECT block."""

    distinct: bool
    items: tuple[Item, ...]
    first: Relation | None
    joins: tuple[Joined, ...] = ()
    laterals: tuple[LateralView, ...] = ()
    where: tuple[Conjunct, ...] = ()
    group: tuple[Fragment, ...] = ()
    group_all: bool = False
    having: tuple[Conjunct, ...] = ()
    qualify: tuple[Conjunct, ...] = ()


class SetQuery(msgspec.Struct, frozen=True):
    """Two queries combined."""

    kind: SetWord
    all: bool
    left: Body
    right: Body


Body = Select | SetQuery


class Query(msgspec.Struct, frozen=True):
    """A query with its CTEs; ``ctes`` are seen by those after them and by the body."""

    ctes: tuple[tuple[str, tuple[str, ...], Query], ...]
    body: Body


def structure(tokens: Tokens) -> Query:
    """The structure of a whole text."""
    count = len(tokens.raws)
    while count and tokens.raws[count - 1] == ";":
        count -= 1
    reader = _Reader(tokens, 0, count)
    query = reader.query()
    reader.end()
    return query


class _Reader:
    """A cursor over the tokens ``[at, stop)``."""

    def __init__(self, tokens: Tokens, at: int, stop: int) -> None:
        self.tokens = tokens
        self.at = at
        self.stop = stop

    # Tokens

    def word(self, ahead: int = 0) -> str:
        i = self.at + ahead
        return " ".join(self.tokens.raws[i].upper().split()) if i < self.stop else ""

    def take(self, *words: str) -> bool:
        if all(self.word(n) == word for n, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def need(self, word: str) -> None:
        if not self.take(word):
            raise Unsupported(self.word() or "the end of the query")

    def end(self) -> None:
        if self.at < self.stop:
            raise Unsupported(self.word())

    def name(self) -> str:
        raw = self.tokens.raws[self.at] if self.at < self.stop else ""
        quoted = raw.startswith("`")
        if not quoted and not raw.replace("_", "a").isalnum():
            raise Unsupported(raw or "the end of the query")
        self.at += 1
        return raw[1:-1].replace("``", "`") if quoted else raw

    def inner(self) -> _Reader:
        """What stands between this parenthesis and its partner; the cursor goes behind it."""
        self.need("(")
        begin, depth = self.at, 1
        while self.at < self.stop:
            word = self.word()
            depth += (word in _OPEN) - (word in _CLOSE)
            if not depth:
                found = _Reader(self.tokens, begin, self.at)
                self.at += 1
                return found
            self.at += 1
        raise Unsupported("(")

    def until(self, words: Iterable[str]) -> _Reader:
        """Everything up to one of ``words`` outside parentheses and CASE."""
        begin, depth, wanted = self.at, 0, frozenset(words)
        while self.at < self.stop:
            word = self.word()
            if not depth and word in wanted and not self._within_expression(word):
                break
            depth += (word in _OPEN or word == "CASE") - (word in _CLOSE or word == "END")
            self.at += 1
        return _Reader(self.tokens, begin, self.at)

    def _within_expression(self, word: str) -> bool:
        # IS DISTINCT FROM, and the functions left(), right()
        if word == "FROM":
            return self.tokens.raws[self.at - 1].upper() == "DISTINCT"
        if word == "EXCEPT":  # SELECT * EXCEPT (a)
            return self.tokens.raws[self.at - 1] == "*"
        if word in ("LEFT", "RIGHT", "ANTI", "SEMI", "FULL"):
            return self.word(1) == "("
        return False

    def split(self, separator: str) -> list[_Reader]:
        """The parts between separators outside parentheses, CASE and BETWEEN."""
        parts: list[_Reader] = []
        begin, depth, between = self.at, 0, 0
        while self.at < self.stop:
            word = self.word()
            depth += (word in _OPEN or word == "CASE") - (word in _CLOSE or word == "END")
            if not depth and word == "BETWEEN":
                between += 1
            elif not depth and word == separator:
                if word == "AND" and between:
                    between -= 1
                else:
                    parts.append(_Reader(self.tokens, begin, self.at))
                    begin = self.at + 1
            self.at += 1
        parts.append(_Reader(self.tokens, begin, self.stop))
        return parts

    def fragment(self) -> Fragment:
        return fragment(self.tokens, self.at, self.stop)

    # Queries

    def query(self) -> Query:
        ctes: list[tuple[str, tuple[str, ...], Query]] = []
        if self.take("WITH"):
            if self.word() == "RECURSIVE":
                raise Unsupported("WITH RECURSIVE")
            while True:
                name = self.name()
                names = self._names() if self.word() == "(" else ()
                self.need("AS")
                ctes.append((name, names, self._whole(self.inner())))
                if not self.take(","):
                    break
        body = self._union()
        if self.take("ORDER BY"):
            self.until({"LIMIT", "OFFSET"})  # a table has no order
        if self.at < self.stop:
            raise Unsupported(self.word())
        return Query(tuple(ctes), body)

    def _whole(self, reader: _Reader) -> Query:
        query = reader.query()
        reader.end()
        return query

    def _names(self) -> tuple[str, ...]:
        inner = self.inner()
        return tuple(part.name() for part in inner.split(","))

    def _union(self) -> Body:
        left = self._intersect()
        while self.word() in ("UNION", "EXCEPT", "MINUS"):
            kind: SetWord = "union" if self.word() == "UNION" else "except"
            self.at += 1
            every = self.take("ALL")
            self.take("DISTINCT")
            left = SetQuery(kind, every, left, self._intersect())
        return left

    def _intersect(self) -> Body:
        left = self._block()
        while self.take("INTERSECT"):
            every = self.take("ALL")
            self.take("DISTINCT")
            left = SetQuery("intersect", every, left, self._block())
        return left

    def _block(self) -> Body:
        if self.word() == "(":
            query = self._whole(self.inner())
            if query.ctes:
                raise Unsupported("WITH inside a set operation")
            return query.body
        self.need("SELECT")
        return self._select()

    def _select(self) -> Select:
        self.take("ALL")
        distinct = self.take("DISTINCT")
        listed = self.until(_CLAUSES | _SET_WORDS)
        items = tuple(part._item() for part in listed.split(","))
        first: Relation | None = None
        joins: list[Joined] = []
        laterals: list[LateralView] = []
        if self.take("FROM"):
            first = self._relation()
            joins = self._joins()
            while self.take("LATERAL", "VIEW"):
                laterals.append(self._lateral_view())
        ends = _CLAUSES | _SET_WORDS
        where = self._conjuncts("WHERE", ends)
        group: tuple[Fragment, ...] = ()
        group_all = False
        if self.take("GROUP BY"):
            grouped = self.until(ends)
            for n in range(grouped.stop - grouped.at):
                if grouped.word(n) in ("ROLLUP", "CUBE", "GROUPING SETS", "GROUPING", "SETS"):
                    raise Unsupported(grouped.word(n))
            group_all = grouped.word() == "ALL" and grouped.stop - grouped.at == 1
            if not group_all:
                group = tuple(part.fragment() for part in grouped.split(","))
        having = self._conjuncts("HAVING", ends)
        qualify = self._conjuncts("QUALIFY", ends)
        if self.word() not in ("", "ORDER BY", *_SET_WORDS):
            raise Unsupported(self.word())
        return Select(
            distinct,
            items,
            first,
            tuple(joins),
            tuple(laterals),
            where,
            group,
            group_all,
            having,
            qualify,
        )

    def _item(self) -> Item:
        words = [self.word(n) for n in range(self.stop - self.at)]
        if words and words[-1] == "*" and (len(words) == 1 or words[-2] == "."):
            qualifiers = []
            while self.word() != "*":
                qualifiers.append(self.name())
                self.need(".")
            return Item(None, None, tuple(qualifiers))
        if words and words[0] == "*":
            raise Unsupported("* EXCEPT")
        alias = None
        stop = self.stop
        if len(words) > 2 and words[-2] == "AS":
            alias, stop = self._last_name(), stop - 2
        elif len(words) > 1 and self._implicit_alias():
            alias, stop = self._last_name(), stop - 1
        return Item(fragment(self.tokens, self.at, stop), alias)

    def _last_name(self) -> str:
        return _Reader(self.tokens, self.stop - 1, self.stop).name()

    def _implicit_alias(self) -> bool:
        """Is the last token a name that stands right behind an expression?"""
        raws = self.tokens.raws
        last, before = raws[self.stop - 1], raws[self.stop - 2]
        if not (last.startswith("`") or last.replace("_", "a").isalnum()) or last[:1].isdigit():
            return False
        if last.upper() in ("END", "NULL", "TRUE", "FALSE"):
            return False
        ends = before in (")", "]") or before[-1:] in "'`\"" or before.upper() in ("END", "NULL")
        plain = before.replace("_", "a").isalnum() and before.upper() not in _OPERATORS
        return ends or plain

    def _conjuncts(self, word: str, ends: Iterable[str]) -> tuple[Conjunct, ...]:
        if not self.take(word):
            return ()
        return self.until(ends)._chain()

    def _chain(self) -> tuple[Conjunct, ...]:
        out: list[Conjunct] = []
        for part in self.split("AND"):
            out += part._condition()
        return tuple(out)

    def _condition(self) -> list[Conjunct]:
        if self._wrapped():
            inner = self.inner()
            if inner._count("OR") == 0:
                return list(inner._chain())
            return [Conjunct(self._back(inner))]
        negated = self.word() == "NOT" and self.word(1) == "EXISTS"
        if negated or self.word() == "EXISTS":
            self.at += 2 if negated else 1
            query = self._whole(self.inner())
            self.end()
            return [Conjunct(query=query, negated=negated)]
        found = self._in()
        if found is not None:
            return [found]
        for sign, null_safe in (("=", False), ("==", False), ("<=>", True)):
            if self._count(sign) == 1 and self._count("OR") == 0 and self._count("NOT") == 0:
                left, right = self._halves(sign)
                whole = self.fragment()
                return [Conjunct(whole, (left.fragment(), right.fragment()), null_safe)]
        return [Conjunct(self.fragment())]

    def _wrapped(self) -> bool:
        if self.word() != "(":
            return False
        probe = _Reader(self.tokens, self.at, self.stop)
        inner = probe.inner()
        return probe.at == self.stop and inner.word() not in ("SELECT", "WITH")

    def _back(self, inner: _Reader) -> Fragment:
        return fragment(self.tokens, inner.at - 1, inner.stop + 1)

    def _in(self) -> Conjunct | None:
        if self._count("IN") != 1 or self._count("OR"):
            return None
        left, right = self._halves("IN")
        if right.word() != "(" or right.word(1) not in ("SELECT", "WITH"):
            return None
        negated = left.stop > left.at and self.tokens.raws[left.stop - 1].upper() == "NOT"
        value = fragment(self.tokens, left.at, left.stop - negated)
        query = self._whole(right.inner())
        right.end()
        return Conjunct(query=query, value=value, negated=negated)

    def _count(self, wanted: str) -> int:
        depth = found = 0
        for i in range(self.stop - self.at):
            word = self.word(i)
            depth += (word in _OPEN or word == "CASE") - (word in _CLOSE or word == "END")
            found += not depth and word == wanted
        return found

    def _halves(self, sign: str) -> tuple[_Reader, _Reader]:
        probe = _Reader(self.tokens, self.at, self.stop)
        left = probe.until({sign})
        return left, _Reader(self.tokens, probe.at + 1, self.stop)

    # Relations

    def _relation(self) -> Relation:
        if self.word() == "LATERAL":
            raise Unsupported("LATERAL")
        if self.word() == "(":
            inner = self.inner()
            if inner.word() not in ("SELECT", "WITH", "("):
                raise Unsupported("a join in parentheses")
            query = self._whole(inner)
            alias = self._alias()
            return Derived(query, alias, self._names() if alias and self.word() == "(" else ())
        start = self.tokens.parsed[self.at].start
        name = self.name()
        while self.take("."):
            name = self.name()
        if self.word() == "(" and name in ("__ref", "__source", "__seed"):
            name = self.inner().tokens.parsed[self.at - 2].text
        if self.word() in ("(", "VERSION", "TIMESTAMP", "FOR", "TABLESAMPLE", "PIVOT", "UNPIVOT"):
            raise Unsupported(self.word())
        return Table(start, self._alias() or name)

    def _alias(self) -> str | None:
        if self.take("AS"):
            return self.name()
        word = self.word()
        if not word or word in _NOT_ALIASES or not (word.startswith("`") or word[0].isalpha()):
            return None
        return self.name()

    def _joins(self) -> list[Joined]:
        out: list[Joined] = []
        while True:
            if self.take(","):
                out.append(Joined("cross", self._relation()))
                continue
            if self.word() not in _JOIN_WORDS:
                return out
            natural = self.take("NATURAL")
            kind = self._join_word()
            relation = self._relation()
            on: tuple[Conjunct, ...] = ()
            using: tuple[str, ...] = ()
            if self.take("USING"):
                using = self._names()
            else:
                on = self._conjuncts("ON", _CLAUSES | _SET_WORDS | _JOIN_WORDS | {","})
            out.append(Joined(kind, relation, on, using, natural))

    def _join_word(self) -> JoinWord:
        words: list[str] = []
        while not self.take("JOIN"):
            words.append(self.word())
            self.at += 1
            if len(words) > 3:
                raise Unsupported(" ".join(words))
        kind = _JOIN_KINDS.get(tuple(word for word in words if word != "OUTER"))
        if kind is None:
            raise Unsupported(f"{' '.join(words)} JOIN")
        return kind

    def _lateral_view(self) -> LateralView:
        outer = self.take("OUTER")
        begin = self.at
        self.name()
        self.inner()
        generator = fragment(self.tokens, begin, self.at)
        alias = self.name() if self.word() != "AS" else ""
        names: list[str] = []
        if self.take("AS"):
            names.append(self.name())
            while self.take(","):
                names.append(self.name())
        return LateralView(outer, generator, alias, tuple(names))


_JOIN_KINDS: dict[tuple[str, ...], JoinWord] = {
    (): "inner",
    ("INNER",): "inner",
    ("CROSS",): "cross",
    ("LEFT",): "left",
    ("RIGHT",): "right",
    ("FULL",): "full",
    ("SEMI",): "semi",
    ("LEFT", "SEMI"): "semi",
    ("ANTI",): "anti",
    ("LEFT", "ANTI"): "anti",
}
_NOT_ALIASES = (
    _CLAUSES
    | _SET_WORDS
    | _JOIN_WORDS
    | frozenset({"ON", "USING", ",", ")", "(", "VERSION", "TIMESTAMP", "FOR", "TABLESAMPLE"})
    | frozenset({"PIVOT", "UNPIVOT"})
)
_OPERATORS = frozenset(
    {"AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "DIV", "CASE", "WHEN"}
    | {"THEN", "ELSE", "DISTINCT", "ALL", "DATE", "TIMESTAMP", "INTERVAL", "FROM", "ESCAPE"}
)
