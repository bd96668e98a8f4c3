"""The ``MODEL (…);`` header in front of a model's query, read into plain values.

Only the form is known here; which keys exist and what they may hold is the business of
:mod:`sqb.project.keys`.
"""

from __future__ import annotations

import re
from typing import NoReturn

import msgspec

from sqb.errors import SqbError

_BLANK = re.compile(r"(?:[\s\ufeff]+|--[^\n]*)*")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_WORD = re.compile(r"(?:[\w.*%+$]|-(?!-))+")
_STRING = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?")
_KEYWORD = re.compile(r"MODEL(?![\w.])", re.IGNORECASE)
_MAX_DEPTH = 32
#: Signs that can start neither white space nor a comment.
_SOLID = frozenset("()[],;:='\"_<>")


class Call(msgspec.Struct, frozen=True):
    """``name(args…, k: v) (options)``, as in ``unique(id) (severity warn)``."""

    name: str
    args: tuple[object, ...] = ()
    named: dict[str, object] = {}
    options: dict[str, object] = {}

    def text(self) -> str:
        """The call in normal form, without its options.

        >>> Call("bucket", (16, "id")).text()
        'bucket(16, id)'
        """
        parts = [_text(arg) for arg in self.args]
        parts += [f"{key}: {_text(value)}" for key, value in self.named.items()]
        return f"{self.name}({', '.join(parts)})"


class ModelText(msgspec.Struct, frozen=True):
    """A model file, split into the values of its header and the text of its query."""

    values: dict[str, object]
    #: The line of each key of the header.
    lines: dict[str, int]
    body: str
    #: The line, from 1, on which the body's first character stands.
    body_line: int
    body_start: int


def split_model(text: str, file: str) -> ModelText:
    """Split a model file into header and body; a file without a header is all body.

    >>> split_model("MODEL (materialized table, tags [a, b]);SELECT 1", "a.sql").values
    {'materialized': 'table', 'tags': ['a', 'b']}
    """
    reader = _Reader(text, file)
    if not reader.opens_header():
        start = 1 if text.startswith("\ufeff") else 0
        return ModelText({}, {}, text[start:], 1, start)
    lines: dict[str, int] = {}
    values = reader.mapping("the header", lines)
    if not reader.take(";"):
        reader.fail("expected `;` after the header's `)`")
    start = reader.at
    return ModelText(values, lines, text[start:], text.count("\n", 0, start) + 1, start)


def parse_value(text: str, file: str) -> object:
    """One value as it would stand in a list of a header, such as ``sql("grant", role: "x")``."""
    reader = _Reader(text, file)
    found = reader.value(in_list=True)
    if reader.peek():
        reader.fail(f"expected nothing more, found `{reader.shown()}`")
    return found


def _text(value: object) -> str:
    if isinstance(value, Call):
        return value.text()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(_text(item) for item in value)}]"
    return str(value)


