"""Taking away what a failed or killed build left: the alias's row first, then its own files.

A file goes only if the alias's metadata reaches it, no live head of the same table does, and it
lies in the table's own location. Directories are never listed, so what can't be reached from an
alias (data files of a write that never committed) stays for the janitor.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from sqb.errors import SqbError
from sqb.lake.catalog import CommitConflict, Drop, Head, SqlCatalog
from sqb.lake.facts import FactsCache
from sqb.lake.failpoints import reached
from sqb.lake.io import at_once, exists, file_size, is_within, normalised, open_file, remove
from sqb.lake.metadata import read_document
from sqb.lake.publish import published_files
from sqb.lake.staging import LEASE, STAGE_SUFFIX, lapsed, live_runs, split_alias

if TYPE_CHECKING:
    from pyiceberg.io import FileIO
    from pyiceberg.manifest import ManifestFile


def discard(
    catalog: SqlCatalog,
    staged_alias: Head,
    keep: Iterable[Head] = (),
    *,
    facts: FactsCache | None = None,
) -> int:
    """Drop an alias and delete the files that only it reaches; returns how many files went.

    Every catalog row of the same table (by location or uuid) is kept whole, and ``keep`` too.
    """
    alias = _drop(catalog, staged_alias)
    if alias is None:
        return 0
    facts = facts or FactsCache(None, catalog.warehouse)
    if alias.kind == "view":
        removed = _discard_view(catalog, alias)
    else:
        removed = sum(remove(file) for file in alias_files(catalog, alias, keep, facts=facts))
    reached("publish:6")
    return removed


def sweep(
    catalog: SqlCatalog, stage_schema: str, now: float, *, facts: FactsCache | None = None
) -> list[str]:
    """Discard every alias without a live lease, and the dead leases; returns the aliases' names."""
    dropped = []
    facts = facts or FactsCache(None, catalog.warehouse)
    for alias in lapsed(catalog, stage_schema, now):
        discard(catalog, alias, facts=facts)
        dropped.append(f"{alias.namespace}.{alias.name}")
    known = catalog.namespace_properties(stage_schema)
    live = live_runs(catalog, stage_schema, now)
    for key in known:
        if key.startswith(LEASE) and key.removeprefix(LEASE) not in live:
            catalog.remove_namespace_property(stage_schema, key)
    return dropped


def _drop(catalog: SqlCatalog, alias: Head) -> Head | None:
    """Drop the alias wherever it points now; None if someone else has."""
    while (current := catalog.head(alias.namespace, alias.name)) is not None:
        try:
            catalog.commit([Drop(current.namespace, current.name, current)])
        except CommitConflict:
            continue
        return current
    return None


def _discard_view(catalog: SqlCatalog, alias: Head) -> int:
    """A view's row names the very file that was to be published."""
    published = {normalised(h.location) for h in catalog.heads().values()}
    return 0 if normalised(alias.location) in published else int(remove(alias.location))


def alias_files(
    catalog: SqlCatalog, alias: Head, keep: Iterable[Head] = (), *, facts: FactsCache
) -> list[str]:
    """The files that only an alias of a table reaches, whether its row is still there or not."""
    try:
        document = read_document(alias.location, warehouse=catalog.warehouse)
    except SqbError:
        # Without it no file can be proven to be the alias's own; its row was all there was to do.
        return []
    kept = relatives(catalog, document, [*keep], facts, leaving=alias)
    if kept is None:
        return []
    table, run_id = split_alias(alias.name)
    schema = alias.namespace.removesuffix(STAGE_SUFFIX)
    written = published_files(alias, run_id, schema, table)
    return files_only_in(alias.location, document, kept, written)


def files_only_in(
    location: str,
    document: Mapping[str, Any],
    kept: list[tuple[str, dict[str, Any]]],
    more: Iterable[str] = (),
) -> list[str]:
    """The files that a document reaches, ``more`` among them, and none that is ``kept`` does."""
    doomed = metadata_files(location, document)
    doomed |= {normalised(file) for file in more}
    doomed |= _data_of(document, kept)
    for other_location, other in kept:
        doomed -= metadata_files(other_location, other)
    # Beyond the table's own location lie files of others, such as the origin of a clone.
    return [file for file in sorted(doomed) if is_within(file, document["location"])]


