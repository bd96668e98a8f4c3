"""Taking snapshots out of a table: the edit of its metadata, the commit, and the files left behind.

Which snapshots may go is decided elsewhere. The commit comes first, then the files that only the
removed snapshots reach, found through manifests and never by listing a folder: a crash in between
leaves files that nothing names, and the janitor's search for orphans finds them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from sqb.errors import SqbError
from sqb.lake.catalog import CommitConflict, Head, Point, SqlCatalog
from sqb.lake.cleanup import entries_of, manifests_of, metadata_files, relatives
from sqb.lake.facts import FactsCache
from sqb.lake.failpoints import reached
from sqb.lake.io import at_once, exists, file_size, is_within, normalised, remove, write_new
from sqb.lake.metadata import read_document
from sqb.lake.publish import folder_and_version
from sqb.lake.reapply import Document, history, log_previous

Snapshot: TypeAlias = Mapping[str, Any]


class Expired(msgspec.Struct, frozen=True):
    """What an expiry did: the head it made, and the files that went with their sizes."""

    head: Head
    snapshots: int
    files: int
    bytes: int


def expire(
    catalog: SqlCatalog,
    head: Head,
    snapshots: Collection[int],
    metadata: Collection[str],
    facts: FactsCache,
) -> Expired | None:
    """Remove snapshots and old metadata files of a table; None if it moved meanwhile.

    ``snapshots`` are ids, ``metadata`` locations from the metadata log. Raises ``OSError`` before
    anything is changed if what stays can't be read in full.
    """
    now_ms = time.time_ns() // 1_000_000
    try:
        document = read_document(head.location, warehouse=catalog.warehouse)
        after = without(log_previous(document, head.location, now_ms), snapshots, metadata)
        doomed = left_behind(document, after)
    except (OSError, SqbError):
        if catalog.head(head.namespace, head.name) != head:
            return None  # someone else removed what this head named
        raise
    moved = _replace(catalog, head, after)
    if moved is None:
        return None
    reached("expire:1")
    doomed = _spare(catalog, document, after, moved, doomed, facts)
    removed, freed = remove_files(doomed)
    gone = len(document.get("snapshots") or []) - len(after.get("snapshots") or [])
    return Expired(moved, gone, removed, freed)


def without(
    document: Document, snapshots: Collection[int], metadata: Collection[str] = ()
) -> Document:
    """The document without some snapshots, what belongs to them, and some of its log."""
    gone = set(snapshots)
    kept = [s for s in document.get("snapshots") or [] if s["snapshot-id"] not in gone]
    ids = {s["snapshot-id"] for s in kept}
    after = {**document, "snapshots": kept}
    after["snapshot-log"] = history(document.get("snapshot-log") or [], ids)
    for key in ("statistics", "partition-statistics"):
        if key in document:
            after[key] = [e for e in document[key] or [] if e["snapshot-id"] in ids]
    dropped = set(metadata)
    after["metadata-log"] = [
        e for e in document.get("metadata-log") or [] if e["metadata-file"] not in dropped
    ]
    return after


def left_behind(before: Document, after: Document) -> set[str]:
    """Files below the table's location that the first document reaches and the second does not."""
    kept = after.get("snapshots") or []
    ids = {s["snapshot-id"] for s in kept}
    removed = [s for s in before.get("snapshots") or [] if s["snapshot-id"] not in ids]
    doomed = metadata_files("", before) - metadata_files("", after)
    doomed |= only_behind(removed, kept)
    return {file for file in doomed if is_within(file, before["location"])}


def only_behind(removed: Iterable[Snapshot], kept: Iterable[Snapshot]) -> set[str]:
    """Manifest lists, manifests and data files that no kept snapshot reaches."""
    removed, kept = [s for s in removed if "manifest-list" in s], list(kept)
    if not removed:
        return set()
    shared = manifests_of(kept, whole=True)
    own = {name: m for name, m in manifests_of(removed).items() if name not in shared}
    files = {path for path, _ in entries_of(own)}
    if files:
        files -= {path for path, _ in entries_of(shared, whole=True)}
    return (_lists(removed) - _lists(kept)) | own.keys() | files


def _lists(snapshots: Iterable[Snapshot]) -> set[str]:
    return {normalised(snapshot["manifest-list"]) for snapshot in snapshots}


def reached_by(document: Document, location: str) -> set[str]:
    """Every file that a metadata file leads to, itself among them."""
    snapshots = document.get("snapshots") or []
    manifests = manifests_of(snapshots, whole=True)
    files = {path for path, _ in entries_of(manifests, whole=True)}
    return metadata_files(location, document) | _lists(snapshots) | manifests.keys() | files


def remove_files(files: Iterable[str]) -> tuple[int, int]:
    """Remove files; how many there were, and their bytes."""
    removed = [size for size in at_once(_remove, sorted(files)) if size is not None]
    return len(removed), sum(removed)


def _remove(file: str) -> int | None:
    """Remove a file; its bytes, None if there was none."""
    size = file_size(file)
    return size if remove(file) else None


def _replace(catalog: SqlCatalog, head: Head, document: Document) -> Head | None:
    """Point the table at a new metadata file, if it is still what it was."""
    folder, version = folder_and_version(head.location)
    file = f"{folder}/{version + 1:05d}-{uuid.uuid4()}.metadata.json"
    write_new(file, msgspec.json.encode(document))
    try:
        catalog.commit([Point(head.namespace, head.name, "table", file, expected=head)])
    except CommitConflict:
        remove(file)
        return None
    return Head(head.namespace, head.name, "table", file)


def _spare(
    catalog: SqlCatalog,
    before: Document,
    after: Document,
    moved: Head,
    doomed: set[str],
    facts: FactsCache,
) -> set[str]:
    """Without what other rows of the same table need: aliases that builds work on right now.

    Such an alias inherited the snapshots that were just removed, or were long ago. It needs its
    own current one, its branches and its tags.
    """
    others = relatives(catalog, before, [], facts)
    if others is None:
        return set()
    stay = {s["snapshot-id"] for s in after.get("snapshots") or []}
    for location, other in others:
        if location == moved.location:
            continue
        doomed -= metadata_files(location, other)
        refs = {ref["snapshot-id"] for ref in (other.get("refs") or {}).values()}
        refs.add(other.get("current-snapshot-id"))
        needed = [
            s
            for s in other.get("snapshots") or []
            if s["snapshot-id"] in refs - stay and exists(s["manifest-list"])
        ]
        doomed -= reached_by({**other, "snapshots": needed}, location)
    return doomed
