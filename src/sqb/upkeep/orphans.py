"""Files that nothing names: left by a crash, or by a write that never committed.

Only below ``data`` and ``metadata`` of the folders of relations that sqb made, and only files that
have been there long enough: a write in progress has files that nothing names yet.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sqb.errors import SqbError
from sqb.lake.catalog import Head
from sqb.lake.expiry import reached_by
from sqb.lake.io import Listed, files_below, normalised, parents
from sqb.lake.metadata import read_document
from sqb.upkeep.census import Census

Place = tuple[str, str]

_FOLDERS = ("data", "metadata")


class Orphans(msgspec.Struct, frozen=True):
    """Files below one relation's folder that nothing reaches."""

    location: str
    files: tuple[Listed, ...]


def old_enough(listed: Iterable[Listed], reached: set[str], before: float) -> tuple[Listed, ...]:
    """The files that are not reached and did not change since ``before``."""
    return tuple(f for f in listed if f.modified < before and normalised(f.location) not in reached)


def limit(census: Census, age: float, grace: float) -> float:
    """Files from before this moment belong to no running build."""
    return min([census.now - age, *(began - grace for began in census.leases.values())])


class Reach:
    """What every row of the catalog reaches, asked folder by folder."""

    def __init__(self, census: Census) -> None:
        self._heads = census.heads
        self._views: set[str] = set()
        self._at: dict[str, set[Place]] = {}
        self._below: dict[str, set[Place]] = {}
        for key, head in census.heads.items():
            if head.kind == "view":
                self._views.add(normalised(head.location))
                continue
            for folder in _folders_of(head, census.facts[key].location):
                self._at.setdefault(folder, set()).add(key)
                for above in (folder, *parents(folder)):
                    self._below.setdefault(above, set()).add(key)

    def below(self, location: str) -> set[str]:
        """The files that tables reach which have anything to do with a folder.

        Raises ``OSError`` or ``SqbError`` if one of them can't be read in full.
        """
        folder = normalised(location)
        near = set(self._below.get(folder, ()))
        for above in parents(folder):
            near |= self._at.get(above, set())
        reached = set(self._views)
        for key in near:
            head = self._heads[key]
            reached |= reached_by(read_document(head.location), head.location)
        return reached


def _folders_of(head: Head, location: str) -> set[str]:
    """The folders that a table has files in; those of a clone lie with its origin."""
    try:
        snapshots = read_document(head.location).get("snapshots") or []
    except SqbError:
        # Gone since it was looked at. Whoever asks about its folder meets the same error.
        snapshots = []
    lists = [s["manifest-list"] for s in snapshots if "manifest-list" in s]
    return {normalised(location), *(parents(normalised(f))[0] for f in (*lists, head.location))}


def orphans(reach: Reach, location: str, before: float) -> Orphans:
    """The orphans of one folder; raises as ``Reach.below`` does."""
    listed = [f for name in _FOLDERS for f in files_below(f"{location}/{name}")]
    old = [f for f in listed if f.modified < before]
    reached = reach.below(location) if old else set()
    return Orphans(location, old_enough(old, reached, before))
