"""Named windows written out: ``OVER w`` as what ``WINDOW w AS (…)`` says, in the same SELECT."""

from __future__ import annotations

from sqb.sql.splice import Edit
from sqb.sql.tokens import Tokens, spoken

#: What a window begins with if it is none by the name of another.
_BEGINNINGS = frozenset({")", "PARTITION BY", "ORDER BY", "ROWS", "RANGE"})


def written_out(tokens: Tokens) -> list[Edit]:
    """The edits that leave no WINDOW clause; one that is not understood stays.

    >>> from sqb.sql.splice import splice
    >>> from sqb.sql.tokens import split
    >>> sql = "SELECT rank() OVER w AS r FROM t WINDOW w AS (PARTITION BY g ORDER BY v)"
    >>> splice(sql, written_out(split(sql))).text
    'SELECT rank() OVER (PARTITION BY g ORDER BY v) AS r FROM t '
    """
    raws = tokens.raws
    if not any(raw.upper() == "WINDOW" for raw in raws):
        return []
    words = [spoken(raws, i) for i in range(len(raws))]
    edits: list[Edit] = []
    for i, word in enumerate(words):
        if word == "WINDOW" and words[i + 2 : i + 4] == ["AS", "("]:
            edits += _clause(tokens, words, i)
    return sorted(edits, key=lambda edit: edit.start)


def _clause(tokens: Tokens, words: list[str], at: int) -> list[Edit]:
    """The edits for the WINDOW clause that begins at a token."""
    windows: dict[str, str] = {}
    end = at
    while end == at or words[end : end + 1] == [","]:
        close = _partner(words, end + 3)
        if words[end + 2 : end + 4] != ["AS", "("] or close is None:
            return []
        if words[end + 4] not in _BEGINNINGS:
            return []
        spec = tokens.sql[tokens.at(end + 3).start : tokens.at(close).end]
        windows[tokens.raws[end + 1]] = spec
        end = close + 1
    begin = _select_of(words, at)
    edits = [Edit(tokens.at(at).start, tokens.at(end - 1).end, "")]
    for i in _own(words, begin, at - 1):
        if words[i] == "OVER" and tokens.raws[i + 1] in windows:
            name = tokens.at(i + 1)
            edits.append(Edit(name.start, name.end, windows[name.raw]))
    return edits


def _select_of(words: list[str], at: int) -> int:
    """The SELECT whose clause stands at a token."""
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += (words[i] == ")") - (words[i] == "(")
        if depth < 0 or (not depth and words[i] == "SELECT"):
            return i
    return 0


def _own(words: list[str], begin: int, stop: int) -> list[int]:
    """The tokens ``[begin, stop)`` that are not those of a query inside."""
    found: list[int] = []
    i = begin
    while i < stop:
        if words[i] == "(" and words[i + 1] in ("SELECT", "WITH"):
            i = _partner(words, i) or stop
        else:
            found.append(i)
        i += 1
    return found


def _partner(words: list[str], at: int) -> int | None:
    """Where the parenthesis at a token closes."""
    depth = 0
    for i in range(at, len(words)):
        depth += (words[i] == "(") - (words[i] == ")")
        if not depth:
            return i
    return None
