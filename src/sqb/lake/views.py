"""Iceberg view metadata, written without a JVM.

This makes the file; the catalog's ``commit`` makes it a view. The SQL must name its columns and
qualify its tables in full: Iceberg views bind ``*`` by position.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from sqb.lake.io import write_new
from sqb.version import __version__

#: Iceberg's default for ``version.history.num-entries``.
MAX_VERSIONS = 10

_STAMPED = {"version-id", "timestamp-ms"}


def view_metadata(
    *,
    uuid: str,
    location: str,
    sql: str,
    schema: Mapping[str, Any],
    catalog_name: str,
    namespace: str,
    properties: Mapping[str, str],
    previous: Mapping[str, Any] | None,
    now_ms: int,
) -> dict[str, Any]:
    """The metadata of a new view, or of the successor of ``previous`` (its document).

    A successor keeps uuid, location and history of what it replaces; one with equal SQL and
    columns only changes the properties and makes no new version.
    """
    schemas: list[dict[str, Any]] = list(previous["schemas"]) if previous else []
    versions: list[dict[str, Any]] = list(previous["versions"]) if previous else []
    log: list[dict[str, Any]] = list(previous["version-log"]) if previous else []
    fields = list(schema["fields"])
    schema_id = next((s["schema-id"] for s in schemas if s["fields"] == fields), None)
    if schema_id is None:
        schema_id = max((s["schema-id"] for s in schemas), default=-1) + 1
        schemas.append({"type": "struct", "schema-id": schema_id, "fields": fields})
    version = {
        "version-id": max((v["version-id"] for v in versions), default=0) + 1,
        "timestamp-ms": now_ms,
        "schema-id": schema_id,
        "summary": {"engine-name": "sqb", "engine-version": __version__},
        "default-catalog": catalog_name,
        "default-namespace": [namespace],
        "representations": [{"type": "sql", "sql": sql, "dialect": "spark"}],
    }
    current_id = previous["current-version-id"] if previous else None
    current = next((v for v in versions if v["version-id"] == current_id), None)
    if current is None or content(current) != content(version):
        versions.append(version)
        log.append({"version-id": version["version-id"], "timestamp-ms": now_ms})
        current = version
    kept = [*[v for v in versions if v is not current][-(MAX_VERSIONS - 1) :], current]
    kept_ids = {v["version-id"] for v in kept}
    used = {v["schema-id"] for v in kept}
    return {
        "view-uuid": previous["view-uuid"] if previous else uuid,
        "format-version": 1,
        "location": previous["location"] if previous else location,
        "schemas": [s for s in schemas if s["schema-id"] in used],
        "current-version-id": current["version-id"],
        "versions": kept,
        "version-log": [entry for entry in log if entry["version-id"] in kept_ids],
        "properties": dict(properties),
    }


def write_view(metadata: Mapping[str, Any], file: str) -> None:
    """Write a view's metadata to a new file, durably."""
    write_new(file, msgspec.json.encode(metadata))


def content(version: Mapping[str, Any]) -> dict[str, Any]:
    """A version without its number and its time."""
    return {k: v for k, v in version.items() if k not in _STAMPED}
