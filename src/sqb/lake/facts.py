"""The facts of many metadata files, remembered between runs.

A metadata file never changes, so what was parsed from it stays true for ever: the cache is keyed
by location and needs no invalidation. It is only a cache: a missing, damaged or older file is
ignored.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec

from sqb.lake.io import read_bytes
from sqb.lake.metadata import DEFINITION, TableFacts, read_document, read_facts

#: Raised whenever ``TableFacts`` or ``Column`` change shape or meaning.
FORMAT = 4

#: The file is pruned when it holds this many times the live entries, but never below the floor:
#: a command about one model must not throw away what is known about the others.
PRUNE_FACTOR = 4
PRUNE_FLOOR = 1000


class _File(msgspec.Struct, array_like=True):
    format: int
    facts: dict[str, TableFacts]


class FactsCache:
    """Facts by metadata location. ``path`` None keeps them in memory only."""

    def __init__(
        self,
        path: Path | None,
        warehouse: str | None = None,
        read: Callable[[str], bytes] = read_bytes,
    ) -> None:
        self._path = path
        self._warehouse = warehouse or None
        self._read = read
        self._known: dict[str, TableFacts] | None = None
        self._asked: set[str] = set()
        self._added = False

    def get(self, location: str) -> TableFacts:
        """The facts of one metadata file, read now if they are not known yet."""
        known = self._load()
        self._asked.add(location)
        facts = known.get(location)
        if facts is None:
            facts = read_facts(location, warehouse=self._warehouse, read=self._read)
            known[location] = facts
            self._added = True
        return facts

    def document(self, location: str) -> dict[str, Any]:
        """The whole metadata document, as it stands."""
        return read_document(location, warehouse=self._warehouse, read=self._read)

    def definition(self, location: str) -> str | None:
        """The definition that was published with this metadata; not a fact, for it is long."""
        found = self.document(location).get("properties", {}).get(DEFINITION)
        return None if found is None else str(found)

    def get_many(self, locations: Iterable[str]) -> dict[str, TableFacts]:
        """The facts of several metadata files by location."""
        return {location: self.get(location) for location in locations}

    def add(self, location: str, facts: TableFacts) -> None:
        """Remember facts that the caller knows already, as of a file it has just written."""
        self._load()[location] = facts
        self._asked.add(location)
        self._added = True

    def save(self, live: Iterable[str] = ()) -> bool:
        """Write the file if something was added; True if it was.

        ``live`` are locations to keep beside those asked for, when the file has grown too large.
        """
        if self._path is None or not self._added or self._known is None:
            return False
        keep = self._asked | set(live)
        if len(self._known) > max(PRUNE_FLOOR, PRUNE_FACTOR * len(keep)):
            self._known = {k: v for k, v in self._known.items() if k in keep}
        import tempfile

        data = msgspec.msgpack.encode(_File(FORMAT, dict(self._known)))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=self._path.parent, prefix=self._path.name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).replace(self._path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        self._added = False
        return True

    def _load(self) -> dict[str, TableFacts]:
        if self._known is None:
            self._known = {} if self._path is None else _read(self._path)
        return self._known


def _read(path: Path) -> dict[str, TableFacts]:
    try:
        found = msgspec.msgpack.decode(path.read_bytes(), type=_File)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return found.facts if found.format == FORMAT else {}
