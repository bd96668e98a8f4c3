"""Publishing on a REST catalog: one commit on the target, checked by the server.

The commit carries what staged work changed and requires that the target's data is still the one
it started from. What others changed beside the data meanwhile is not touched by it, so nothing
needs to be applied anew; when the data moved, ``Overtaken`` is raised as on a SQL catalog.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.lake.catalog import Head
from sqb.lake.describe import DESCRIBED, described_table
from sqb.lake.failpoints import reached
from sqb.lake.lake import MakeStamp
from sqb.lake.metadata import STAMP, parse_facts
from sqb.lake.publish import MAX_ATTEMPTS, Overtaken, alias_lost
from sqb.lake.reapply import merged_properties, same_data, same_main, with_sort_order
from sqb.lake.rest_client import UnknownOutcome
from sqb.lake.rest_updates import (
    main_of,
    on_branch,
    property_updates,
    requirements,
    table_updates,
    view_updates,
)
from sqb.lake.staging import Staged, refuse_deleting
from sqb.lake.views import view_metadata
from sqb.lake.writers import writer_of

if TYPE_CHECKING:
    from sqb.lake.rest_lake import Loaded, RestLake

Document = dict[str, Any]

_STAMP_TRIES, _STAMP_PAUSE_S = 20, 0.25


def first_table(
    lake: RestLake,
    namespace: str,
    table: str,
    staged: Staged,
    properties: Mapping[str, str],
    make_stamp: MakeStamp,
    sort_order: tuple[str, ...] | None,
) -> Head:
    """Stamp the staged table, then give it the target's name; a view of that name goes first."""
    found = lake.load(staged.namespace, staged.name, "table")
    if found is None:
        raise alias_lost(staged)
    reached("publish:4")
    after = _sorted(found.document, sort_order, f"{namespace}.{table}")
    after = _described(after, found.document, properties)
    head = Head(namespace, table, "table", found.head.location)
    updates, _ = _stamping(after, found.document, properties, make_stamp, head)
    updates = table_updates(found.document, after) + updates
    answer = lake.commit(found.head, requirements(found.document), updates)
    lake.client.expect(answer, f"stamp {staged.name}")
    reached("publish:5a")
    current = lake.head(namespace, table)
    if current != staged.base:
        raise Overtaken(current)
    if current is not None:
        lake.drop(namespace, table, "view")
    place = {"namespace": namespace.split("."), "name": table}
    origin = {"namespace": staged.namespace.split("."), "name": staged.name}
    lake.ensure_namespace(namespace)
    try:
        answer = lake.client.post("tables/rename", {"source": origin, "destination": place})
    except UnknownOutcome:
        renamed = lake.load(namespace, table, "table")
        if renamed is None or renamed.document["table-uuid"] != found.document["table-uuid"]:
            raise
        return renamed.head
    if answer.status == 409:
        raise Overtaken(lake.head(namespace, table))
    lake.client.expect(answer, f"rename {staged.name} to {table}")
    reached("publish:5b")
    published = lake.head(namespace, table)
    if published is None:
        raise Overtaken(None)
    return published


def next_table(
    lake: RestLake,
    namespace: str,
    table: str,
    staged: Staged,
    properties: Mapping[str, str],
    make_stamp: MakeStamp,
    sort_order: tuple[str, ...] | None,
) -> Head:
    """Commit what an alias, a branch or a replacement in place holds, and the stamp, to a table."""
    if staged.base is None:
        raise AssertionError("a first build has no table to commit to")
    base = lake.document(staged.base)
    work = lake.load(staged.namespace, staged.name, "table")
    if work is None:
        raise alias_lost(staged)
    reached("publish:4")
    head = Head(namespace, table, "table", staged.base.location)
    for _ in range(MAX_ATTEMPTS):
        now = lake.load(namespace, table, "table")
        if now is None:
            raise Overtaken(None)
        after = _after(base, now, work, staged)
        if after is None:
            raise Overtaken(now.head)
        # An alias is told in full, the other ways have written to the target already.
        started = base if after is work.document else now.document
        after = _sorted(after, sort_order, f"{namespace}.{table}")
        after = _described(after, now.document, properties)
        stamping, stamp = _stamping(after, now.document, properties, make_stamp, head)
        updates = table_updates(started, after) + stamping
        required = requirements(now.document if staged.in_place else base)
        if staged.branch is not None:
            required.append(_branch_stays(now.document, staged.branch))
            updates.append({"action": "remove-snapshot-ref", "ref-name": staged.branch})
        reached("publish:5a")
        try:
            answer = lake.commit(now.head, required, updates)
        except UnknownOutcome:
            there = lake.load(namespace, table, "table")
            if there is None or there.document["properties"].get(STAMP) != stamp:
                lake.in_doubt.add((staged.namespace, staged.name))
                raise
            return there.head
        if answer.status == 409:
            continue
        if answer.status == 404:
            raise Overtaken(None)
        body = lake.client.expect(answer, f"publish {namespace}.{table}")
        reached("publish:5b")
        return lake.remember(namespace, table, "table", body).head
    raise Overtaken(lake.head(namespace, table))


