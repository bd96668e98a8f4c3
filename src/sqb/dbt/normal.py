"""SQL with Jinja in it, without what does not count: comments and white space.

Jinja is left as it is, since only dbt knows what it becomes; white space beside it, and comments
with Jinja in them, count. Where the text can't be read with certainty it stays as it is: a model
that runs needlessly costs time, one that is skipped wrongly is wrong.
"""

from __future__ import annotations

import re

#: Blocks whose contents are a value or are not Jinja at all, so that white space in them may count.
_VERBATIM = re.compile(
    r"\{%[-+]?\s*(?:raw|call|filter|macro|test|materialization|set\s+[\w.,\s]+[-+]?%\})"
)
#: Expressions that become the name of a relation: white space beside them is free.
_NAMES = re.compile(r"\{\{\s*(?:(?:ref|source)\s*\([^{}]*\)|this)\s*\}\}")
_OPEN = {"{{": "}}", "{%": "%}", "{#": "#}"}
_CODE = re.compile(
    r"""(?P<space>[ \t\r\n\f\v]+)
      | (?P<line>--[^\n]*)
      | (?P<block>/\*)
      | (?P<jinja>\{[{%\#])
      | (?P<quote>['"`])
      | (?P<single>[(),;\[\]{}])
      | (?P<word>\d[\w.]*[eE][-+]\d+|[\w.$]+)
      | (?P<signs>(?:(?!--|/\*)[^\s\w.$(),;\[\]{}'"`])+)""",
    re.VERBOSE,
)
_JINJA_PARTS = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[-+]?[%}]\}|[(\[{]|[)\]}]""", re.DOTALL
)


class _UnsureError(Exception):
    """The text can't be read with certainty."""


def normalised(code: str) -> str:
    """The parts of ``code`` that count, one a line.

    >>> normalised("select a, b -- note\\nfrom t") == normalised("select a,b\\n  from t")
    True
    >>> normalised("select 'a  b'") == normalised("select 'a b'")
    False
    >>> normalised("select a from stg_{{ x }}") == normalised("select a from stg_ {{ x }}")
    False
    """
    if _VERBATIM.search(code):
        return code
    try:
        return "\n".join(_tokens(code))
    except _UnsureError:
        return code


def _tokens(code: str) -> list[str]:
    out: list[str] = []
    at, glued = 0, False
    while at < len(code):
        found = _CODE.match(code, at)
        if found is None:
            raise _UnsureError
        kind, end = found.lastgroup, found.end()
        if kind == "space":
            at, glued = end, False
            continue
        if kind == "jinja":
            end = _jinja_end(code, at)
            text = code[at:end]
            _refuse_comments_beside(code, at, end, text)
            if text.startswith("{#"):
                # with a minus it eats the white space beside it, else it leaves nothing
                if text[2:3] in "-+" or text[-3:-2] in "-+":
                    out.append(_beside(code, at, end, "{##}"))
                elif _touches(code, at - 1) and _touches(code, end):
                    out.append("{##}")
                at, glued = end, False
                continue
            word = _trimmed(text)
            if _NAMES.fullmatch(text) and not _word_beside(code, at, end):
                out.append(word)
            else:
                out.append(_beside(code, at, end, word))
        elif kind in {"line", "block"}:
            end = _comment_end(code, at) if kind == "block" else _line_end(code, at)
            text = code[at:end]
            if "{{" in text or "{%" in text or "{#" in text or text.startswith("/*+"):
                out.append(text)
            elif text.endswith("\\"):
                raise _UnsureError
            at, glued = end, False
            continue
        elif kind == "quote":
            raw = glued and out[-1] in {"r", "R"}
            if raw and code[: at - 1].rstrip().endswith("}"):
                # the letter may end a word that Jinja begins
                raise _UnsureError
            end = _quote_end(code, at, raw=raw)
            # r'x' and 'a''b' are one literal, r 'x' and 'a' 'b' are two
            if glued and out:
                out[-1] += code[at:end]
            else:
                out.append(code[at:end])
        else:
            out.append(code[at:end])
        at = end
        glued = kind in ("word", "quote")
    return out


def _touches(code: str, at: int) -> bool:
    return 0 <= at < len(code) and not code[at].isspace()


