"""Text with pieces replaced, that still knows where every character came from.

Macro expansion and reference replacement both give a ``Spliced``; an error position in the final
text is walked back through them to the user's own file and line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import msgspec


class Edit(msgspec.Struct, frozen=True):
    """Replace ``text[start:end]`` by ``replacement``."""

    start: int
    end: int
    replacement: str


class Spliced(msgspec.Struct, frozen=True, array_like=True):
    """A text and, for each of its pieces, (offset here, offset in the original, is verbatim)."""

    text: str
    pieces: tuple[tuple[int, int, bool], ...]

    def origin(self, offset: int) -> int:
        """The original offset of ``offset``; anything inside a replacement maps to its start.

        >>> splice("a @m b", [Edit(2, 4, "xyz")]).origin(7)
        6
        """
        index = bisect_right(self.pieces, offset, key=lambda piece: piece[0]) - 1
        here, there, verbatim = self.pieces[max(index, 0)]
        return there + (offset - here) if verbatim else there


def splice(text: str, edits: Iterable[Edit]) -> Spliced:
    """Apply ``edits`` (which must not overlap) to ``text``."""
    out: list[str] = []
    pieces: list[tuple[int, int, bool]] = []
    done = length = 0
    for edit in sorted(edits, key=lambda e: e.start):
        if edit.start < done:
            raise ValueError("edits overlap")
        pieces.append((length, done, True))
        out.append(text[done : edit.start])
        length += edit.start - done
        pieces.append((length, edit.start, False))
        out.append(edit.replacement)
        length += len(edit.replacement)
        done = edit.end
    pieces.append((length, done, True))
    out.append(text[done:])
    return Spliced("".join(out), tuple(pieces))


class Patchwork:
    """A text made of pieces of another one."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        self.parts: list[str] = []
        self.pieces: list[tuple[int, int, bool]] = []
        self.length = 0

    def add(self, text: str, at: int) -> None:
        """New words, that stand for the place ``at``."""
        self._put(text, at, verbatim=False)

    def copy(self, start: int, end: int) -> None:
        """The user's own words."""
        self._put(self.sql[start:end], start, verbatim=True)

    def replaced(self, start: int, end: int, edits: Sequence[tuple[int, int, str]]) -> None:
        """The user's own words with some of them replaced."""
        for a, b, text in sorted(edits):
            self.copy(start, a)
            self.add(text, a)
            start = b
        self.copy(start, end)

    def _put(self, text: str, at: int, *, verbatim: bool) -> None:
        if text:
            self.pieces.append((self.length, at, verbatim))
            self.parts.append(text)
            self.length += len(text)

    def spliced(self) -> Spliced:
        """The text."""
        return Spliced("".join(self.parts), tuple(self.pieces))
