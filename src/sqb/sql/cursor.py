"""A cursor over the tokens of a query: words, names, and what stands between brackets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqb.sql.fragments import Unsupported
from sqb.sql.tokens import Tokens, spoken

if TYPE_CHECKING:
    from typing_extensions import Self

_OPEN, _CLOSE = frozenset({"(", "[", "{"}), frozenset({")", "]", "}"})


class Cursor:
    """The tokens ``[at, stop)``, read from the left."""

    def __init__(self, tokens: Tokens, at: int, stop: int) -> None:
        self.tokens = tokens
        self.at = at
        self.stop = stop

    def word(self, ahead: int = 0) -> str:
        """A token as a word of SQL, or nothing behind the last."""
        i = self.at + ahead
        return spoken(self.tokens.raws, i) if i < self.stop else ""

    def take(self, *words: str) -> bool:
        """Go behind these words if they stand here."""
        if all(self.word(n) == word for n, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def need(self, word: str) -> None:
        """Go behind a word that must stand here."""
        if not self.take(word):
            raise Unsupported(self.word() or "the end of the query")

    def end(self) -> None:
        """Nothing may follow."""
        if self.at < self.stop:
            raise Unsupported(self.word())

    def name(self) -> str:
        """The name that stands here, without its quotes."""
        raw = self.tokens.raws[self.at] if self.at < self.stop else ""
        quoted = raw.startswith("`")
        if not quoted and not raw.replace("_", "a").isalnum():
            raise Unsupported(raw or "the end of the query")
        self.at += 1
        return raw[1:-1].replace("``", "`") if quoted else raw

    def inner(self) -> Self:
        """What stands between this parenthesis and its partner; the cursor goes behind it."""
        self.need("(")
        begin, depth = self.at, 1
        while self.at < self.stop:
            word = self.word()
            depth += (word in _OPEN) - (word in _CLOSE)
            if not depth:
                found = type(self)(self.tokens, begin, self.at)
                self.at += 1
                return found
            self.at += 1
        raise Unsupported("(")

    def until(self, words: Iterable[str]) -> Self:
        """Everything up to one of ``words`` outside parentheses and CASE."""
        begin, depth, wanted = self.at, 0, frozenset(words)
        while self.at < self.stop:
            word = self.word()
            if not depth and word in wanted and not self._within_expression(word):
                break
            depth += (word in _OPEN or word == "CASE") - (word in _CLOSE or word == "END")
            self.at += 1
        return type(self)(self.tokens, begin, self.at)

    def _within_expression(self, word: str) -> bool:
        # IS DISTINCT FROM, and the functions left(), right(), window()
        if word == "FROM":
            return self.tokens.raws[self.at - 1].upper() == "DISTINCT"
        if word == "EXCEPT":  # SELECT * EXCEPT (a)
            return self.tokens.raws[self.at - 1] == "*"
        if word in ("LEFT", "RIGHT", "ANTI", "SEMI", "FULL", "WINDOW"):
            return self.word(1) == "("
        return False

    def split(self, separator: str) -> list[Self]:
        """The parts between separators outside parentheses, CASE and BETWEEN."""
        parts: list[Self] = []
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
                    parts.append(type(self)(self.tokens, begin, self.at))
                    begin = self.at + 1
            self.at += 1
        parts.append(type(self)(self.tokens, begin, self.stop))
        return parts

    def count(self, wanted: str) -> int:
        """How often a word stands outside parentheses and CASE."""
        depth = found = 0
        for i in range(self.stop - self.at):
            word = self.word(i)
            depth += (word in _OPEN or word == "CASE") - (word in _CLOSE or word == "END")
            found += not depth and word == wanted
        return found

    def halves(self, sign: str) -> tuple[Self, Self]:
        """What stands before and behind a word."""
        probe = type(self)(self.tokens, self.at, self.stop)
        left = probe.until({sign})
        return left, type(self)(self.tokens, probe.at + 1, self.stop)
