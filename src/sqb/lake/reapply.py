"""Pure edits of a table's metadata document: properties, sort order, log, and the three-way merge.

Used by ``publish``; nothing here reads or writes a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from sqb.errors import SqbError
from sqb.lake.metadata import MANAGED, names_by_id

Document = dict[str, Any]

#: What must be equal for a target to be still the base, as far as its data goes.
_SAME = ("table-uuid", "format-version", "location", "current-schema-id", "default-spec-id")

_PREVIOUS_MAX = "write.metadata.previous-versions-max"
_SORT = re.compile(
    r"(?P<term>.+?)(?:\s+(?P<direction>ASC|DESC))?(?:\s+NULLS\s+(?P<nulls>FIRST|LAST))?\s*",
    re.IGNORECASE,
)
_CALL = re.compile(r"(?P<name>\w+)\((?:(?P<width>\d+)\s*,\s*)?(?P<source>.+)\)")
_PERIODS = {"years": "year", "months": "month", "days": "day", "hours": "hour"}


def merged_properties(existing: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The properties to publish: the wanted ones, and what others had set.

    sqb lists what it set in ``sqb.managed-properties``, so it can tell its own, which go when no
    longer wanted, from foreign ones, which stay. ``format-version`` is a field of the metadata,
    not a stored property.
    """
    wanted = {k: v for k, v in wanted.items() if k != "format-version"}
    ours = set(_managed(existing))
    foreign = {k: v for k, v in existing.items() if k not in ours and not k.startswith("sqb.")}
    listed = sorted(k for k in wanted if not k.startswith("sqb."))
    return {**foreign, **wanted, MANAGED: msgspec.json.encode(listed).decode()}


def _managed(properties: Mapping[str, str]) -> list[str]:
    try:
        return msgspec.json.decode(properties.get(MANAGED, "[]"), type=list[str])
    except msgspec.DecodeError:
        return []


def log_previous(document: Document, location: str, now_ms: int) -> Document:
    """The successor of a document: its file is in the log, the clock never runs back."""
    limit = document.get("properties", {}).get(_PREVIOUS_MAX, "100")
    keep = max(int(limit), 1) if limit.isdecimal() else 100
    updated = document["last-updated-ms"]
    entry = {"timestamp-ms": updated, "metadata-file": location}
    log = [e for e in document.get("metadata-log", []) if e["metadata-file"] != location]
    return {
        **document,
        "metadata-log": [*log, entry][-keep:],
        "last-updated-ms": max(now_ms, updated),
    }


def dated(document: Document, base: Document | None, now_ms: int) -> Document:
    """The document with the target's own history: what was staged became current just now.

    Spark forgets the history of a table that it replaces, and dates a snapshot by when it was
    written. How long ago a snapshot stopped being read is told from this log.
    """
    current = _main(document)
    known = (base or {}).get("snapshot-log") or []
    if current is not None and (base is None or current != _main(base)):
        known = [*known, {"snapshot-id": current, "timestamp-ms": now_ms}]
    return {**document, "snapshot-log": history(known, _ids(document))}


def same_main(base: Document, theirs: Document) -> bool:
    """Whether a table's readers see what they saw, properties aside."""
    return all(base.get(key) == theirs.get(key) for key in _SAME) and _main(base) == _main(theirs)


def same_data(base: Document, theirs: Document) -> bool:
    """Whether a table changed at most in tags, properties, statistics or expired snapshots."""
    # A new snapshot, on a branch, took a sequence number that the staged one has taken as well.
    return same_main(base, theirs) and _ids(theirs) <= _ids(base)


