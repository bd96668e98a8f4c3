"""State tables that stay small: many small files become one, and the janitor trims old rows.

A state table gets one file per build. It is rewritten under an alias and swapped by one commit,
like a model's table: rows that another build appends meanwhile make the swap miss, and nothing
happens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.lake.catalog import CommitConflict, Drop, Head, Point, SqlCatalog
from sqb.lake.cleanup import discard
from sqb.lake.facts import FactsCache
from sqb.lake.staging import Lease, stage, stage_schema
from sqb.lake.stores import answering
from sqb.state.store import StateStore
from sqb.state.tables import DBT, FINGERPRINTS, FRESHNESS

if TYPE_CHECKING:
    import pyarrow as pa

#: Snapshots of a state table that stay beyond those that readers may still use.
KEEP = 5
#: Files from which on a state table is packed, and bytes that earn it one more: a large one is
#: rewritten less often.
_FILES = 50
_BYTES_PER_FILE = 4 << 20

#: What tells the rows of one thing from those of another, and what makes one the latest.
_IDENTITY: dict[str, tuple[tuple[str, ...], str]] = {
    FINGERPRINTS: (("node_type", "node_name"), "ts"),
    FRESHNESS: (("source_name",), "observed_at"),
}


class Packed(msgspec.Struct, frozen=True):
    """A rewritten state table: its new head, and how many rows were trimmed."""

    head: Head
    trimmed: int


def is_scattered(document: Mapping[str, Any]) -> bool:
    """Has a state table so many files that packing them pays off?"""
    files, size = _totals(document)
    return files > _FILES + size // _BYTES_PER_FILE


def _totals(document: Mapping[str, Any]) -> tuple[int, int]:
    current = document.get("current-snapshot-id")
    for snapshot in document.get("snapshots") or []:
        if snapshot["snapshot-id"] == current:
            summary = snapshot.get("summary") or {}
            return int(summary.get("total-data-files", 0)), int(summary.get("total-files-size", 0))
    return 0, 0


@answering("the state tables")
def pack(
    catalog: SqlCatalog,
    store: StateStore,
    facts: FactsCache,
    head: Head,
    run_id: str,
    *,
    older_than_us: int | None = None,
) -> Packed | None:
    """Rewrite a state table into few files; None if a build appended meanwhile.

    ``older_than_us`` trims rows from before that moment, the latest of each node aside.
    """
    with Lease(catalog, [stage_schema(head.namespace)], run_id):
        staged = stage(catalog, head.namespace, head.name, run_id)
        try:
            if staged.base != head:
                return None
            table = store.open().load_table((staged.namespace, staged.name))
            rows = table.scan().to_arrow()
            chosen = rows if older_than_us is None else _trim(rows, head.name, older_than_us)
            with _quiet():
                table.overwrite(chosen)
            alias = catalog.head(staged.namespace, staged.name)
            if alias is None:
                return None
            point = Point(head.namespace, head.name, "table", alias.location, expected=head)
            try:
                catalog.commit([point, Drop(alias.namespace, alias.name, alias)])
            except CommitConflict:
                return None
            moved = Head(head.namespace, head.name, "table", alias.location)
            store.carry(head.location, moved.location)
            return Packed(moved, rows.num_rows - chosen.num_rows)
        finally:
            leftover = catalog.head(staged.namespace, staged.name)
            if leftover is not None:
                discard(catalog, leftover, facts=facts)


@answering("the state tables")
def old_rows(store: StateStore, head: Head, older_than_us: int) -> int:
    """How many rows of a state table trimming would take."""
    table = store.open().load_table((head.namespace, head.name))
    if head.name not in _IDENTITY:
        return 0
    identity, moment = _IDENTITY[head.name]
    rows = table.scan(selected_fields=(*identity, moment, "run_id")).to_arrow()
    return int(rows.num_rows - _trim(rows, head.name, older_than_us).num_rows)


def _trim(rows: pa.Table, name: str, older_than_us: int) -> pa.Table:
    """The rows since a moment, and the latest of each node or source whenever it was."""
    import pyarrow as pa

    if name not in _IDENTITY:
        return rows
    identity, moment = _IDENTITY[name]
    times = rows.column(moment).cast(pa.int64()).to_pylist()
    runs = rows.column("run_id").to_pylist()
    keys = list(zip(*(rows.column(c).to_pylist() for c in identity), strict=True))
    latest: dict[tuple[Any, ...], tuple[int, str]] = {}
    for key, at, run in zip(keys, times, runs, strict=True):
        latest[key] = max(latest.get(key, (-1, "")), (at or 0, run or ""))
    keep = [
        (at or 0) >= older_than_us or latest[key] == (at or 0, run or "")
        for key, at, run in zip(keys, times, runs, strict=True)
    ]
    return rows.filter(pa.array(keep, pa.bool_()))


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """pyiceberg warns when there is nothing to delete, as in an empty table."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@answering("the state tables")
def places(store: StateStore, head: Head) -> set[tuple[str, str]]:
    """Every place (schema, relation) that a state table's rows speak of; those of dbt are dbt's."""
    if head.name != FINGERPRINTS:
        return set()
    table = store.open().load_table((head.namespace, head.name))
    fields = ("node_type", "target_schema", "target_name")
    rows = table.scan(selected_fields=fields).to_arrow().to_pylist()
    return {
        (row["target_schema"], row["target_name"])
        for row in rows
        if row["node_type"] != DBT and row["target_schema"] and row["target_name"]
    }
