"""Tokens of Spark SQL, and the canonical form that a query's identity is made of.

The canonical form is the token stream with comments, hints, white space and keyword case removed.
Literals, identifiers and aliases stay exact, their case too. It is for hashing and comparing,
never for running.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType

from sqb.errors import SqbError

if TYPE_CHECKING:
    from sqlglot import Dialect

#: Words whose case is folded where they stand as keywords. A word that is missing here costs a
#: needless rebuild when its case is edited; one that is folded wrongly would hide a change.
_KEYWORD_LIST = """
    ALL AND ANTI AS ASC BETWEEN BY CASE CLUSTER CROSS CUBE DESC DISTINCT DISTRIBUTE ELSE END EXCEPT
    EXISTS FILTER FROM FULL GROUP GROUPING HAVING IN INNER INTERSECT IS JOIN LATERAL LEFT LIKE LIMIT
    MINUS NATURAL NOT NULL NULLS OFFSET ON OR ORDER OUTER OVER PARTITION QUALIFY RANGE RIGHT RLIKE
    ROLLUP ROWS SELECT SEMI SETS SORT THEN UNION USING VALUES VIEW WHEN WHERE WINDOW WITH WITHIN
"""
_KEYWORDS = frozenset(_KEYWORD_LIST.split())
#: Clauses in which an implicit alias can stand right after an expression.
_ALIAS_CLAUSES = frozenset({"", "SELECT", "FROM", "JOIN"})
_CLAUSES = frozenset(
    {"SELECT", "FROM", "JOIN", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "ON", "USING"}
    | {"CLUSTER", "DISTRIBUTE", "QUALIFY", "LIMIT", "PARTITION", "WINDOW"}
)
_OPERAND_TYPES = frozenset(
    {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.RAW_STRING}
)
_AFTER_ALIAS = frozenset({",", ")", ";", "FROM", ""})
_REFERENCE_CALLS = frozenset({"__ref", "__source", "__seed"})
_TEXT_TYPES = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER})


class Tok(NamedTuple):
    """One token: its raw text and where it stands (``end`` is exclusive, ``line`` 1-based)."""

    raw: str
    start: int
    end: int
    line: int
    type: TokenType
    value: str


@cache
def dialect() -> Dialect:
    """The one dialect object: making it costs more than parsing a model."""
    return Spark()


def tokenize(sql: str, *, file: str | None = None, first_line: int = 1) -> list[Tok]:
    """The tokens of ``sql``; errors name ``file`` and a line counted from ``first_line``.

    >>> [t.raw for t in tokenize("SELECT 1L -- one")]
    ['SELECT', '1L']
    """
    try:
        tokens = dialect().tokenize(sql)
    except TokenError as error:
        line = first_line + _open_quote_line(sql)
        raise SqbError(
            "P004",
            "SQL that can't be read: a quote or comment is not closed",
            file=file,
            line=line,
            help="close the string, the backquoted name or the comment",
        ) from error
    out: list[Tok] = []
    last = -1
    for t in tokens:
        # a literal such as 1L comes as several tokens of one span
        if t.start == last:
            continue
        last = t.start
        out.append(
            Tok(
                sql[t.start : t.end + 1],
                t.start,
                t.end + 1,
                first_line + t.line - 1,
                t.token_type,
                t.text,
            )
        )
    return out


def _open_quote_line(sql: str) -> int:
    """How many lines below the first the quote stands that is never closed."""
    position, quote_at = 0, 0
    while position < len(sql):
        char = sql[position]
        if sql.startswith("--", position):
            newline = sql.find("\n", position)
            position = len(sql) if newline < 0 else newline
            continue
        if sql.startswith("/*", position):
            close = sql.find("*/", position + 2)
            if close < 0:
                quote_at = position
                break
            position = close + 2
            continue
        if char in "'\"`":
            quote_at = position
            position += 1
            while position < len(sql) and sql[position] != char:
                position += 2 if sql[position] == "\\" and char != "`" else 1
            if position >= len(sql):
                break
        position += 1
    return sql.count("\n", 0, quote_at)


def canonical(sql: str) -> str:
    """The text that identity is made of.

    >>> canonical("select  A, 'x  y' from t -- note") == canonical("SELECT A, 'x  y'\\nFROM t")
    True
    >>> canonical("select a from t") == canonical("select A from t")
    False
    >>> canonical('select 1 from __ref("m")')
    'SELECT 1 FROM m'
    """
    return " ".join(_canonical_tokens(tokenize(sql)))


def _canonical_tokens(tokens: list[Tok]) -> Iterator[str]:
    tokens = [t for t in tokens if t.type is not TokenType.HINT]
    while tokens and tokens[-1].raw == ";":
        tokens.pop()
    clauses, cases = [""], [0]
    previous = ""
    operand = False
    skip_until = 0
    for i, tok in enumerate(tokens):
        if i < skip_until:
            continue
        raw = tok.raw
        if raw in _REFERENCE_CALLS and _is_reference_call(tokens, i):
            yield tokens[i + 2].value
            previous, operand, skip_until = ")", True, i + 4
            continue
        # the tokeniser gives GROUP BY and its kin as one token, inner white space and all
        words = raw.upper().split() if tok.type not in _TEXT_TYPES else []
        word = " ".join(words)
        folds = bool(words) and all(w in _KEYWORDS for w in words)
        if folds:
            following = tokens[i + 1].raw.upper() if i + 1 < len(tokens) else ""
            if previous in ("AS", ".") or following == ".":
                folds = False
            elif operand and following in _AFTER_ALIAS and clauses[-1] in _ALIAS_CLAUSES:
                folds = word == "END" and cases[-1] > 0
        if folds:
            if word == "CASE":
                cases[-1] += 1
            elif word == "END":
                cases[-1] = max(0, cases[-1] - 1)
            elif words[0] in _CLAUSES:
                clauses[-1] = words[0]
            yield word
            previous = word
            operand = word in ("END", "NULL")
            continue
        if raw == "(":
            clauses.append("")
            cases.append(0)
        elif raw == ")" and len(clauses) > 1:
            clauses.pop()
            cases.pop()
        yield raw
        previous = raw
        operand = tok.type in _OPERAND_TYPES or raw in (")", "]") or raw[:1].isalnum()


def _is_reference_call(tokens: list[Tok], i: int) -> bool:
    return (
        i + 3 < len(tokens)
        and tokens[i + 1].raw == "("
        and tokens[i + 2].type is TokenType.STRING
        and tokens[i + 3].raw == ")"
    )
