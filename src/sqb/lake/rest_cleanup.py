"""Taking away what a build left behind a REST catalog: aliases, branches, dead leases.

Files are only ever deleted on local or mounted file systems; elsewhere they are left to the
server's own upkeep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqb.lake.cleanup import files_only_in
from sqb.lake.failpoints import reached
from sqb.lake.io import is_local, remove
from sqb.lake.rest_updates import only_on
from sqb.lake.staging import (
    LEASE,
    STAGE_SUFFIX,
    Staged,
    alias_name,
    lapsed,
    live_runs,
    split_alias,
    stage_schema,
)
from sqb.lake.writers import writer_of

if TYPE_CHECKING:
    from sqb.lake.rest_lake import Loaded, RestLake

#: Property of a stage schema that names a branch which a run works on.
BRANCH = "sqb.branch."
#: How long after its lease another host's run is still believed to live. Taking an alias away is
#: not one step with publishing here, so a run that was merely slow must not be surprised.
GRACE_S = 900.0


def discard(lake: RestLake, staged: Staged) -> None:
    """Take away what is left of staged work: names first, then files that only it reaches."""
    if staged.branch is not None:
        _discard_branch(lake, staged.namespace, staged.name, staged.branch)
        marker = BRANCH + alias_name(staged.name, staged.run_id)
        lake.remove_namespace_property(stage_schema(staged.namespace), marker)
    elif not staged.in_place:
        _discard_alias(lake, staged.namespace, staged.name)
    reached("publish:6")


def sweep(lake: RestLake, stage_schema: str, now: float) -> list[str]:
    """Discard all staged work without a live lease, and the dead leases; their names."""
    dropped: list[str] = []
    properties = lake.namespace_properties(stage_schema)
    if not properties and not lake.names([stage_schema]):
        return dropped
    for alias in lapsed(lake, stage_schema, now - GRACE_S):
        _discard_alias(lake, alias.namespace, alias.name)
        dropped.append(f"{alias.namespace}.{alias.name}")
    live = live_runs(lake, stage_schema, now - GRACE_S)
    for key, value in properties.items():
        if key.startswith(BRANCH):
            table, run_id = split_alias(key.removeprefix(BRANCH))
            if run_id in live:
                continue
            _discard_branch(lake, stage_schema.removesuffix(STAGE_SUFFIX), table, value)
            dropped.append(f"{stage_schema}.{key.removeprefix(BRANCH)}")
        elif not key.startswith(LEASE) or key.removeprefix(LEASE) in live:
            continue
        lake.remove_namespace_property(stage_schema, key)
    return dropped


def _discard_alias(lake: RestLake, namespace: str, name: str) -> None:
    found = lake.load(namespace, name, "table")
    # Only who drops the name may delete files: it may have been renamed to its target.
    if found is None or not lake.drop(namespace, name, "table"):
        return
    if (namespace, name) in lake.in_doubt:
        return  # the commit may arrive yet, and needs them
    table, run_id = split_alias(name)
    target = lake.load(namespace.removesuffix(STAGE_SUFFIX), table, "table")
    others = lake.heads([namespace]).values()
    kept = [(h.location, lake.document(h)) for h in others]
    if target is not None:
        kept.append((target.head.location, target.document))
    if _has_uuid(target, found) or _made_by(found.document, run_id):
        _remove(found.head.location, found.document, kept)


def _has_uuid(target: Loaded | None, alias: Loaded) -> bool:
    """Is the alias's table still under its name, so that what it needs is known?"""
    return target is not None and target.document["table-uuid"] == alias.document["table-uuid"]


def _made_by(document: dict[str, Any], run_id: str) -> bool:
    """Did a run make all of a table, so that nobody else can have a name for it?"""
    snapshots = document.get("snapshots") or []
    return bool(snapshots) and all(writer_of(s) == run_id for s in snapshots)


def _discard_branch(lake: RestLake, namespace: str, table: str, branch: str) -> None:
    """Take a branch away, with the snapshots that only it has."""
    found = lake.load(namespace, table, "table")
    refs = found.document.get("refs", {}) if found is not None else {}
    if found is None or branch not in refs:
        return
    requirements = [
        {"type": "assert-table-uuid", "uuid": found.document["table-uuid"]},
        {
            "type": "assert-ref-snapshot-id",
            "ref": branch,
            "snapshot-id": refs[branch]["snapshot-id"],
        },
    ]
    updates: list[dict[str, Any]] = [{"action": "remove-snapshot-ref", "ref-name": branch}]
    own = sorted(only_on(found.document, branch))
    if own:
        updates.append({"action": "remove-snapshots", "snapshot-ids": own})
    answer = lake.commit(found.head, requirements, updates)
    if answer.good:
        after = lake.remember(namespace, table, "table", answer.body)
        _remove(found.head.location, found.document, [(after.head.location, after.document)])


def _remove(
    location: str, document: dict[str, Any], kept: list[tuple[str, dict[str, Any]]]
) -> None:
    if is_local(document["location"]) and is_local(location):
        for file in files_only_in(location, document, kept):
            remove(file)
