"""Tokens of Spark SQL, and the canonical form that a query's identity is made of.

The canonical form is the token stream with comments, hints, white space and keyword case removed.
Literals, identifiers and aliases stay exact, their case too. It is for hashing and comparing,
never for running.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokens import Token, TokenType

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
#: Of these, the words that Spark hardly takes as names; the others are folded only where no name
#: could end.
_STRUCTURAL = frozenset(
    {"SELECT", "FROM", "WHERE", "GROUP", "ORDER", "BY", "HAVING", "UNION", "JOIN", "ON", "AND"}
    | {"OR", "NOT", "AS", "CASE", "WHEN", "THEN", "ELSE", "END", "IN", "IS", "NULL", "WITH"}
    | {"DISTINCT", "BETWEEN", "LIKE"}
)
#: Structural words that may well be followed by the end of an expression.
_CLOSING = frozenset({"END", "NULL"})
_NAME_ENDS = frozenset({",", ")", "]", ">", ";", ":", "=", "<", "+", "-", "*", "/", "%", "|>", ""})
_NAME_ENDS |= {"FROM", "WHERE", "LIMIT", "UNION", "GROUP BY", "ORDER BY", "AS", "FOR", "HAVING"}
_ENDS = frozenset({",", ")", "]", ";", ":", ""})
#: Clauses in which an implicit alias can stand right after an expression.
_ALIAS_CLAUSES = frozenset({"", "SELECT", "FROM", "JOIN"})
_CLAUSES = frozenset(
    {"SELECT", "FROM", "JOIN", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "ON", "USING"}
    | {"CLUSTER", "DISTRIBUTE", "QUALIFY", "LIMIT", "PARTITION", "WINDOW"}
)
_OPERAND_TYPES = frozenset(
    {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING, TokenType.RAW_STRING}
)
_QUOTES = frozenset("'\"`")
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


class Tokens(NamedTuple):
    """A text split into tokens; ``parsed`` are sqlglot's own, ``raws`` their exact texts.

    Kept as two plain lists: a project has a million tokens, and most are only looked at once.
    """

    sql: str
    parsed: list[Token]
    raws: list[str]
    first_line: int

    def at(self, i: int) -> Tok:
        """One token with its place."""
        token = self.parsed[i]
        line = self.first_line + token.line - 1
        return Tok(self.raws[i], token.start, token.end + 1, line, token.token_type, token.text)


def spoken(raws: list[str], i: int) -> str:
    """A token as a word of SQL: in upper case; behind a dot it is a name, whatever it says.

    >>> [spoken(["not", "t", ".", "end"], i) for i in (0, 3)], spoken(["!"], 0)
    (['NOT', '`END`'], 'NOT')
    """
    word = " ".join(raws[i].upper().split())
    if i and raws[i - 1] == "." and word.replace("_", "a").isalnum():
        return f"`{word}`"
    return "NOT" if word == "!" else word


def compared(raw: str) -> str:
    """A token by which expressions are compared: in upper case, but for what quotes hold.

    >>> [compared(raw) for raw in ("lower", "'it''s'", "r'a'", "`a`")]
    ['LOWER', "'it''s'", "r'a'", '`a`']
    """
    return raw if raw[-1:] in _QUOTES else raw.upper()


def is_string(token: Token) -> bool:
    """Is a token a string?"""
    return token.token_type in (TokenType.STRING, TokenType.RAW_STRING)


@cache
def dialect() -> Dialect:
    """The one dialect object: making it costs more than parsing a model."""
    return Spark()


def split(sql: str, *, file: str | None = None, first_line: int = 1) -> Tokens:
    """The tokens of ``sql``; errors name ``file`` and a line counted from ``first_line``."""
    try:
        parsed = dialect().tokenize(sql)
    except TokenError as error:
        line = first_line + _open_quote_line(sql)
        raise SqbError(
            "P004",
            "SQL that can't be read: a quote or comment is not closed",
            file=file,
            line=line,
            help="close the string, the backquoted name or the comment",
        ) from error
    if "\\\n" in sql:
        _refuse_continued_comment(sql, parsed, file, first_line)
    if "window" in sql.lower():
        for token, following in pairwise(parsed):
            if token.token_type is TokenType.WINDOW and following.token_type is TokenType.L_PAREN:
                token.token_type = TokenType.VAR  # the function; the clause has a name
    return Tokens(sql, parsed, [sql[t.start : t.end + 1] for t in parsed], first_line)


def split_query(sql: str, *, file: str | None = None, first_line: int = 1) -> Tokens:
    """``split`` without the semicolons that end a query, and what is said behind them.

    >>> split_query("SELECT a FROM t; -- done;").sql
    'SELECT a FROM t'
    """
    tokens = split(sql.rstrip(), file=file, first_line=first_line)
    end = len(tokens.raws)
    while end and tokens.raws[end - 1] == ";":
        end -= 1
    if end == len(tokens.raws):
        return tokens
    return split(sql[: tokens.parsed[end].start].rstrip(), file=file, first_line=first_line)


def _refuse_continued_comment(
    sql: str, parsed: list[Token], file: str | None, first_line: int
) -> None:
    """Spark goes on with a line comment that ends in a backslash; nobody means that."""
    for found in re.finditer(r"--[^\n]*\\\n", sql):
        if not any(t.start < found.start() <= t.end for t in parsed):
            raise SqbError(
                "P004",
                "a line comment ends in a backslash, which makes the next line a comment too",
                file=file,
                line=first_line + sql.count("\n", 0, found.start()),
                help="remove the backslash",
            )


def tokenize(sql: str, *, file: str | None = None, first_line: int = 1) -> list[Tok]:
    """The tokens of ``sql`` one by one, as a caller that walks them with care wants them.

    >>> [t.raw for t in tokenize("SELECT 1L -- one")]
    ['SELECT', '1L']
    """
    tokens = split(sql, file=file, first_line=first_line)
    out: list[Tok] = []
    for i, token in enumerate(tokens.parsed):
        # a literal such as 1L comes as several tokens of one span
        if not out or token.start != out[-1].start:
            out.append(tokens.at(i))
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
    return canonical_of(split(sql))


def canonical_of(tokens: Tokens) -> str:
    """The canonical form of a text that is split already."""
    return " ".join(_canonical(tokens.parsed, tokens.raws))


@cache
def _folded(raw: str) -> str:
    return " ".join(raw.upper().split())


@cache
def _keyword(raw: str) -> str:
    """The folded form of a keyword, else an empty text.

    The tokeniser gives GROUP BY and its kin as one token, inner white space and all.
    """
    words = raw.upper().split()
    return " ".join(words) if words and all(word in _KEYWORDS for word in words) else ""


def _canonical(parsed: list[Token], raws: list[str]) -> list[str]:
    out: list[str] = []
    clauses, cases = [""], [0]
    previous, operand = "", False
    last_start, last_end, skip_until = -1, -1, 0
    count = len(raws)
    while count and raws[count - 1] == ";":
        count -= 1
    for i in range(count):
        token = parsed[i]
        if token.start == last_start or i < skip_until:
            continue
        last_start = token.start
        kind = token.token_type
        if kind is TokenType.HINT:
            continue
        raw = raws[i]
        if raw in _REFERENCE_CALLS and _is_reference_call(parsed, raws, i):
            name = parsed[i + 2].text
            # the bare name would mean the CTE
            out.append(f'{raw} ( "{name}" )' if name.lower() in _cte_names(raws) else name)
            previous, operand, skip_until = ")", True, i + 4
            continue
        word = "" if kind in _TEXT_TYPES else _keyword(raw)
        if word:
            following = _folded(raws[i + 1]) if i + 1 < count else ""
            aliased = operand and following in _NAME_ENDS and clauses[-1] in _ALIAS_CLAUSES
            if (
                previous in ("AS", ".", ":")
                or following == "."
                or _may_be_name(word, following)
                or (aliased and not (word == "END" and cases[-1] > 0))
            ):
                word = ""
        if word:
            if word == "CASE":
                cases[-1] += 1
            elif word == "END":
                cases[-1] = max(0, cases[-1] - 1)
            else:
                clause = word.partition(" ")[0]
                if clause in _CLAUSES:
                    clauses[-1] = clause
            out.append(word)
            previous = word
            operand = word in ("END", "NULL")
            continue
        if raw == "(":
            clauses.append("")
            cases.append(0)
        elif raw == ")" and len(clauses) > 1:
            clauses.pop()
            cases.pop()
        if kind is TokenType.STRING and token.start == last_end and out:
            # 'a''b' is one string to Spark, 'a' 'b' another
            out[-1] += raw
        else:
            out.append(raw)
        last_end = token.end + 1 if kind is TokenType.STRING else -1
        previous = raw
        operand = kind in _OPERAND_TYPES or raw in (")", "]") or raw[:1].isalnum()
    return out


def _may_be_name(word: str, following: str) -> bool:
    """Could a keyword be a column, field or alias here, whose case then counts?"""
    if word.partition(" ")[0] not in _STRUCTURAL:
        return following in _NAME_ENDS
    return following in _ENDS and word not in _CLOSING


def _cte_names(raws: list[str]) -> set[str]:
    """Names that stand before ``AS (``, as CTEs do."""
    return {
        raws[i].strip("`").lower()
        for i in range(len(raws) - 2)
        if raws[i + 1].upper() == "AS" and raws[i + 2] == "("
    }


def _is_reference_call(parsed: list[Token], raws: list[str], i: int) -> bool:
    return (
        i + 3 < len(raws)
        and raws[i + 1] == "("
        and parsed[i + 2].token_type is TokenType.STRING
        and raws[i + 3] == ")"
    )
