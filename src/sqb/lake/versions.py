"""The versions that a table's metadata file tells of: what each commit did, and its columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sqb.lake.metadata import Column, columns_of


class Snapshot(msgspec.Struct, frozen=True):
    """One commit as its summary tells it.

    ``adds_deletes``: it marks rows as deleted in files that stay. ``has_deletes``: such marks are
    there after it, whoever made them. Sizes are in bytes of data files. ``lineage``: its rows
    have ids that stay with them, and the sequence number of the commit that changed them last.
    ``manifests`` is where the list of its manifests is.
    """

    id: int
    parent: int | None
    operation: str
    adds_deletes: bool = False
    has_deletes: bool = False
    added_rows: int | None = None
    removed_rows: int | None = None
    added_bytes: int | None = None
    removed_bytes: int | None = None
    rows: int | None = None
    sequence: int | None = None
    lineage: bool = False
    columns: tuple[Column, ...] = ()
    manifests: str = ""


def versions(document: Mapping[str, Any]) -> dict[int, Snapshot]:
    """The snapshots in a metadata document, by id."""
    schemas = schemas_of(document)
    current = document.get("current-schema-id", 0)
    found = {}
    for item in document.get("snapshots") or ():
        columns = schemas.get(item.get("schema-id", current), ())
        found[item["snapshot-id"]] = _snapshot(item, columns)
    return found


def schemas_of(document: Mapping[str, Any]) -> dict[int, tuple[Column, ...]]:
    """The columns that a table has and had, by schema id."""
    found = {s.get("schema-id", 0): columns_of(s["fields"]) for s in document.get("schemas", ())}
    if not found and "schema" in document:
        found[document.get("current-schema-id", 0)] = columns_of(document["schema"]["fields"])
    return found


def _snapshot(item: Mapping[str, Any], columns: tuple[Column, ...]) -> Snapshot:
    summary = item.get("summary") or {}

    def count(key: str, missing: int | None = 0) -> int | None:
        """A counter that is left out is zero, where any other is told."""
        value = summary.get(key)
        if value is not None:
            return int(value)
        return missing if "total-records" in summary else None

    return Snapshot(
        id=item["snapshot-id"],
        parent=item.get("parent-snapshot-id"),
        operation=summary.get("operation", "overwrite"),
        adds_deletes=count("added-delete-files") != 0,
        has_deletes=count("total-delete-files") != 0 or count("added-delete-files") != 0,
        added_rows=count("added-records"),
        removed_rows=count("deleted-records"),
        added_bytes=count("added-files-size"),
        removed_bytes=count("removed-files-size"),
        rows=count("total-records", None),
        sequence=item.get("sequence-number"),
        lineage=item.get("first-row-id") is not None,
        columns=columns,
        manifests=item.get("manifest-list", ""),
    )
