"""The structure of a query: its clauses and sources, with every expression as a span of the text.

The tokens give the structure, sqlglot reads single expressions to find their columns; nothing is
printed anew. What is not understood here is ``Unsupported``, and a caller then does without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import combinations, product

from sqb.sql.conditions import QUERY_WORDS, Conditions
from sqb.sql.fragments import Fragment, Unsupported
from sqb.sql.query import (
    Body,
    Conjunct,
    Derived,
    FirstRows,
    Item,
    Joined,
    JoinWord,
    LateralView,
    Nested,
    Query,
    Relation,
    Select,
    SetQuery,
    SetWord,
    Sorted,
    Table,
    Values,
)
from sqb.sql.tokens import Tokens, spoken

_CLAUSES = frozenset(
    {"FROM", "WHERE", "GROUP BY", "HAVING", "QUALIFY", "WINDOW", "LATERAL"}
    | {"ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET", "|>"}
)
_SET_WORDS = frozenset({"UNION", "EXCEPT", "MINUS", "INTERSECT"})
_ENDS = _CLAUSES | _SET_WORDS
_JOIN_WORDS = frozenset(
    {"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL"}
)


def structure(tokens: Tokens) -> Query:
    """The structure of a whole text."""
    count = len(tokens.raws)
    while count and tokens.raws[count - 1] == ";":
        count -= 1
    words = Counter(spoken(tokens.raws, i) for i in range(count))
    if words["CASE"] != words["END"]:
        raise Unsupported("a column named end")
    reader = _Reader(tokens, 0, count)
    query = reader.query(outermost=True)
    reader.end()
    return query


class _Reader(Conditions):
    """Reads queries. ``ordered_inside``: one in parentheses ended in ORDER BY."""

    ordered_inside = False

    # Queries

    def query(self, *, outermost: bool = False) -> Query:
        ctes: list[tuple[str, tuple[str, ...], Query]] = []
        if self.take("WITH"):
            if self.word() == "RECURSIVE":
                raise Unsupported("WITH RECURSIVE")
            while True:
                name = self.name()
                names = self._names() if self.word() == "(" else ()
                self.need("AS")
                ctes.append((name, names, self.inner().whole()))
                if not self.take(","):
                    break
        body = self._union()
        first, in_order = None, self.take("ORDER BY")
        if in_order:
            order = self.until({"LIMIT", "OFFSET"})  # a table has no order
            if outermost and self.word() == "LIMIT":
                first = self._first_rows(order)
        if self.word() in ("LIMIT", "OFFSET"):
            raise Unsupported(self.word(), "LIMIT_ORDER")
        if self.at < self.stop:
            raise Unsupported(self.word())
        return Query(tuple(ctes), body, first, in_order or self.ordered_inside)

    def _first_rows(self, order: _Reader) -> FirstRows:
        """ORDER BY and the LIMIT that stands here."""
        count = self.word(1)
        if not count.isdecimal() or int(count) == 0:
            raise Unsupported(f"LIMIT {count}", "LIMIT_ORDER")
        self.at += 2
        return FirstRows(tuple(part._sorted() for part in order.split(",")), int(count))

    def _sorted(self) -> Sorted:
        """An expression with its direction; without one, as Spark takes it."""
        words, stop = self._words(), self.stop
        nulls = ""
        if words[-2:] in (["NULLS", "FIRST"], ["NULLS", "LAST"]):
            nulls, words, stop = words[-1], words[:-2], stop - 2
        descending = words[-1:] == ["DESC"]
        if words[-1:] in (["ASC"], ["DESC"]):
            words, stop = words[:-1], stop - 1
        if words in (["ALL"], []):
            raise Unsupported("ORDER BY ALL", "LIMIT_ORDER")
        nulls_first = nulls == "FIRST" if nulls else not descending
        return Sorted(self.span(self.at, stop), descending, nulls_first)

    def _names(self) -> tuple[str, ...]:
        out: list[str] = []
        for part in self.inner().split(","):
            out.append(part.name())
            part.end()
        return tuple(out)

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
            query = self.inner().whole()
            if query.ctes:
                raise Unsupported("WITH inside a set operation")
            self.ordered_inside |= query.in_order
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
        where = self.conjuncts("WHERE", _ENDS)
        group: tuple[Fragment, ...] = ()
        group_all, sets = False, None
        if self.take("GROUP BY"):
            grouped = self.until(_ENDS)
            group_all = grouped.word() == "ALL" and grouped.stop - grouped.at == 1
            if not group_all:
                group, sets = grouped._grouping()
        having = self.conjuncts("HAVING", _ENDS)
        qualify = self.conjuncts("QUALIFY", _ENDS)
        if self.word() not in ("", "ORDER BY", "LIMIT", "OFFSET", *_SET_WORDS):
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
        if ["AS", "("] in (words[n : n + 2] for n in range(len(words))) and words[-1] == ")":
            expr, names = self.halves("AS")
            return Item(expr.fragment(), None, aliases=names._names())
        if len(words) > 2 and words[-2] == "AS":
            alias, stop = self._last_name(), stop - 2
        elif len(words) > 1 and self._implicit_alias():
            alias, stop = self._last_name(), stop - 1
        return Item(self.span(self.at, stop), alias)

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
        if last.upper() in ("END", "NULL", "TRUE", "FALSE") or before.upper() == "TO":
            return False
        if self._ends_interval():
            return False  # its unit
        ends = before in (")", "]") or before[-1:] in "'`\"" or before.upper() in ("END", "NULL")
        plain = before.replace("_", "a").isalnum() and before.upper() not in _OPERATORS
        return ends or plain

    def _ends_interval(self) -> bool:
        """Is the last token a unit, of INTERVAL -1 DAY or INTERVAL 1 DAY 2 HOURS?"""
        raws, unit = self.tokens.raws, self.stop - 1
        while unit - 2 >= self.at and raws[unit].upper().removesuffix("S") in _UNITS:
            value = unit - 1
            if not (raws[value][0] in "'\"." or raws[value][0].isdigit()):
                return False
            before = value - 2 if raws[value - 1] in ("+", "-") else value - 1
            if before >= self.at and raws[before].upper() == "INTERVAL":
                return True
            unit = before
        return False

    # Groups

    def _grouping(self) -> tuple[tuple[Fragment, ...], tuple[tuple[int, ...], ...] | None]:
        """All expressions that are grouped by; and, where not all are always, in which sets."""
        group: list[Fragment] = []
        choices: list[list[tuple[int, ...]]] = []
        plain = True
        if self._words()[-2:] in (["WITH", "ROLLUP"], ["WITH", "CUBE"]):  # as Hive has it
            word, self.stop = self.word(self.stop - self.at - 1), self.stop - 2
            group = [part.fragment() for part in self.split(",")]
            return tuple(group), tuple(_SETS[word]([(n,) for n in range(len(group))]))
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
            inside = part.inner() if part.wrapped() else part
            unit: list[int] = []
            for one in inside.split(",") if inside.at < inside.stop else []:
                unit.append(len(group))
                group.append(one.fragment())
            units.append(tuple(unit))
        return units

    # Relations

    def _relation(self) -> Relation:
        if self.word() == "LATERAL":
            raise Unsupported("LATERAL")
        if self.word() == "VALUES":
            return self._derived(Query((), self._block()))
        if self.word() == "(":
            inner = self.inner()
            return self._derived(inner.whole()) if inner._asks() else self._nested(inner)
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

    def _asks(self) -> bool:
        """Does a query stand here, whatever parentheses are around it, or joins?"""
        if self.word() != "(":
            return self.word() in (*QUERY_WORDS, "VALUES")
        ahead = _Reader(self.tokens, self.at, self.stop)
        return ahead.inner()._asks() and ahead.word() in ("", "ORDER BY", "LIMIT", *_SET_WORDS)

    def _nested(self, inner: _Reader) -> Nested:
        nested = Nested(inner._relation(), tuple(inner._joins()))
        inner.end()
        if self.word() in _TABLE_WORDS or self._alias() is not None:
            raise Unsupported("joins in parentheses with a name")
        return nested

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
        comma = False
        while True:
            if self.take(","):
                out.append(Joined("cross", self._relation()))
                comma = True
                continue
            if self.word() not in _JOIN_WORDS:
                return out
            natural = self.take("NATURAL")
            kind = self._join_word()
            if comma and (natural or kind in ("right", "full")):
                # it joins what stands behind the comma only
                raise Unsupported(f"a {'natural' if natural else kind} join behind a comma")
            relation = self._relation()
            on: tuple[Conjunct, ...] = ()
            using: tuple[str, ...] = ()
            if self.take("USING"):
                using = self._names()
            else:
                on = self.conjuncts("ON", _ENDS | _JOIN_WORDS | {","})
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
        generator = self.span(begin, self.at)
        alias = self.name() if self.word() != "AS" else ""
        names: list[str] = []
        if self.take("AS"):
            names.append(self.name())
            while self.take(","):
                names.append(self.name())
        return LateralView(outer, generator, alias, tuple(names))


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
_UNITS = frozenset(
    {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}
    | {"MILLISECOND", "MICROSECOND", "NANOSECOND"}
)
_OPERATORS = frozenset(
    {"AND", "OR", "NOT", "IS", "IN", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "DIV", "CASE", "WHEN"}
    | {"THEN", "ELSE", "DISTINCT", "ALL", "DATE", "TIMESTAMP", "INTERVAL", "FROM", "ESCAPE"}
)