def reapply(base: Document, theirs: Document, ours: Document) -> Document:
    """``ours`` with what ``theirs`` changed since ``base``, data aside.

    Both were made from ``base``; ``same_data(base, theirs)`` holds.
    """
    merged = dict(ours)
    expired = _ids(base) - _ids(theirs)
    snapshots = [s for s in ours.get("snapshots") or [] if s["snapshot-id"] not in expired]
    kept = {s["snapshot-id"] for s in snapshots}
    merged["snapshots"] = snapshots
    merged["snapshot-log"] = history(ours.get("snapshot-log") or [], kept)
    refs = _three_way(_refs(base), _refs(theirs), _refs(ours))
    merged["refs"] = {name: ref for name, ref in refs.items() if ref["snapshot-id"] in kept}
    if "main" in ours.get("refs", {}):
        merged["refs"]["main"] = ours["refs"]["main"]
    merged["properties"] = _three_way(
        base.get("properties", {}), theirs.get("properties", {}), ours.get("properties", {})
    )
    for key in ("statistics", "partition-statistics"):
        by_snapshot = _three_way(*(_by_snapshot(d.get(key)) for d in (base, theirs, ours)))
        merged[key] = [v for k, v in by_snapshot.items() if k in kept]
    if ours.get("sort-orders") == base.get("sort-orders"):
        for key in ("sort-orders", "default-sort-order-id"):
            if key in theirs:
                merged[key] = theirs[key]
    for key in ("last-column-id", "last-partition-id", "last-sequence-number", "last-updated-ms"):
        if key in ours or key in theirs:
            merged[key] = max(d.get(key, 0) for d in (ours, theirs))
    files = {e["metadata-file"]: e for d in (theirs, ours) for e in d.get("metadata-log") or []}
    merged["metadata-log"] = sorted(files.values(), key=lambda e: e["timestamp-ms"])
    return merged


def with_sort_order(document: Document, terms: tuple[str, ...], table: str) -> Document:
    """The document with this default sort order, added if it is new; no terms is unsorted."""
    schema = next(s for s in document["schemas"] if s["schema-id"] == document["current-schema-id"])
    ids = {name.lower(): id_ for id_, name in names_by_id(schema["fields"]).items()}
    fields = [_sort_field(term, ids, table) for term in terms]
    orders = list(document.get("sort-orders") or [])
    found = next((o["order-id"] for o in orders if o["fields"] == fields), None)
    if found is None:
        # Order 0 is the unsorted one, by the specification.
        found = max((o["order-id"] for o in orders), default=0) + 1 if fields else 0
        orders.append({"order-id": found, "fields": fields})
    return {**document, "sort-orders": orders, "default-sort-order-id": found}


def _sort_field(text: str, ids: Mapping[str, int], table: str) -> dict[str, Any]:
    parts = _SORT.fullmatch(text.strip())
    call = _CALL.fullmatch(parts["term"]) if parts else None
    source = (call["source"] if call else parts["term"] if parts else text).strip(" `")
    if parts is None or source.lower() not in ids:
        raise SqbError(
            "P003",
            f"{table} can't be sorted by `{text}`: it has no column `{source}`",
            help="a sort term is a column or a partition transform, then ASC or DESC, then NULLS "
            "FIRST or NULLS LAST",
            exit_code=1,
        )
    direction = (parts["direction"] or "ASC").lower()
    nulls = (parts["nulls"] or ("FIRST" if direction == "asc" else "LAST")).lower()
    transform = "identity"
    if call:
        transform = _PERIODS.get(call["name"].lower(), call["name"].lower())
        transform += f"[{call['width']}]" if call["width"] else ""
    return {
        "transform": transform,
        "source-id": ids[source.lower()],
        "direction": direction,
        "null-order": f"nulls-{nulls}",
    }


def _three_way(
    base: Mapping[Any, Any], theirs: Mapping[Any, Any], ours: Mapping[Any, Any]
) -> dict[Any, Any]:
    """Ours, with each key that theirs changed since base as theirs has it."""
    merged = dict(ours)
    for key in {*base, *theirs}:
        if base.get(key) == theirs.get(key):
            continue
        if key in theirs:
            merged[key] = theirs[key]
        else:
            merged.pop(key, None)
    return merged


def _main(document: Document) -> int | None:
    ref = document.get("refs", {}).get("main")
    found = ref["snapshot-id"] if ref else document.get("current-snapshot-id")
    return None if found in {None, -1} else int(found)


def _ids(document: Document) -> set[int]:
    return {s["snapshot-id"] for s in document.get("snapshots") or []}


def _refs(document: Document) -> dict[str, Any]:
    return {k: v for k, v in document.get("refs", {}).items() if k != "main"}


def _by_snapshot(entries: list[dict[str, Any]] | None) -> dict[int, dict[str, Any]]:
    return {entry["snapshot-id"]: entry for entry in entries or []}


def history(log: list[dict[str, Any]], kept: set[int]) -> list[dict[str, Any]]:
    """The log after its last lost snapshot: a gap in it would tell a false history."""
    for place in range(len(log) - 1, -1, -1):
        if log[place]["snapshot-id"] not in kept:
            return log[place + 1 :]
    return log