def _typed(word: str) -> object:
    if word in ("true", "false"):
        return word == "true"
    found = _NUMBER.fullmatch(word)
    if found is None:
        return word
    return float(word) if found[1] else int(word)


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.at = 0
        self.depth = 0

    def opens_header(self) -> bool:
        try:
            self.skip()
        except SqbError:
            # An endless comment in front of a query is for the SQL parser to report.
            return False
        found = _KEYWORD.match(self.text, self.at)
        if found is None:
            return False
        self.at = found.end()
        return self.take("(")

    def mapping(self, what: str, lines: dict[str, int] | None = None) -> dict[str, object]:
        """The pairs up to the closing parenthesis; the opening one is behind us."""
        self.enter()
        opened = self.at - 1
        values: dict[str, object] = {}
        while not self.take(")"):
            self.unless_end(opened, ")", what)
            start = self.at
            key = self.key(what)
            if key in values:
                self.fail(f"`{key}` is given twice in {what}", at=start)
            if lines is not None:
                lines[key] = self.text.count("\n", 0, start) + 1
            _ = self.take(":") or self.take("=")
            if self.peek() in ("", ",", ")", "]", ";"):
                self.fail(f"`{key}` has no value", at=start)
            values[key] = self.value()
            self.separate(")", f"after the value of `{key}`", opened, what)
        self.depth -= 1
        return values

    def value(self, *, in_list: bool = False) -> object:
        if self.take("["):
            return self.items("]", "the list", listed=True)
        if self.take("("):
            return self.mapping("the parenthesis")
        quoted = self.string()
        if quoted is not None:
            return quoted
        start = self.at
        word = self.word()
        if not word:
            self.fail(f"expected a value, found `{self.peek()}`", at=start)
        if self.peek() == "<":
            return word + self.angles()
        if self.peek() != "(":
            return " ".join([word, *self.words()]) if in_list and self.more() else _typed(word)
        call = self.call(word)
        if in_list and self.more():
            return " ".join([call.text(), *self.words()])
        return call

    def call(self, name: str) -> Call:
        args: list[object] = []
        named: dict[str, object] = {}
        options: dict[str, object] = {}
        if not self.opens_options():
            self.take("(")
            args = self.items(")", f"the call of `{name}`", named=named)
        if self.peek() == "(":
            self.take("(")
            options = self.mapping(f"the options of `{name}`")
        return Call(name, tuple(args), named, options)

    def opens_options(self) -> bool:
        """Whether the parenthesis ahead holds ``key value`` pairs instead of arguments."""
        start = self.at
        self.take("(")
        paired = bool(self.word()) and (self.more() or self.peek() in ("'", '"', "["))
        self.at = start
        return paired

    def items(
        self, end: str, what: str, *, listed: bool = False, named: dict[str, object] | None = None
    ) -> list[object]:
        self.enter()
        opened = self.at - 1
        found: list[object] = []
        while not self.take(end):
            self.unless_end(opened, end, what)
            start = self.at
            name = self.word()
            if named is not None and name and self.take(":"):
                if name in named:
                    self.fail(f"`{name}` is given twice in {what}", at=start)
                named[name] = self.value()
            else:
                self.at = start
                if named:
                    self.fail(f"in {what} arguments by position come before named ones", at=start)
                found.append(self.value(in_list=listed))
            self.separate(end, f"in {what}", opened, what)
        self.depth -= 1
        return found

    def key(self, what: str) -> str:
        start = self.at
        key = self.string() or self.word()
        if not key:
            self.fail(f"expected a key in {what}, found `{self.peek()}`", at=start)
        return key

    def string(self) -> str | None:
        self.skip()
        quote = self.peek()
        if quote not in ("'", '"') or not quote:
            return None
        found = _STRING.match(self.text, self.at)
        if found is None:
            self.fail(f"the string that starts here has no closing {quote}")
        self.at = found.end()
        return found[0][1:-1].replace(quote * 2, quote)

    def word(self) -> str:
        self.skip()
        found = _WORD.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def words(self) -> list[str]:
        found: list[str] = []
        while self.more():
            found.append(self.word())
        return found

    def more(self) -> bool:
        """Whether another bare word follows."""
        self.skip()
        return _WORD.match(self.text, self.at) is not None

    def angles(self) -> str:
        """The ``<…>`` of a nested column type, as written."""
        start = self.at
        depth = 0
        for position in range(start, len(self.text)):
            character = self.text[position]
            depth += (character == "<") - (character == ">")
            if depth == 0:
                self.at = position + 1
                return self.text[start : self.at]
        return self.fail("the `<` that starts here is never closed")

    def separate(self, end: str, where: str, opened: int, what: str) -> None:
        if not self.take(",") and self.peek() != end:
            self.unless_end(opened, end, what)
            self.fail(
                f"expected `,` or `{end}` {where}, found `{self.shown()}`",
                help="a value of several words or with other signs needs quotes",
            )

    def shown(self) -> str:
        start = self.at
        word = self.word() or self.peek()
        self.at = start
        return word

    def take(self, sign: str) -> bool:
        self.skip()
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True

    def peek(self) -> str:
        self.skip()
        return self.text[self.at : self.at + 1]

    def skip(self) -> None:
        here = self.text[self.at : self.at + 1]
        if here.isalnum() or here in _SOLID:
            return  # nearly always, and far cheaper than the search
        while True:
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            if not self.text.startswith("/*", self.at):
                return
            # Bracketed comments nest, as in Spark.
            start, depth = self.at, 0
            for edge in _COMMENT_EDGE.finditer(self.text, start):
                depth += 1 if edge[0] == "/*" else -1
                if depth == 0:
                    self.at = edge.end()
                    break
            else:
                self.fail("the comment that starts here is never closed", at=start)

    def enter(self) -> None:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail("the header is nested too deeply")

    def unless_end(self, opened: int, end: str, what: str) -> None:
        if not self.peek():
            self.fail(f"{what} is never closed: expected `{end}`", at=opened)

    def fail(self, message: str, *, at: int | None = None, help: str | None = None) -> NoReturn:
        position = self.at if at is None else at
        raise SqbError(
            "P001",
            message,
            file=self.file,
            line=self.text.count("\n", 0, position) + 1,
            help=help or "a header looks like MODEL (materialized table, tags [daily]);",
        )
