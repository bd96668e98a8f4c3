"""TOML with places: parses a file, and finds the line on which a key was written.

``tomllib`` keeps no positions. The scanner here only has to locate keys in text that ``tomllib``
already accepted; it is not a parser and judges nothing.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from sqb.errors import SqbError

KeyPath = tuple[str, ...]

_SKIP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}\n#]*")
_PLACE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")


class TomlFile(msgspec.Struct, frozen=True):
    """A parsed TOML file that can say where its keys stand."""

    file: str
    text: str
    values: dict[str, Any]

    def line(self, path: Sequence[str]) -> int | None:
        """The line of a key, or of the nearest table around it that was written out."""
        lines = key_lines(self.text)
        for end in range(len(path), 0, -1):
            found = lines.get(tuple(path[:end]))
            if found is not None:
                return found
        return None


def parse_toml(content: bytes, file: str) -> TomlFile:
    """Parse TOML; what can't be parsed is C002 with its line."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SqbError(
            "C002",
            f"{file} is not valid UTF-8",
            file=file,
            line=content.count(b"\n", 0, error.start) + 1,
            help="save the file as UTF-8",
        ) from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _PLACE.search(message)
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        reason = _PLACE.sub("", message)
        raise SqbError(
            "C002",
            f"{file} is not valid TOML: {reason[:1].lower()}{reason[1:]}",
            file=file,
            line=line,
            help='values look like name = "text", 8, true or ["a", "b"]; tables like [settings]',
        ) from None
    except RecursionError:
        raise SqbError("C002", f"{file} is nested too deeply", file=file) from None
    return TomlFile(file=file, text=text, values=values)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of the first mention of every key and table.

    >>> key_lines('name = "x"\\n[targets.dev]\\nschema = "d"')[("targets", "dev", "schema")]
    3
    """
    lines: dict[KeyPath, int] = {}
    for path, position in _Scanner(text).document():
        lines.setdefault(path, text.count("\n", 0, position) + 1)
    return lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def document(self) -> Iterator[tuple[KeyPath, int]]:
        table: KeyPath = ()
        while self.skip():
            start = self.at
            if self.text[start] == "[":
                self.at += 2 if self.text.startswith("[[", start) else 1
                table = self.key()
                self.at = self.text.find("]", self.at)
                self.at += 2 if self.text.startswith("]]", self.at) else 1
                yield table, start
            else:
                yield from self.pair(table)

    def pair(self, table: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        start = self.at
        path = table + self.key()
        yield path, start
        self.skip()
        self.at += 1  # the equals sign
        yield from self.value(path)

    def key(self) -> KeyPath:
        parts: list[str] = []
        while self.skip():
            quoted = _STRING.match(self.text, self.at)
            found = quoted or _BARE.match(self.text, self.at)
            if found is None:
                break
            parts.append(found[0][1:-1] if quoted else found[0])
            self.at = found.end()
            self.skip()
            if not self.text.startswith(".", self.at):
                break
            self.at += 1
        return tuple(parts)

    def value(self, path: KeyPath) -> Iterator[tuple[KeyPath, int]]:
        self.skip()
        opening = self.text[self.at : self.at + 1]
        if opening in ("[", "{"):
            self.at += 1
            while self.skip() and self.text[self.at] not in "]}":
                if self.text[self.at] == ",":
                    self.at += 1
                elif opening == "[":
                    yield from self.value(path)
                else:
                    yield from self.pair(path)
            self.at += 1
            return
        found = _STRING.match(self.text, self.at) or _PLAIN.match(self.text, self.at)
        if found is not None:
            self.at = max(found.end(), self.at)

    def skip(self) -> bool:
        found = _SKIP.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return self.at < len(self.text)
