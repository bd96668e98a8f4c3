"""Relations that sqb made and that no node of the project owns any more: found, and dropped.

A model was removed, or its ``alias`` or ``schema`` moved it elsewhere. Finding is pure. A relation
that anything else still reads or shares files with is not among them.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from sqb.lake.catalog import CommitConflict, Drop, Head, SqlCatalog
from sqb.lake.cleanup import metadata_files, relatives
from sqb.lake.expiry import only_behind, reached_by, remove_files
from sqb.lake.facts import FactsCache
from sqb.lake.io import is_within, normalised, remove_empty_folders
from sqb.lake.metadata import read_document
from sqb.lake.staging import STAGE_SUFFIX
from sqb.upkeep.census import Census

Place = tuple[str, str]

#: How tags are named that protect the files of a zero-copy clone.
CLONE_TAG = "sqb_clone_"


class Kept(msgspec.Struct, frozen=True):
    """A relation that would be dropped if something else did not need it."""

    place: str
    why: str


def unowned(
    census: Census, owner: str, owned: Collection[Place], disabled: Collection[str]
) -> tuple[list[Head], list[Kept]]:
    """Relations stamped for this project and target schema that no node makes; and those in use.

    ``disabled`` models keep their relations: they may come back.
    """
    found = {
        key
        for key, record in census.records.items()
        if record.owner == owner
        and key not in owned
        and record.node not in disabled
        and not key[0].endswith(STAGE_SUFFIX)
    }
    kept: list[Kept] = []
    while True:
        needed = {key: why for key in sorted(found) if (why := _use(census, key, found))}
        kept += [Kept(".".join(key), why) for key, why in needed.items()]
        found -= needed.keys()
        if not needed:
            return [census.heads[key] for key in sorted(found)], kept


def _use(census: Census, key: Place, leaving: Collection[Place]) -> str | None:
    """What needs a relation, leaving others that go with it out of account."""
    if census.leases:
        # of this project, which may make it again, or of another one, which may read it
        return "a build is running"
    place = ".".join(key)
    mine = census.facts[key]
    for other, record in census.truths.items():
        if other not in leaving and any(item.place == place for item in record.inputs):
            return f"{'.'.join(other)} reads it"
    for other, facts in census.facts.items():
        if other == key or other in leaving:
            continue
        if facts.kind == "view" and place.lower() in _plain(facts.sql or ""):
            return f"the view {'.'.join(other)} reads it"
        foreign = facts.kind == "view" and other not in census.records
        if foreign and _names(key[1], facts.sql or ""):
            return f"the view {'.'.join(other)} may read it"
        same = normalised(facts.location) == normalised(mine.location)
        if facts.kind == mine.kind == "table" and (facts.uuid == mine.uuid or same):
            return f"{'.'.join(other)} shares its files"
        if facts.kind == mine.kind == "table" and facts.snapshot_id == mine.snapshot_id is not None:
            return f"{'.'.join(other)} is a clone of it"
    return None


def _names(name: str, sql: str) -> bool:
    """Does a query name a relation without its schema? Which one it means, its maker knows.

    >>> _names("a", "SELECT id FROM `A`"), _names("a", "SELECT id FROM other.a")
    (True, False)
    """
    return re.search(rf"(?<![\w.]){re.escape(name.lower())}(?!\w)", _plain(sql)) is not None


def _plain(sql: str) -> str:
    return sql.replace("`", "").replace('"', "").lower()


def has_clones(head: Head) -> bool:
    """Do tags protect files of a table for its clones?"""
    if head.kind == "view":
        return False
    refs = read_document(head.location).get("refs") or {}
    return any(name.startswith(CLONE_TAG) for name in refs)


def files_of(head: Head) -> set[str]:
    """The files that go with a relation."""
    if head.kind == "view":
        return {normalised(head.location)}
    document = read_document(head.location)
    files = metadata_files(head.location, document) | only_behind(document["snapshots"] or [], [])
    return {file for file in files if is_within(file, document["location"])}


def drop(catalog: SqlCatalog, head: Head, facts: FactsCache) -> tuple[int, int] | None:
    """Drop a relation, then its files; how many and how large, None if it moved meanwhile."""
    place = facts.get(head.location).location
    document = read_document(head.location) if head.kind == "table" else None
    files = files_of(head)
    try:
        catalog.commit([Drop(head.namespace, head.name, head)])
    except CommitConflict:
        return None
    if document is not None:
        others = relatives(catalog, document, [], facts)
        if others is None:
            return 0, 0
        for location, other in others:
            files -= reached_by(other, location)
    done = remove_files(files)
    remove_empty_folders(place)
    return done