def _refuse_comments_beside(code: str, start: int, end: int, tag: str) -> None:
    """A comment that a tag touches, or reaches with its minus, can't be left out.

    ``-- note`` before ``{%- if x %}`` takes in what follows: the minus eats the line's end.
    """
    if tag.startswith("{#") and "-" not in (tag[2:3], tag[-3:-2]):
        return
    before = code[:start].rstrip() if tag[2] == "-" else code[max(0, start - 2) : start]
    after = code[end:].lstrip() if tag[-3] == "-" else code[end : end + 2]
    if before.endswith(("#}", "*/")) or after.startswith(("{#", "/*", "--")):
        raise _UnsureError
    if tag[2] == "-" and "--" in before[before.rfind("\n") + 1 :]:
        raise _UnsureError


def _word_beside(code: str, start: int, end: int) -> bool:
    """Would a name that stands here be a part of a longer word?"""
    before = code[start - 1] if start else " "
    after = code[end] if end < len(code) else " "
    return any(c.isalnum() or c in "_$'\"`.{}@#" for c in (before, after))


def _beside(code: str, start: int, end: int, word: str) -> str:
    """Jinja with what stands on both sides of it: a line's end, a space, or something."""

    def side(space: str, is_end: bool) -> str:
        if is_end or "\n" in space:
            return "n"
        return "s" if space else "g"

    left, right = start, end
    while left and code[left - 1].isspace():
        left -= 1
    while right < len(code) and code[right].isspace():
        right += 1
    return f"{side(code[left:start], left == 0)}{side(code[end:right], right == len(code))} {word}"


def _trimmed(text: str) -> str:
    """A tag without the white space just inside its braces.

    >>> _trimmed("{{ref('a')  }}"), _trimmed("{%- if x%}")
    ("{{ ref('a') }}", '{%- if x %}')
    """
    left = 3 if text[2] in "-+" else 2
    right = 3 if text[-3] in "-+" and len(text) > left + 2 else 2
    return f"{text[:left]} {text[left:-right].strip()} {text[-right:]}"


def _jinja_end(code: str, at: int) -> int:
    """Where the tag that opens at ``at`` is closed: not in its strings, not in its braces."""
    opener = code[at : at + 2]
    closer = _OPEN[opener]
    if opener == "{#":
        end = code.find(closer, at + 2)
        if end < 0:
            raise _UnsureError
        return end + 2
    depth, position = 0, at + 2
    while found := _JINJA_PARTS.search(code, position):
        text = found[0]
        if text[-2:] == closer and len(text) > 1 and text[0] not in "'\"":
            if depth == 0:
                return found.end()
            if closer == "}}":
                # the first brace closes one of the expression's own
                depth -= 1
                position = found.start() + len(text) - 1
                continue
        if text in "([{":
            depth += 1
        elif text in ")]}" or (text[-1] == "}" and text[0] not in "'\""):
            depth = max(0, depth - 1)
        position = found.end()
    raise _UnsureError


def _line_end(code: str, at: int) -> int:
    """The end of a line comment; Jinja in it may go on over lines."""
    position = at
    while True:
        newline = code.find("\n", position)
        stop = len(code) if newline < 0 else newline
        inside = _first_tag(code, position, stop)
        if inside < 0:
            return stop
        position = _jinja_end(code, inside)


def _first_tag(code: str, start: int, stop: int) -> int:
    found = [at for opener in _OPEN if (at := code.find(opener, start, stop)) >= 0]
    return min(found, default=-1)


def _comment_end(code: str, at: int) -> int:
    position = at + 2
    while True:
        close = code.find("*/", position)
        if close < 0:
            raise _UnsureError
        inside = _first_tag(code, position, close)
        if inside < 0:
            if "/*" in code[at + 2 : close]:
                # Spark's comments nest, which few people know
                raise _UnsureError
            return close + 2
        position = _jinja_end(code, inside)


def _quote_end(code: str, at: int, *, raw: bool) -> int:
    """The end of a string or a quoted name; Jinja in it may hold quotes of its own."""
    quote, position = code[at], at + 1
    while position < len(code):
        char = code[position]
        if char == quote:
            return position + 1
        if char == "\\" and quote != "`" and not raw:
            position += 2
        elif code[position : position + 2] in _OPEN:
            position = _jinja_end(code, position)
        else:
            position += 1
    raise _UnsureError
