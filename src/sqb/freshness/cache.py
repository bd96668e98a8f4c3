"""Values that were asked for before: a value stands while nothing that it was read from moved.

Keyed by what was asked and by the versions of what was read, so an entry can't become wrong.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from sqb import cachefile

_LAYOUT = 1
_MOST = 2000


class _File(msgspec.Struct, array_like=True):
    answers: dict[str, tuple[str | None, str]] = {}


class ValueCache:
    """Values and the reasons for lacking ones, by key; the oldest go when there are too many."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, tuple[str | None, str]] | None = None

    def get(self, key: str) -> tuple[str | None, str] | None:
        """The value and why there is none, or None if this was never asked."""
        return self._load().get(key)

    def add(self, key: str, value: str | None, why: str) -> None:
        """Remember an answer; ``save`` writes it down."""
        self._load()[key] = (value, why)

    def save(self) -> None:
        """Write the file."""
        known = dict(list(self._load().items())[-_MOST:])
        cachefile.write(self._path, _File(known), _LAYOUT)

    def _load(self) -> dict[str, tuple[str | None, str]]:
        if self._known is None:
            found = cachefile.read(self._path, _File, _LAYOUT)
            self._known = dict(found.answers) if found is not None else {}
        return self._known
