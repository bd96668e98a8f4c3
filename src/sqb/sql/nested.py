"""Where sub-queries stand in an expression, by its tokens alone, and what of them matters there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

#: What an expression asks of a sub-query: its value, whether it has rows, whether one is equal.
Asks = Literal["value", "exists", "in"]
#: Whether NULL is as good as FALSE: no; if the whole expression is a condition; in any case.
Matters = Literal["value", "whole", "truth"]


class Unreadable(Exception):  # noqa: N818 - an outcome, not a failure
    """A sub-query in a place that is not understood."""


class Place(msgspec.Struct, frozen=True):
    """A sub-query by its tokens: its parentheses, and all that asks for it.

    ``left`` are the tokens on the left of IN.
    """

    begin: int
    opened: int
    closed: int
    asks: Asks
    left: tuple[int, int] = (0, 0)
    negated: bool = False
    matters: Matters = "value"


#: Words behind which a sub-query is a value.
_BEFORE_A_SCALAR = frozenset(
    {"AND", "OR", "NOT", "BETWEEN", "CASE", "WHEN", "THEN", "ELSE", "LIKE", "DIV", "DISTINCT"}
)
_LEFT_OF_IN = frozenset(
    {"AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "DISTINCT", "ALL", "(", "[", ",", "->"}
)
#: Other predicates, which IN does not stand beside.
_PREDICATES = frozenset(
    {"IS", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "EXISTS", "FILTER", "OVER"}
)
_OPEN, _CLOSE = frozenset({"(", "[", "CASE"}), frozenset({")", "]", "END"})


def sub_queries(words: Sequence[str], begin: int, stop: int) -> list[Place]:
    """The sub-queries of the expression ``[begin, stop)``; ``words`` are in upper case.

    >>> words = "A > 1 OR B NOT IN ( SELECT X )".split()
    >>> place, = sub_queries(words, 0, len(words))
    >>> place.asks, place.left, place.negated, place.matters
    ('in', (4, 5), True, 'whole')
    """
    found: list[Place] = []
    at = begin
    while at < stop:
        if words[at] != "(" or at + 1 >= stop or words[at + 1] not in ("SELECT", "WITH"):
            at += 1
            continue
        found.append(_place(words, begin, stop, at))
        at = found[-1].closed + 1
    return found


def _place(words: Sequence[str], begin: int, stop: int, at: int) -> Place:
    closed = _partner(words, at, stop)
    before = words[at - 1] if at > begin else ""
    if before == "EXISTS":
        return Place(at - 1, at, closed, "exists")
    if before == "IN":
        negated = at - 2 >= begin and words[at - 2] == "NOT"
        end = at - 2 if negated else at - 1
        first = _operand(words, begin, end)
        matters = _matters(words, begin, stop, first, closed + 1)
        return Place(first, at, closed, "in", (first, end), negated, matters)
    if before.replace("_", "a").isalnum() and before not in _BEFORE_A_SCALAR:
        raise Unreadable(f"a sub-query behind {before}")
    return Place(at, at, closed, "value")


def _operand(words: Sequence[str], begin: int, end: int) -> int:
    """Where the expression that ends at ``end`` begins: IN binds looser than any operator."""
    at, depth = end, 0
    while at > begin:
        word = words[at - 1]
        if not depth and word in _LEFT_OF_IN:
            break
        if not depth and word in _PREDICATES:
            raise Unreadable(f"IN behind {word}")
        depth += (word in _CLOSE) - (word in _OPEN)
        at -= 1
    if at == end:
        raise Unreadable("IN without a left side")
    return at


def _matters(words: Sequence[str], begin: int, stop: int, first: int, behind: int) -> Matters:
    """What of a condition matters, from its own place outwards: AND and OR ask for its truth."""
    while True:
        if first > begin and words[first - 1] not in ("AND", "OR", "(", "WHEN"):
            return "value"
        if behind < stop and words[behind] not in ("AND", "OR", ")", "THEN"):
            return "value"
        opened, closed, branch = _around(words, begin, stop, first, behind)
        if opened is None:
            return "whole"
        if words[opened] == "CASE":
            searched = words[opened + 1] == "WHEN"
            return "truth" if searched and branch == "WHEN" else "value"
        if closed is None or words[opened] != "(":
            return "value"
        first, behind = opened, closed + 1


def _around(
    words: Sequence[str], begin: int, stop: int, first: int, behind: int
) -> tuple[int | None, int | None, str]:
    """The bracket or CASE that a span stands in, where that ends, and the branch of CASE."""
    opened, depth, branch = first - 1, 0, ""
    while opened >= begin and (depth or words[opened] not in _OPEN):
        if not depth and not branch and words[opened] in ("WHEN", "THEN", "ELSE"):
            branch = words[opened]
        depth += (words[opened] in _CLOSE) - (words[opened] in _OPEN)
        opened -= 1
    if opened < begin:
        return None, None, branch
    closed, depth = behind, 0
    while closed < stop and (depth or words[closed] not in _CLOSE):
        depth += (words[closed] in _OPEN) - (words[closed] in _CLOSE)
        closed += 1
    return opened, closed if closed < stop else None, branch


def _partner(words: Sequence[str], at: int, stop: int) -> int:
    depth = 0
    for i in range(at, stop):
        depth += (words[i] == "(") - (words[i] == ")")
        if not depth:
            return i
    raise Unreadable("(")