def view(
    lake: RestLake,
    namespace: str,
    name: str,
    base: Head | None,
    sql: str,
    schema: Mapping[str, Any],
    properties: Mapping[str, str],
    make_stamp: MakeStamp,
) -> Head:
    """Make or replace a view.

    A new one is stamped by a second commit: its uuid, which the stamp must name, is the server's
    choice. The server compares nothing but the uuid when a view is replaced, so of two builds at
    the very same moment the later one stays, whole.
    """
    if base is None:
        lake.ensure_namespace(namespace)
    reached("publish:4")
    reached("publish:5a")
    current = lake.load(namespace, name)
    if not _same(lake, base, current):
        raise Overtaken(current.head if current is not None else None)
    if current is not None and current.head.kind == "table":
        lake.drop(namespace, name, "table")
        current = None
    document = view_metadata(
        uuid="",
        location="",
        sql=sql,
        schema=schema,
        catalog_name=lake.name,
        namespace=namespace,
        properties={},
        previous=current.document if current is not None else None,
        now_ms=time.time_ns() // 1_000_000,
    )
    if current is None:
        version = document["versions"][0]
        body = {
            "name": name,
            "schema": document["schemas"][0],
            "view-version": {**version, "schema-id": 0},
            "properties": {},
        }
        answer = lake.client.post(lake.url(namespace, "views"), body)
        if answer.status == 409:
            raise Overtaken(_stamped_by_winner(lake, namespace, name))
        created = lake.client.expect(answer, f"create the view {namespace}.{name}")
        current = lake.remember(namespace, name, "view", created)
        changes: list[dict[str, Any]] = []
        document = current.document
    else:
        changes = view_updates(current.document, document)
    after = {**document, "view-uuid": current.document["view-uuid"]}
    after["location"] = current.document["location"]
    stamping, _ = _stamping(after, current.document, properties, make_stamp, current.head)
    uuid = {"type": "assert-view-uuid", "uuid": current.document["view-uuid"]}
    answer = lake.commit(current.head, [uuid], changes + stamping)
    if answer.refused:
        # Also when the server just says that the request makes no sense any more.
        now = lake.load(namespace, name)
        if not _same(lake, current.head, now):
            raise Overtaken(now.head if now is not None else None)
    body = lake.client.expect(answer, f"publish the view {namespace}.{name}")
    reached("publish:5b")
    head = lake.remember(namespace, name, "view", body).head
    reached("publish:6")
    return head


def _stamped_by_winner(lake: RestLake, namespace: str, name: str) -> Head | None:
    """What someone else made at this moment, after the little while that their stamp may take."""
    for _ in range(_STAMP_TRIES):
        found = lake.load(namespace, name)
        if found is None or STAMP in (found.document.get("properties") or {}):
            break
        time.sleep(_STAMP_PAUSE_S)
    return found.head if found is not None else None


def _after(base: Document, now: Loaded, work: Loaded, staged: Staged) -> Document | None:
    """What the target shall be; None if its data is not what the work started from."""
    if staged.in_place:
        # The rows are there already; they are ours if the snapshot says so.
        main = main_of(now.document)
        snapshots = now.document.get("snapshots") or []
        is_ours = any(s["snapshot-id"] == main and writer_of(s) == staged.run_id for s in snapshots)
        return now.document if is_ours else None
    if staged.branch is not None:
        if staged.branch not in now.document.get("refs", {}):
            return None
        return on_branch(now.document, staged.branch) if same_main(base, now.document) else None
    if staged.alias == staged.base:
        # No snapshot is added, so those that others have on branches are in no one's way.
        return now.document if same_main(base, now.document) else None
    return work.document if same_data(base, now.document) else None


def _same(lake: RestLake, base: Head | None, current: Loaded | None) -> bool:
    """Is a name still what the build found, properties aside?"""
    if base is None or current is None:
        return base is None and current is None
    if base == current.head:
        return True
    if base.kind != current.head.kind:
        return False
    before, now = lake.document(base), current.document
    if base.kind == "table":
        return same_data(before, now)
    return all(before.get(key) == now.get(key) for key in ("view-uuid", "current-version-id"))


def _stamping(
    after: Document,
    now: Document,
    wanted: Mapping[str, str],
    make_stamp: MakeStamp,
    head: Head,
) -> tuple[list[dict[str, Any]], str]:
    """The updates of the properties, and the stamp among them."""
    refuse_deleting(dict(wanted), head)
    existing = now.get("properties") or {}
    merged = merged_properties(existing, {k: v for k, v in wanted.items() if k != STAMP})
    document = {**after, "properties": merged}
    stamp = make_stamp(parse_facts(msgspec.json.encode(document), head.location))
    return property_updates(existing, {**merged, STAMP: stamp}), stamp


def _described(document: Document, before: Document, wanted: Mapping[str, str]) -> Document:
    existing = before.get("properties", {})
    return described_table(document, existing.get(DESCRIBED), wanted.get(DESCRIBED))


def _sorted(document: Document, order: tuple[str, ...] | None, table: str) -> Document:
    return document if order is None else with_sort_order(document, order, table)


def _branch_stays(document: Document, branch: str) -> dict[str, Any]:
    snapshot = document["refs"][branch]["snapshot-id"]
    return {"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": snapshot}
