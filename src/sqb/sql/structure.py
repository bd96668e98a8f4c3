"""The structure of a query: its clauses and sources, with every expression as a span of the text.

The tokens give the structure, sqlglot reads single expressions to find their columns; nothing is
printed anew. What is not understood here is ``Unsupported``, and a caller then does without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations, product

from sqb.sql.cursor import Cursor
from sqb.sql.fragments import Fragment, Unsupported, fragment
from sqb.sql.query import (
    Body,
    Conjunct,
    Derived,
    Item,
    Joined,
    JoinWord,
    LateralView,
    Query,
    Relation,
    Select,
    SetQuery,
    SetWord,
    Table,
    Values,
)
from sqb.sql.tokens import Tokens

_CLAUSES = frozenset(
    {"FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "WINDOW", "LATERAL"}
    | {"ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "|>"}
)
_SET_WORDS = frozenset({"UNION", "EXCEPT", "MINUS", "INTERSECT"})
_ENDS = _CLAUSES | _SET_WORDS
_JOIN_WORDS = frozenset(
    {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"}
)
_QUERY_WORDS = ("SELECT", "WITH")


def structure(tokens: Tokens) -> Query:
    """The structure of a whole text."""
    count = len(tokens.raws)
    while count and tokens.raws[count - 1] == ";":
        count -= 1
    reader = _Reader(tokens, 0, count)
    query = reader.query()
    reader.end()
    return query


class _Reader(Cursor):
    """Reads queries; expressions are handed to ``fragment``."""

    def fragment(self) -> Fragment:
        return self._fragment(self.at, self.stop)

    def _fragment(self, begin: int, stop: int) -> Fragment:
        return fragment(self.tokens, begin, stop, self._nested)

    def _nested(self, begin: int, stop: int) -> Query:
        return _whole(_Reader(self.tokens, begin, stop))

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
                ctes.append((name, names, _whole(self.inner())))
                if not self.take(","):
                    break
        body = self._union()
        if self.take("ORDER BY"):
            self.until({"LIMIT", "OFFSET"})  # a table has no order
        if self.at < self.stop:
            raise Unsupported(self.word())
        return Query(tuple(ctes), body)

    def _names(self) -> tuple[str, ...]:
        return tuple(part.name() for part in self.inner().split(","))

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
            query = _whole(self.inner())
            if query.ctes:
                raise Unsupported("WITH inside a set operation")
            return query.body
        if self.take("VALUES"):
            return self._values()
        self.need("SELECT")
        return self._select()

    def _values(self) -> Values:
        rows: list[tuple[Fragment, ...]] = []
        while True:
            if self.word() != "(":
                raise Unsupported("VALUES without parentheses")
            rows.append(tuple(part.fragment() for part in self.inner().split(",")))
            if not self.take(","):
                break
        if len({len(row) for row in rows}) != 1:
            raise Unsupported("VALUES of different widths")
        return Values(tuple(rows))

    def _select(self) -> Select:
        while self.word().startswith("/*+"):  # a hint says how, not what
            self.at += 1
        self.take("ALL")
        distinct = self.take("DISTINCT")
        listed = self.until(_ENDS)
        items = tuple(part._item() for part in listed.split(","))
        first: Relation | None = None
        joins: list[Joined] = []
        laterals: list[LateralView] = []
        if self.take("FROM"):
            first = self._relation()
            joins = self._joins()
            while self.take("LATERAL", "VIEW"):
                laterals.append(self._lateral_view())
        where = self._conjuncts("WHERE", _ENDS)
        group: tuple[Fragment, ...] = ()
        group_all, sets = False, None
        if self.take("GROUP BY"):
            grouped = self.until(_ENDS)
            group_all = grouped.word() == "ALL" and grouped.stop - grouped.at == 1
            if not group_all:
                group, sets = grouped._grouping()
        having = self._conjuncts("HAVING", _ENDS)
        qualify = self._conjuncts("QUALIFY", _ENDS)
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
            sets,
            having,
            qualify,
        )

    def _item(self) -> Item:
        words = [self.word(n) for n in range(self.stop - self.at)]
        if words and words[-1] == "*" and (len(words) == 1 or words[-2] == "."):
            return Item(None, None, self._qualifiers())
        if "*" in words and words[words.index("*") + 1 :][:2] == ["EXCEPT", "("]:
            qualifiers = self._qualifiers()
            self.need("EXCEPT")
            without = self._names()
            self.end()
            return Item(None, None, qualifiers, without)
        alias = None
        stop = self.stop
        if len(words) > 2 and words[-2] == "AS":
            alias, stop = self._last_name(), stop - 2
        elif len(words) > 1 and self._implicit_alias():
            alias, stop = self._last_name(), stop - 1
        return Item(self._fragment(self.at, stop), alias)

    def _qualifiers(self) -> tuple[str, ...]:
        qualifiers: list[str] = []
        while not self.take("*"):
            qualifiers.append(self.name())
            self.need(".")
        return tuple(qualifiers)

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

    # Groups

    def _grouping(self) -> tuple[tuple[Fragment, ...], tuple[tuple[int, ...], ...] | None]:
        """All expressions that are grouped by; and, where not all are always, in which sets."""
        group: list[Fragment] = []
        choices: list[list[tuple[int, ...]]] = []
        plain = True
        for part in self.split(","):
            word = part.word()
            if word not in ("ROLLUP", "CUBE", "GROUPING SETS"):
                choices.append([(len(group),)])
                group.append(part.fragment())
                continue
            plain = False
            part.at += 1
            places = part._group_units(group)
            part.end()
            choices.append(_SETS[word](places))
        if plain:
            return tuple(group), None
        sets = tuple(tuple(n for unit in chosen for n in unit) for chosen in product(*choices))
        return tuple(group), sets

    def _group_units(self, group: list[Fragment]) -> list[tuple[int, ...]]:
        """The entries between parentheses, each one expression or several in parentheses."""
        units: list[tuple[int, ...]] = []
        for part in self.inner().split(","):
            if part.word() in ("ROLLUP", "CUBE", "GROUPING SETS"):
                raise Unsupported(f"{part.word()} inside grouping sets")
            inside = part.inner() if part._wrapped() else part
            unit: list[int] = []
            for one in inside.split(",") if inside.at < inside.stop else []:
                unit.append(len(group))
                group.append(one.fragment())
            units.append(tuple(unit))
        return units

    # Conditions

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
            if inner.count("OR") == 0:
                return list(inner._chain())
            return [Conjunct(self._fragment(inner.at - 1, inner.stop + 1))]
        if self.word() == "NOT" and self.count("AND") == self.count("OR") == 0:
            turned = self._turned()
            if turned is not None:
                return [turned]
        if self.word() == "EXISTS" and self.word(1) == "(" and self.word(2) in _QUERY_WORDS:
            self.at += 1
            query = _whole(self.inner())
            self.end()
            return [Conjunct(query=query)]
        found = self._in()
        if found is not None:
            return [found]
        for sign, null_safe in (("=", False), ("==", False), ("<=>", True)):
            if self.count(sign) == 1 and not any(self.count(w) for w in _BESIDE_EQUAL - {sign}):
                left, right = self.halves(sign)
                whole = self.fragment()
                return [Conjunct(whole, (left.fragment(), right.fragment()), null_safe)]
        return [Conjunct(self.fragment())]

    def _turned(self) -> Conjunct | None:
        """NOT EXISTS and NOT x IN, with as many NOTs and parentheses as there are."""
        rest = _Reader(self.tokens, self.at + 1, self.stop)
        while rest._wrapped():
            rest = rest.inner()
        if rest.count("AND") or rest.count("OR"):
            return None
        (found,) = rest._condition()
        if found.query is None:
            return None
        return Conjunct(query=found.query, values=found.values, negated=not found.negated)

    def _wrapped(self) -> bool:
        if self.word() != "(":
            return False
        probe = _Reader(self.tokens, self.at, self.stop)
        inner = probe.inner()
        return probe.at == self.stop and inner.word() not in _QUERY_WORDS

    def _in(self) -> Conjunct | None:
        if self.count("IN") != 1 or self.count("OR"):
            return None
        left, right = self.halves("IN")
        if right.word() != "(" or right.word(1) not in (*_QUERY_WORDS, "VALUES"):
            return None
        negated = left.stop > left.at and self.tokens.raws[left.stop - 1].upper() == "NOT"
        left.stop -= negated
        if any(left.count(word) for word in _LOOSER):
            return None
        values = left.inner().split(",") if left._wrapped() else [left]
        query = _whole(right.inner())
        right.end()
        return Conjunct(query=query, values=tuple(v.fragment() for v in values), negated=negated)

    # Relations

    def _relation(self) -> Relation:
        if self.word() == "LATERAL":
            raise Unsupported("LATERAL")
        if self.word() == "VALUES":
            return self._derived(Query((), self._block()))
        if self.word() == "(":
            inner = self.inner()
            if inner.word() not in (*_QUERY_WORDS, "VALUES", "("):
                raise Unsupported("a join in parentheses")
            return self._derived(_whole(inner))
        start = self.tokens.parsed[self.at].start
        name = self.name()
        while self.take("."):
            name = self.name()
        if self.word() == "(" and name in ("__ref", "__source", "__seed"):
            name = self.inner().tokens.parsed[self.at - 2].text
        if self.word() in ("(", *_TABLE_WORDS):
            raise Unsupported(self.word())
        alias = self._alias()
        if self.word() in ("(", *_TABLE_WORDS):
            raise Unsupported(f"{self.word()} behind {alias or name}")
        return Table(start, alias or name)

    def _derived(self, query: Query) -> Derived:
        alias = self._alias()
        names = self._names() if alias and self.word() == "(" else ()
        if self.word() in _TABLE_WORDS:
            raise Unsupported(self.word())
        return Derived(query, alias, names)

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
                on = self._conjuncts("ON", _ENDS | _JOIN_WORDS | {","})
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
        generator = self._fragment(begin, self.at)
        alias = self.name() if self.word() != "AS" else ""
        names: list[str] = []
        if self.take("AS"):
            names.append(self.name())
            while self.take(","):
                names.append(self.name())
        return LateralView(outer, generator, alias, tuple(names))


def _whole(reader: _Reader) -> Query:
    query = reader.query()
    reader.end()
    return query


Units = list[tuple[int, ...]]


def _flat(units: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(n for unit in units for n in unit)


def _rollup(units: Units) -> Units:
    return [_flat(units[:n]) for n in range(len(units), -1, -1)]


def _cube(units: Units) -> Units:
    return [_flat(chosen) for n in range(len(units), -1, -1) for chosen in combinations(units, n)]


_SETS: dict[str, Callable[[Units], Units]] = {
    "ROLLUP": _rollup,
    "CUBE": _cube,
    "GROUPING SETS": lambda units: units,
}
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
_TABLE_WORDS = ("VERSION", "TIMESTAMP", "FOR", "TABLESAMPLE", "PIVOT", "UNPIVOT")
_NOT_ALIASES = _ENDS | _JOIN_WORDS | frozenset({"ON", "USING", ",", ")", "(", *_TABLE_WORDS})
#: Words that bind less tightly than IN.
_LOOSER = ("OR", "NOT", "AND")
#: Words and signs beside which ``a = b`` is not all that is said.
_BESIDE_EQUAL = frozenset(
    {*_LOOSER, "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "<", ">", "<=", ">="}
    | {"<>", "!=", "=", "==", "<=>", "->"}
)
_OPERATORS = frozenset(
    {"AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "DIV", "CASE", "WHEN"}
    | {"THEN", "ELSE", "DISTINCT", "ALL", "DATE", "TIMESTAMP", "INTERVAL", "FROM", "ESCAPE"}
)
