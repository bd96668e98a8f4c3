"""Conditions of a query: AND chains, equalities, EXISTS and IN."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from sqb.sql.cursor import Cursor
from sqb.sql.fragments import Fragment, fragment
from sqb.sql.query import Conjunct, Query
from sqb.sql.tokens import compared

QUERY_WORDS = ("SELECT", "WITH")
#: Words that bind less tightly than IN.
_LOOSER = ("OR", "NOT", "AND")
#: Words and signs beside which ``a = b`` is not all that is said.
_BESIDE_EQUAL = frozenset(
    {*_LOOSER, "IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "<", ">", "<=", ">="}
    | {"<>", "!=", "=", "==", "<=>", "->"}
)


class Conditions(Cursor, ABC):
    """Reads conditions and expressions; what reads the queries in them comes on top."""

    @abstractmethod
    def query(self) -> Query:
        """The query that stands here."""

    def whole(self) -> Query:
        """The query that is all there is."""
        query = self.query()
        self.end()
        return query

    def fragment(self) -> Fragment:
        """All of it as one expression."""
        return self.span(self.at, self.stop)

    def span(self, begin: int, stop: int) -> Fragment:
        """Some tokens as one expression."""
        return fragment(
            self.tokens, begin, stop, lambda a, b: type(self)(self.tokens, a, b).whole()
        )

    def conjuncts(self, word: str, ends: Iterable[str]) -> tuple[Conjunct, ...]:
        """The conditions behind a word, none where it does not stand here."""
        if not self.take(word):
            return ()
        return self.until(ends)._chain()

    def _chain(self) -> tuple[Conjunct, ...]:
        if self.count("OR"):  # it binds looser than AND, so all of it is one condition
            return tuple(self._condition())
        out: list[Conjunct] = []
        for part in self.split("AND"):
            out += part._condition()
        return tuple(out)

    def _condition(self) -> list[Conjunct]:
        if self.wrapped():
            inner = self.inner()
            if inner.count("OR") == 0:
                return list(inner._chain())
            either = Conjunct(self.span(inner.at - 1, inner.stop + 1))
            return [either, *inner._in_all()]
        if self.count("OR"):
            return [Conjunct(self.fragment()), *self._in_all()]
        if self.word() == "NOT" and self.count("AND") == self.count("OR") == 0:
            turned = self._turned()
            if turned is not None:
                return [turned]
        if self.word() == "EXISTS" and self.word(1) == "(" and self.word(2) in QUERY_WORDS:
            self.at += 1
            query = self.inner().whole()
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

    def _in_all(self) -> list[Conjunct]:
        """The equalities that every alternative of an OR asks for; so they hold in any case."""
        found: list[list[tuple[list[str], Conjunct]]] = []
        for part in type(self)(self.tokens, self.at, self.stop).split("OR"):
            inside = part.inner() if part.wrapped() else part
            if inside.count("OR"):
                return []
            parts = [(one._spelled(), one._condition()) for one in inside.split("AND")]
            found.append([(words, own[0]) for words, own in parts if own[0].equal])
        first, *others = found
        return [
            one for words, one in first if all(words in [w for w, _ in other] for other in others)
        ]

    def _words(self) -> list[str]:
        return [self.word(n) for n in range(self.stop - self.at)]

    def _spelled(self) -> list[str]:
        """The words with quoted ones as they are: ``'x'`` and ``'X'`` are two strings."""
        raws = self.tokens.raws[self.at : self.stop]
        return [compared(raw) for raw in raws]

    def _turned(self) -> Conjunct | None:
        """NOT EXISTS and NOT x IN, with as many NOTs and parentheses as there are."""
        rest = type(self)(self.tokens, self.at + 1, self.stop)
        while rest.wrapped():
            rest = rest.inner()
        if rest.count("AND") or rest.count("OR"):
            return None
        (found,) = rest._condition()
        if found.query is None:
            return None
        return Conjunct(query=found.query, values=found.values, negated=not found.negated)

    def wrapped(self) -> bool:
        """Is everything inside one pair of parentheses, and no query?"""
        if self.word() != "(":
            return False
        probe = type(self)(self.tokens, self.at, self.stop)
        inner = probe.inner()
        return probe.at == self.stop and inner.word() not in QUERY_WORDS

    def _in(self) -> Conjunct | None:
        if self.count("IN") != 1 or self.count("OR"):
            return None
        left, right = self.halves("IN")
        if right.word() != "(" or right.word(1) not in (*QUERY_WORDS, "VALUES"):
            return None
        negated = left.stop > left.at and left.word(left.stop - left.at - 1) == "NOT"
        left.stop -= negated
        if any(left.count(word) for word in _LOOSER):
            return None
        values = left.inner().split(",") if left.wrapped() else [left]
        query = right.inner().whole()
        right.end()
        return Conjunct(query=query, values=tuple(v.fragment() for v in values), negated=negated)
