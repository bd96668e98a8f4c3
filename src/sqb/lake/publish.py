"""Publishing: one compare-and-swap in the catalog makes staged work the target's own.

The published metadata is a file of its own: what was staged plus properties and the stamp. The
catalog then moves the target's pointer and drops the alias in one transaction, if the target is
still the remembered base. What changed beside the data meanwhile is re-applied (``reapply``);
when the data moved, ``Overtaken`` is raised and the caller decides.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sqb.errors import SqbError
from sqb.lake.catalog import CommitConflict, Drop, Head, Point, SqlCatalog
from sqb.lake.describe import DESCRIBED, described_table
from sqb.lake.failpoints import reached
from sqb.lake.io import remove, write_new
from sqb.lake.metadata import STAMP, TableFacts, parse_facts, read_document
from sqb.lake.reapply import (
    dated,
    log_previous,
    merged_properties,
    reapply,
    same_data,
    with_sort_order,
)
from sqb.lake.staging import (
    Staged,
    alias_name,
    refuse_deleting,
    stage_schema,
)
from sqb.lake.views import view_metadata, write_view

#: What a table that sqb creates is made with: the changelog scan refuses delete files, and a
#: merge-on-read table breaks when a partition column is dropped.
FORMAT_VERSION = 2
FRESH_TABLE_PROPERTIES: dict[str, str] = {
    "format-version": str(FORMAT_VERSION),
    "write.delete.mode": "copy-on-write",
    "write.update.mode": "copy-on-write",
    "write.merge.mode": "copy-on-write",
}

#: How often a publish starts again because properties or tags moved under it.
MAX_ATTEMPTS = 8

MakeStamp = Callable[[TableFacts], str]

_FILE_NAMES = uuid.UUID("5f0c3f7e-6f1c-5f0a-9a52-2f4b7d0c8e11")


class Overtaken(Exception):  # noqa: N818 - an outcome, not a failure
    """Someone else changed the target meanwhile; ``winner`` is what it is now (None: dropped)."""

    def __init__(self, winner: Head | None) -> None:
        super().__init__("the target was changed by someone else meanwhile")
        self.winner = winner


def published_file(
    folder: str, version: int, *, run_id: str, namespace: str, name: str, attempt: int
) -> str:
    """The file that a run publishes a relation with.

    The name follows from the run and the relation, so that clean-up after a crash finds the file
    without listing a directory.
    """
    made = uuid.uuid5(_FILE_NAMES, f"{run_id}/{namespace}/{name}/{attempt}")
    return f"{folder}/{version:05d}-{made}.metadata.json"


def published_files(alias: Head, run_id: str, namespace: str, name: str) -> list[str]:
    """Every file that the run may have written for a staged table before it died."""
    folder, version = folder_and_version(alias.location)
    return [
        published_file(
            folder, version + 1, run_id=run_id, namespace=namespace, name=name, attempt=attempt
        )
        for attempt in range(MAX_ATTEMPTS)
    ]


def publish_table(
    catalog: SqlCatalog,
    *,
    namespace: str,
    table: str,
    staged: Staged,
    properties: Mapping[str, str],
    make_stamp: MakeStamp,
    sort_order: tuple[str, ...] | None = None,
) -> Head:
    """Make the staged table the target's own, with exactly these properties and a stamp.

    ``properties`` are all that sqb wants set; what sqb had set before and is not among them goes,
    what others set stays. ``sort_order`` is in the words of ``TableFacts.sort_order``; None
    leaves it. ``make_stamp`` gets the facts of the very metadata that is published.
    """
    alias = catalog.head(staged.namespace, staged.name)
    if alias is None:
        raise alias_lost(staged)
    if staged.base is None:
        catalog.ensure_namespace(namespace)
    reached("publish:4")
    ours = read_document(alias.location, warehouse=catalog.warehouse)
    base = None
    if staged.base is not None and staged.base.kind == "table":
        base = read_document(staged.base.location, warehouse=catalog.warehouse)
    # The winner's head, when the target moved without its data.
    expected, merged, merged_from = staged.base, ours, alias
    for file in published_files(alias, staged.run_id, namespace, table):
        document = log_previous(merged, merged_from.location, _now_ms())
        document = dated(document, base, document["last-updated-ms"])
        if sort_order is not None:
            document = with_sort_order(document, sort_order, f"{namespace}.{table}")
        head = Head(namespace, table, "table", file)
        document = _stamped(document, properties, make_stamp, head)
        try:
            write_new(file, msgspec.json.encode(document))
        except FileExistsError:
            continue  # An earlier try of this run; its clean-up takes the file.
        reached("publish:5a")
        try:
            _swap(catalog, head, expected, alias)
        except CommitConflict as conflict:
            remove(file)
            if isinstance(conflict.change, Drop):
                raise alias_lost(staged) from conflict
            winner = catalog.head(namespace, table)
            theirs = _moved_without_data(catalog, base, winner)
            if base is None or theirs is None or winner is None:
                raise Overtaken(winner) from conflict
            expected, merged_from = winner, winner
            merged = reapply(base, theirs, log_previous(ours, alias.location, _now_ms()))
            continue
        reached("publish:5b")
        reached("publish:6")
        return head
    raise Overtaken(catalog.head(namespace, table))


def publish_properties(
    catalog: SqlCatalog,
    *,
    namespace: str,
    table: str,
    base: Head,
    run_id: str,
    properties: Mapping[str, str],
    make_stamp: MakeStamp,
    sort_order: tuple[str, ...] | None = None,
) -> Head:
    """Give a table other properties or another stamp, its rows untouched: no Spark, no data.

    The alias that the run may have had for this table must have been discarded before.
    """
    alias = Head(stage_schema(namespace), alias_name(table, run_id), "table", base.location)
    catalog.ensure_namespace(alias.namespace)
    catalog.commit([Point(alias.namespace, alias.name, "table", base.location, expected=None)])
    reached("publish:2")
    staged = Staged(base, alias, alias.namespace, alias.name, run_id)
    try:
        return publish_table(
            catalog,
            namespace=namespace,
            table=table,
            staged=staged,
            properties=properties,
            make_stamp=make_stamp,
            sort_order=sort_order,
        )
    except (Overtaken, SqbError):
        if catalog.head(alias.namespace, alias.name) == alias:
            catalog.commit([Drop(alias.namespace, alias.name, alias)])
        raise


def publish_view(
    catalog: SqlCatalog,
    *,
    namespace: str,
    name: str,
    base: Head | None,
    run_id: str,
    sql: str,
    schema: Mapping[str, Any],
    properties: Mapping[str, str],
    make_stamp: MakeStamp,
) -> Head:
    """Make or replace a view; a table of that name gives way to it in the same update.

    A row in the stage schema names the file while it is written and not yet published, so that
    clean-up after a crash finds it.
    """
    if base is None:
        catalog.ensure_namespace(namespace)
    stage_namespace, stage_name = stage_schema(namespace), alias_name(name, run_id)
    catalog.ensure_namespace(stage_namespace)
    reached("publish:4")
    fresh, expected = str(uuid.uuid4()), base
    for attempt in range(MAX_ATTEMPTS):
        previous = None
        folder = f"{catalog.default_location(namespace, name)}/metadata"
        version = 0
        if expected is not None and expected.kind == "view":
            previous = read_document(expected.location, warehouse=catalog.warehouse)
            folder, version = folder_and_version(expected.location)
            version += 1
        file = published_file(
            folder, version, run_id=run_id, namespace=namespace, name=name, attempt=attempt
        )
        document = view_metadata(
            uuid=fresh,
            location=catalog.default_location(namespace, name),
            sql=sql,
            schema=schema,
            catalog_name=catalog.name,
            namespace=namespace,
            properties=previous["properties"] if previous else {},
            previous=previous,
            now_ms=_now_ms(),
        )
        head = Head(namespace, name, "view", file)
        document = _stamped(document, properties, make_stamp, head)
        alias = Head(stage_namespace, stage_name, "view", file)
        catalog.commit([Point(stage_namespace, stage_name, "view", file, expected=None)])
        try:
            write_view(document, file)
        except FileExistsError:  # An earlier try of this run.
            catalog.commit([Drop(stage_namespace, stage_name, alias)])
            continue
        reached("publish:5a")
        try:
            _swap(catalog, head, expected, alias)
        except CommitConflict as conflict:
            remove(file)
            if isinstance(conflict.change, Drop):
                raise alias_lost(Staged(base, alias, stage_namespace, stage_name, run_id)) from None
            catalog.commit([Drop(stage_namespace, stage_name, alias)])
            winner = catalog.head(namespace, name)
            if winner is None or previous is None or not _same_view(catalog, previous, winner):
                raise Overtaken(winner) from conflict
            expected = winner
            continue
        reached("publish:5b")
        reached("publish:6")
        return head
    raise Overtaken(catalog.head(namespace, name))


def _swap(catalog: SqlCatalog, head: Head, expected: Head | None, alias: Head) -> None:
    catalog.commit(
        [
            Point(head.namespace, head.name, head.kind, head.location, expected=expected),
            Drop(alias.namespace, alias.name, alias),
        ]
    )


def _stamped(
    document: dict[str, Any], wanted: Mapping[str, str], make_stamp: MakeStamp, head: Head
) -> dict[str, Any]:
    refuse_deleting(dict(wanted), head)
    existing = document.get("properties", {})
    if "current-schema-id" in document:
        document = described_table(document, existing.get(DESCRIBED), wanted.get(DESCRIBED))
    merged = merged_properties(existing, {k: v for k, v in wanted.items() if k != STAMP})
    document = {**document, "properties": merged}
    facts = parse_facts(msgspec.json.encode(document), head.location)
    return {**document, "properties": {**merged, STAMP: make_stamp(facts)}}


def _moved_without_data(
    catalog: SqlCatalog, base: dict[str, Any] | None, winner: Head | None
) -> dict[str, Any] | None:
    """The winner's document, if it is still the base's data."""
    if base is None or winner is None or winner.kind != "table":
        return None
    theirs = read_document(winner.location, warehouse=catalog.warehouse)
    return theirs if same_data(base, theirs) else None


def _same_view(catalog: SqlCatalog, previous: dict[str, Any], winner: Head) -> bool:
    if winner.kind != "view":
        return False
    theirs = read_document(winner.location, warehouse=catalog.warehouse)
    same = ("view-uuid", "current-version-id", "location")
    return all(theirs.get(key) == previous.get(key) for key in same)


def folder_and_version(location: str) -> tuple[str, int]:
    """The folder of a metadata file, and the number that its name starts with."""
    folder, _, file = location.rpartition("/")
    number = file.partition("-")[0]
    # Hadoop's own names (v3.metadata.json) and foreign ones start again at zero.
    return folder, int(number) if number.isdecimal() else 0


def alias_lost(staged: Staged) -> SqbError:
    """What is said when staged work is not there any more."""
    return SqbError(
        "X004",
        f"the staged table {staged.namespace}.{staged.name} is gone: it was not created, or its "
        "lease ran out and another build cleaned it up",
        help="build the model again",
        exit_code=1,
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