def relatives(
    catalog: SqlCatalog,
    document: Mapping[str, Any],
    keep: list[Head],
    facts: FactsCache,
    *,
    leaving: Head | None = None,
) -> list[tuple[str, dict[str, Any]]] | None:
    """The documents of all live heads of the same table; None if one of them can't be told.

    ``leaving`` is a row that is not counted, because it is about to go.
    """
    root, uuid = normalised(document["location"]), document.get("table-uuid")
    rows = [h for h in catalog.heads().values() if h != leaving]
    heads = {h.location: h for h in (*rows, *keep) if h.kind == "table"}
    found = []
    for location in heads:
        try:
            other = facts.get(location)
            if normalised(other.location) == root or other.uuid == uuid:
                found.append((location, read_document(location)))
        except SqbError as error:  # noqa: PERF203 - one bad head must not hide the others
            # Whether an unreadable head shares files is unknown, unless it lives elsewhere. A
            # store that does not answer says nothing about any.
            if is_within(location, root) or error.code == "L005":
                return None
    return found


def metadata_files(location: str, document: Mapping[str, Any]) -> set[str]:
    """The metadata file, those of its log, and statistics."""
    files = [location, *(e["metadata-file"] for e in document.get("metadata-log") or [])]
    for key in ("statistics", "partition-statistics"):
        files += [entry["statistics-path"] for entry in document.get(key) or []]
    return {normalised(file) for file in files}


def _data_of(document: Mapping[str, Any], kept: list[tuple[str, dict[str, Any]]]) -> set[str]:
    """Manifest lists, manifests and data files of the snapshots that only this document has."""
    theirs = {s["snapshot-id"]: s for _, other in kept for s in other.get("snapshots") or []}
    ours = [s for s in document.get("snapshots") or [] if s["snapshot-id"] not in theirs]
    if not ours:
        return set()
    doomed = {normalised(snapshot["manifest-list"]) for snapshot in ours}
    shared = manifests_of(theirs.values())
    own = {name: m for name, m in manifests_of(ours).items() if name not in shared}
    added_by = {s["snapshot-id"] for s in ours}
    files = {path for path, snapshot_id in entries_of(own) if snapshot_id in added_by}
    if files:
        files -= {path for path, _ in entries_of(shared)}
    return doomed | own.keys() | files


def manifests_of(
    snapshots: Iterable[Mapping[str, Any]], *, whole: bool = False
) -> dict[str, ManifestFile]:
    """The manifests of some snapshots by location; ``whole`` raises if a list of them is gone."""
    from pyiceberg.manifest import read_manifest_list

    def read(location: str) -> list[ManifestFile]:
        if not _is_there(location, whole=whole):
            return []
        return list(read_manifest_list(lake_io().new_input(location)))

    found = at_once(read, [s.get("manifest-list", "") for s in snapshots])
    return {normalised(m.manifest_path): m for manifests in found for m in manifests}


def entries_of(
    manifests: Mapping[str, ManifestFile], *, whole: bool = False
) -> Iterator[tuple[str, int | None]]:
    """The files of manifests, and the snapshots that added them; those deleted left out.

    ``whole`` raises if a manifest is gone.
    """

    def read(name: str) -> list[tuple[str, int | None]]:
        if not _is_there(name, whole=whole):
            return []
        entries = manifests[name].fetch_manifest_entry(lake_io(), discard_deleted=True)
        return [(normalised(e.data_file.file_path), e.snapshot_id) for e in entries]

    for found in at_once(read, manifests):
        yield from found


def _is_there(location: str, *, whole: bool) -> bool:
    if location and exists(location):
        return True
    if whole:
        raise FileNotFoundError(
            f"{location or 'a manifest list'} is missing, so what is still needed can't be told"
        )
    return False


def partitions_in(snapshot: Mapping[str, Any]) -> int:
    """How many partitions the files of a snapshot lie in."""
    return len(
        {
            (manifest.partition_spec_id, repr(entry.data_file.partition))
            for manifest in manifests_of([snapshot]).values()
            for entry in manifest.fetch_manifest_entry(lake_io(), discard_deleted=True)
        }
    )


@functools.cache
def lake_io() -> FileIO:
    """The lake's files for pyiceberg's Avro reader; local ones without importing pyarrow."""
    from pyiceberg.io import FileIO, InputFile, InputStream, OutputFile

    class LakeInput(InputFile):
        def __len__(self) -> int:
            return file_size(self.location) or 0

        def exists(self) -> bool:
            return exists(self.location)

        def open(self, seekable: bool = True) -> InputStream:  # noqa: ARG002 - given by pyiceberg
            return open_file(self.location)

    class LakeFiles(FileIO):
        def new_input(self, location: str) -> InputFile:
            return LakeInput(location)

        def new_output(self, location: str) -> OutputFile:
            raise NotImplementedError(f"{location}: this reads only")

        def delete(self, location: str | InputFile | OutputFile) -> None:
            raise NotImplementedError(f"{location}: this reads only")

    return LakeFiles()
