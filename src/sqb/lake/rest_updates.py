"""The difference between two metadata documents, as the updates and requirements of a REST commit.

Pure: documents in, JSON values out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqb.lake.views import content

Document = Mapping[str, Any]
Update = dict[str, Any]

_LAST_ADDED = -1


def requirements(base: Document) -> list[Update]:
    """What must still hold for staged work to be published on a table: it is ``base``'s data."""
    return [
        {"type": "assert-table-uuid", "uuid": base["table-uuid"]},
        {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": main_of(base)},
        {"type": "assert-current-schema-id", "current-schema-id": base["current-schema-id"]},
        {"type": "assert-default-spec-id", "default-spec-id": base["default-spec-id"]},
    ]


def table_updates(base: Document, after: Document) -> list[Update]:
    """What makes ``base`` into ``after``, properties and foreign refs aside.

    ``after`` was made from ``base``: it has the same uuid, and everything in ``base`` that it
    does not have is meant to stay.
    """
    updates: list[Update] = []
    if after["format-version"] != base["format-version"]:
        updates.append(
            {"action": "upgrade-format-version", "format-version": after["format-version"]}
        )
    updates += _list_updates(
        base, after, "schemas", "schema-id", "current-schema-id", "schema", "current-schema"
    )
    updates += _list_updates(
        base, after, "partition-specs", "spec-id", "default-spec-id", "spec", "default-spec"
    )
    updates += _list_updates(
        base,
        after,
        "sort-orders",
        "order-id",
        "default-sort-order-id",
        "sort-order",
        "default-sort-order",
    )
    known = {s["snapshot-id"] for s in base.get("snapshots") or []}
    fresh = [s for s in after.get("snapshots") or [] if s["snapshot-id"] not in known]
    fresh.sort(key=lambda s: s.get("sequence-number", 0))
    updates += [{"action": "add-snapshot", "snapshot": snapshot} for snapshot in fresh]
    if main_of(after) != main_of(base):
        updates.append(point_main(main_of(after)))
    return updates


def point_main(snapshot_id: int | None) -> Update:
    """Make a snapshot the current one; none empties the table."""
    if snapshot_id is None:
        return {"action": "remove-snapshot-ref", "ref-name": "main"}
    return {
        "action": "set-snapshot-ref",
        "ref-name": "main",
        "type": "branch",
        "snapshot-id": snapshot_id,
    }


def property_updates(now: Mapping[str, str], wanted: Mapping[str, str]) -> list[Update]:
    """What makes properties ``now`` into ``wanted``."""
    set_ = {key: value for key, value in wanted.items() if now.get(key) != value}
    gone = sorted(key for key in now if key not in wanted)
    updates: list[Update] = []
    if set_:
        updates.append({"action": "set-properties", "updates": set_})
    if gone:
        updates.append({"action": "remove-properties", "removals": gone})
    return updates


def view_updates(base: Document, after: Document) -> list[Update]:
    """What makes the view ``base`` into ``after``, properties aside: its SQL and columns."""
    current = _by_id(after["versions"], "version-id")[after["current-version-id"]]
    if current["version-id"] in _by_id(base["versions"], "version-id"):
        return []
    # A server takes no version twice: going back to an earlier one is pointing at it.
    old = next((v for v in base["versions"] if content(v) == content(current)), None)
    if old is not None:
        return [{"action": "set-current-view-version", "view-version-id": old["version-id"]}]
    updates: list[Update] = []
    if current["schema-id"] not in _by_id(base["schemas"], "schema-id"):
        schema = _by_id(after["schemas"], "schema-id")[current["schema-id"]]
        updates.append({"action": "add-schema", "schema": schema})
        current = {**current, "schema-id": _LAST_ADDED}
    return [
        *updates,
        {"action": "add-view-version", "view-version": current},
        {"action": "set-current-view-version", "view-version-id": _LAST_ADDED},
    ]


def main_of(document: Document) -> int | None:
    """The current snapshot's id."""
    ref = (document.get("refs") or {}).get("main")
    found = ref["snapshot-id"] if ref else document.get("current-snapshot-id")
    return None if found in {None, -1} else int(found)


def on_branch(document: Document, branch: str) -> dict[str, Any]:
    """The document as it would be if ``main`` were the branch, and the branch were gone."""
    refs = dict(document.get("refs") or {})
    ref = refs.pop(branch)
    refs["main"] = {"type": "branch", "snapshot-id": ref["snapshot-id"]}
    return {**document, "refs": refs, "current-snapshot-id": ref["snapshot-id"]}


def only_on(document: Document, branch: str) -> set[int]:
    """The snapshots that a branch has and no other ref."""
    refs = document.get("refs") or {}
    parents = {
        s["snapshot-id"]: s.get("parent-snapshot-id") for s in document.get("snapshots") or []
    }

    def line(tip: int | None) -> set[int]:
        found: set[int] = set()
        while tip is not None and tip in parents and tip not in found:
            found.add(tip)
            tip = parents[tip]
        return found

    others = [line(ref["snapshot-id"]) for name, ref in refs.items() if name != branch]
    past = {entry["snapshot-id"] for entry in document.get("snapshot-log") or []}
    return line(refs[branch]["snapshot-id"]).difference(past, *others)


def _list_updates(
    base: Document, after: Document, items: str, key: str, current: str, word: str, setting: str
) -> list[Update]:
    known = _by_id(base.get(items) or [], key)
    fresh = [item for item in after.get(items) or [] if item[key] not in known]
    updates: list[Update] = [{"action": f"add-{word}", word: item} for item in fresh]
    chosen = after.get(current)
    if chosen != base.get(current):
        # The server numbers what it is given; "the last one" is right whatever it chose.
        last = bool(fresh) and fresh[-1][key] == chosen
        value = _LAST_ADDED if last else chosen
        updates.append({"action": f"set-{setting}", f"{word}-id": value})
    return updates


def _by_id(items: list[dict[str, Any]], key: str) -> dict[int, dict[str, Any]]:
    return {item[key]: item for item in items}
