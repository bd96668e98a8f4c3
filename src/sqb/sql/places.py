"""Where one expression stands inside another one, told by their tokens alone.

A token is its text in upper case; whatever is not text is a column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

_OPENING = ("", "(", ",", "WHEN", "THEN", "ELSE")
_CLOSING = ("", ")", ",", "AS", "WHEN", "THEN", "ELSE", "END")
_GOES_ON = (".", "[", "(", "OVER", "FILTER", "WITHIN", "IGNORE", "RESPECT")


def places(tokens: Sequence[object], part: Sequence[object]) -> list[tuple[int, int]]:
    """Where ``part`` stands in an expression as an expression of its own.

    >>> places(["UPPER", "(", ("a",), ")"], [("a",)])
    [(2, 3)]
    >>> places(["2", "*", ("a",), "+", ("b",)], [("a",), "+", ("b",)])
    []
    """
    width = len(part)
    wanted = list(part)
    literal = all(isinstance(token, str) for token in part)
    found: list[tuple[int, int]] = []
    for i in range(len(tokens) - width + 1):
        if list(tokens[i : i + width]) != wanted:
            continue
        before = tokens[i - 1] if i else ""
        after = tokens[i + width] if i + width < len(tokens) else ""
        if literal:
            whole = width == len(tokens)
        else:
            alone = before in _OPENING and after in _CLOSING
            whole = alone or (_closed(part) and before != "." and after not in _GOES_ON)
        if whole:
            found.append((i, i + width))
    return found


def without_parentheses(tokens: Sequence[T]) -> tuple[T, ...]:
    """An expression without the parentheses around all of it.

    >>> without_parentheses(["(", "1", ")"])
    ('1',)
    """
    while len(tokens) > 2 and tokens[0] == "(" and _closes(tokens, 0) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tuple(tokens)


def _closed(tokens: Sequence[object]) -> bool:
    """Is it one unit whatever stands beside it: a column, a call, CASE … END?"""
    if len(tokens) == 1:
        return True
    if tokens[0] == "CASE":
        return tokens[-1] == "END" and tokens.count("CASE") == tokens.count("END") == 1
    if not isinstance(tokens[0], str):  # a field of a struct
        rest = tokens[1:]
        return all((word == ".") == (n % 2 == 0) for n, word in enumerate(rest))
    return tokens[1] == "(" and _closes(tokens, 1) == len(tokens) - 1


def _closes(tokens: Sequence[object], opened: int) -> int:
    depth = 0
    for at in range(opened, len(tokens)):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        if not depth:
            return at
    return -1
