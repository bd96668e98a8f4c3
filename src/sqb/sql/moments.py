"""Values of the moment in a text: ``current_date()``, ``now()``, words that Spark reads as days.

Spark takes ``'today'`` for a day wherever a string becomes a date, so ``d < 'today'`` is another
condition tomorrow. Where the text itself says that it does, the value can be bound as that of a
function. Elsewhere only the types would tell, and the word counts as a value that may move.
"""

from __future__ import annotations

import re

from sqlglot.tokens import TokenType

from sqb.sql.analysis import BOUND, DAYS, MOMENT, NOW, TODAY, VOLATILE, BoundConstant
from sqb.sql.tokens import Tokens

_WORDS = BOUND | VOLATILE
_BARE = frozenset({"current_date", "current_timestamp", "localtimestamp", "current_time"})
#: Functions of the moment that can be bound, too, where two evaluations must agree.
_INSTANTS = frozenset({"current_timestamp", "now"})
_STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING})
#: What Spark reads as a day; a time zone may follow, but not behind ``now``.
_SPECIAL = re.compile(rf"(?:(now)|({'|'.join(DAYS)})[ \t]*(.*))", re.IGNORECASE | re.DOTALL)
_ZONE = re.compile(r"|[+-][\d:]+|[A-Za-z_]+/[\w/+-]+|[A-Z]{1,4}(?:[+-][\d:]+)?")
_SHIFTED = {"today": "{}", "yesterday": "date_sub({}, 1)", "tomorrow": "date_add({}, 1)"}
_TYPES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"})
_CASTS = frozenset({"CAST", "TRY_CAST"})


def moments(tokens: Tokens) -> tuple[tuple[BoundConstant, ...], tuple[str, ...]]:
    """The values that can be bound, and the functions that differ on every run.

    >>> from sqb.sql.tokens import split
    >>> found, volatile = moments(split("SELECT now(), DATE'yesterday', current_date()"))
    >>> [(one.name, one.written) for one in found], volatile
    ([('current_timestamp', '{}'), ('current_date', 'date_sub({}, 1)'), ('current_date', '{}')], \
('now',))
    """
    constants: list[BoundConstant] = []
    volatile: set[str] = set()
    raws = tokens.raws
    for i, raw in enumerate(raws):
        word = raw.lower()
        if raws[i + 1 : i + 2] == ["("]:
            word = word.strip("`")  # a function may be called by a name in quotes
        if word in _WORDS:
            called = raws[i + 1 : i + 3] == ["(", ")"]
            if not _is_function(raws, i, word):
                continue
            if word not in BOUND and (word != "unix_timestamp" or called):
                volatile.add(word)
            if word in BOUND or (word in _INSTANTS and (called or raws[i + 1 : i + 2] != ["("])):
                end = tokens.at(i + 2 if called else i).end
                name = TODAY if word in BOUND else MOMENT
                constants.append(BoundConstant(name, tokens.at(i).start, end))
        elif tokens.parsed[i].token_type in _STRINGS:
            found = _day(tokens, i)
            if found is not None:
                constants.append(found)
            if found is not None and found.name == NOW:
                volatile.add(NOW)
    return tuple(constants), tuple(sorted(volatile))


def _is_function(raws: list[str], i: int, word: str) -> bool:
    before = raws[i - 1].upper() if i else ""
    after = raws[i + 1 : i + 2]
    if before in (".", "AS") or after == ["."]:
        return False
    return after == ["("] or word in _BARE


def _day(tokens: Tokens, i: int) -> BoundConstant | None:
    """A string that Spark reads as a day or an instant, if it becomes one."""
    value = tokens.parsed[i].text.strip()
    special = _SPECIAL.fullmatch(value)
    if special is None or (special[2] and _ZONE.fullmatch(special[3]) is None):
        return None
    typed = _typed(tokens.raws, i)
    if typed is None:
        if _is_label(tokens, i):
            return None
        at = tokens.at(i)
        return BoundConstant(TODAY, at.start, at.end, certain=False)
    begin, last, kind = typed
    start, end = tokens.at(begin).start, tokens.at(last).end
    if special[2] and special[3]:
        return BoundConstant(TODAY, start, end, certain=False)
    if special[1] and kind != "DATE":
        written = "{}" if kind != "TIMESTAMP_NTZ" else f"CAST({{}} AS {kind})"
        return BoundConstant(NOW, start, end, written)
    day = _SHIFTED[(special[2] or "today").lower()]
    return BoundConstant(TODAY, start, end, day if kind == "DATE" else f"CAST({day} AS {kind})")


def _typed(raws: list[str], i: int) -> tuple[int, int, str] | None:
    """The tokens that make a date or an instant of the string at ``i``, and which it is.

    ``DATE'…'``, ``CAST('…' AS DATE)``, ``'…'::DATE``, ``date('…')`` and ``to_date('…')``.
    """
    words = {n: raws[n].upper() for n in range(max(i - 2, 0), min(i + 4, len(raws)))}
    if words.get(i - 1) in _TYPES and words.get(i - 2) != ".":
        return i - 1, i, words[i - 1]
    if words.get(i + 1) == "::" and words.get(i + 2) in _TYPES:
        return i, i + 2, words[i + 2]
    if words.get(i - 1) != "(":
        return None
    before = words.get(i - 2, "")
    casts = before in _CASTS and words.get(i + 1) == "AS" and words.get(i + 3) == ")"
    if casts and words[i + 2] in _TYPES:
        return i - 2, i + 3, words[i + 2]
    kind = before.removeprefix("TO_")
    if words.get(i + 1) == ")" and kind in _TYPES:
        return i - 2, i + 1, kind
    return None


def _is_label(tokens: Tokens, i: int) -> bool:
    """Is a string one of several that a CASE gives? Then it stays a string."""
    words = [raw.upper() for raw in tokens.raws]
    begin, end = _case_around(words, i)
    if begin < 0:
        return False
    depth = 0
    for n in range(begin + 1, end):
        depth += (words[n] in ("(", "CASE")) - (words[n] in (")", "END"))
        if not depth and words[n] in ("THEN", "ELSE"):
            alone = words[n + 2] in ("WHEN", "ELSE", "END")
            if not alone or tokens.parsed[n + 1].token_type not in _STRINGS:
                return False
    return words[i - 1] in ("THEN", "ELSE")


def _case_around(words: list[str], i: int) -> tuple[int, int]:
    """The CASE and the END that a token stands right between; -1 if there is none."""
    begin, depth = i - 1, 0
    while begin >= 0 and not (words[begin] == "CASE" and depth == 0):
        depth += (words[begin] in (")", "END")) - (words[begin] in ("(", "CASE"))
        if depth < 0:
            return -1, -1
        begin -= 1
    end, depth = i + 1, 0
    while end < len(words) and not (words[end] == "END" and depth == 0):
        depth += (words[end] in ("(", "CASE")) - (words[end] in (")", "END"))
        end += 1
    return (begin, end) if end < len(words) else (-1, -1)
