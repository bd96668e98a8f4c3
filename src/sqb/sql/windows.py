"""Named windows written out: ``OVER w`` as what ``WINDOW w AS (…)`` says, in the same SELECT."""

from __future__ import annotations

from sqb.sql.cursor import Cursor
from sqb.sql.fragments import Unsupported
from sqb.sql.splice import Edit
from sqb.sql.tokens import Tokens, spoken

#: What a window begins with if it is none by the name of another.
_BEGINNINGS = frozenset({"", "PARTITION BY", "ORDER BY", "ROWS", "RANGE"})


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
    clause = Cursor(tokens, at + 1, len(words))
    try:
        while not windows or clause.take(","):
            name = tokens.raws[clause.at]
            clause.name()
            clause.need("AS")
            window = clause.inner()
            if window.word() not in _BEGINNINGS:
                return []
            start, end = tokens.at(window.at - 1).start, tokens.at(clause.at - 1).end
            windows[name] = tokens.sql[start:end]
    except Unsupported:
        return []
    edits = [Edit(tokens.at(at).start, tokens.at(clause.at - 1).end, "")]
    for i in _own(tokens, words, _select_of(words, at), at - 1):
        if words[i] == "OVER" and tokens.raws[i + 1] in windows:
            used = tokens.at(i + 1)
            edits.append(Edit(used.start, used.end, windows[used.raw]))
    return edits


def _select_of(words: list[str], at: int) -> int:
    """The SELECT whose clause stands at a token."""
    depth = 0
    for i in range(at - 1, -1, -1):
        depth += (words[i] == ")") - (words[i] == "(")
        if depth < 0 or (not depth and words[i] == "SELECT"):
            return i
    return 0


def _own(tokens: Tokens, words: list[str], begin: int, stop: int) -> list[int]:
    """The tokens ``[begin, stop)`` that are not those of a query inside."""
    found: list[int] = []
    inside = Cursor(tokens, begin, stop)
    while inside.at < stop:
        if words[inside.at] == "(" and words[inside.at + 1] in ("SELECT", "WITH"):
            inside.inner()
        else:
            found.append(inside.at)
            inside.at += 1
    return found
