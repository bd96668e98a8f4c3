"""Which snapshots and metadata files of a table are needed, and which may go.

Pure: metadata and facts in, ids out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

Document = Mapping[str, Any]

#: How many metadata files a publish may have staged, and logged, before the one it published.
_STAGED_FILES = 4
#: Metadata files of the log that always stay; Iceberg's own log ends at a hundred.
_LOG_KEPT = 20
_LOG_DUE = 60


class Needs(msgspec.Struct, frozen=True):
    """What others need of any table.

    ``snapshots`` are named by stamps, records and heads; ``since_ms`` is the moment from which on
    everything stays that was current: the reader grace, counted back from the oldest running
    build.
    """

    snapshots: frozenset[int]
    since_ms: int


class Removable(msgspec.Struct, frozen=True):
    """Snapshots (ids) and old metadata files (locations) of one table that nobody needs."""

    snapshots: tuple[int, ...] = ()
    metadata: tuple[str, ...] = ()


def removable(
    document: Document, needs: Needs, *, keep: int, older_than_ms: int | None = None
) -> Removable:
    """What may go of a table.

    Always kept: the current snapshot and those it compacted, tags, branches, whatever ``needs``
    names, and what stopped being current after ``needs.since_ms``. Of the rest the newest ``keep``
    stay; with ``older_than_ms`` only if they stopped being current after that moment.
    """
    snapshots = {s["snapshot-id"]: s for s in document.get("snapshots") or []}
    current = _current(document)
    kept = _published(current, snapshots) | (needs.snapshots & snapshots.keys())
    kept |= _branched(document, snapshots, current)
    ended = _ended(document, snapshots, current)
    kept |= {i for i in snapshots if ended[i] > needs.since_ms}
    newest = sorted(snapshots, key=lambda i: (_sequence(snapshots[i]), i), reverse=True)[:keep]
    kept |= {i for i in newest if older_than_ms is None or ended[i] > older_than_ms}
    return Removable(
        tuple(i for i in snapshots if i not in kept), _old_metadata(document, needs.since_ms)
    )


def is_due(document: Document, keep: int) -> bool:
    """Has a table grown enough beyond what is kept for a look after a build to pay off?"""
    snapshots = len(document.get("snapshots") or [])
    log = len(document.get("metadata-log") or [])
    return snapshots > keep + max(keep // 2, 1) or log > _LOG_DUE


def pays_off(document: Document, found: Removable) -> bool:
    """Is it enough to be removed now? The cost is that of reading what stays."""
    count = len(document.get("snapshots") or [])
    return 10 * len(found.snapshots) >= count or len(found.metadata) >= _LOG_KEPT


def _current(document: Document) -> int | None:
    ref = (document.get("refs") or {}).get("main")
    found = ref["snapshot-id"] if ref else document.get("current-snapshot-id")
    return None if found in {None, -1} else int(found)


def _published(current: int | None, snapshots: Mapping[int, Document]) -> set[int]:
    """The current snapshot and those that were only compacted since: stamps name the oldest."""
    kept: set[int] = set()
    at = current
    while at is not None and at in snapshots:
        kept.add(at)
        if (snapshots[at].get("summary") or {}).get("operation") != "replace":
            break
        at = snapshots[at].get("parent-snapshot-id")
    return kept


def _branched(
    document: Document, snapshots: Mapping[int, Document], current: int | None
) -> set[int]:
    """Whatever has a name, and the history of branches beside ``main``."""
    kept: set[int] = set()
    ours = set(_line(current, snapshots))
    for name, ref in (document.get("refs") or {}).items():
        kept.add(ref["snapshot-id"])
        if ref.get("type") == "branch" and name != "main":
            for ancestor in _line(ref["snapshot-id"], snapshots):
                if ancestor in ours:
                    break
                kept.add(ancestor)
    return kept & snapshots.keys()


def _line(start: int | None, snapshots: Mapping[int, Document]) -> Iterable[int]:
    at = start
    while at is not None and at in snapshots:
        yield at
        at = snapshots[at].get("parent-snapshot-id")


def _ended(
    document: Document, snapshots: Mapping[int, Document], current: int | None
) -> dict[int, int]:
    """When each snapshot stopped being current, at the latest."""
    log = document.get("snapshot-log") or []
    last = {entry["snapshot-id"]: place for place, entry in enumerate(log)}
    ended: dict[int, int] = {}
    for id_, snapshot in snapshots.items():
        begun = int(snapshot["timestamp-ms"])
        if id_ == current:
            later: Iterable[int] = [2**63]
        elif id_ in last:
            later = [int(e["timestamp-ms"]) for e in log[last[id_] + 1 :]]
        else:
            # The log forgot it. Whatever came after it in the log had taken its place by then.
            later = [int(e["timestamp-ms"]) for e in log if int(e["timestamp-ms"]) >= begun]
        ended[id_] = min(later, default=begun)
    return ended


def _sequence(snapshot: Document) -> tuple[int, int]:
    return int(snapshot.get("sequence-number") or 0), int(snapshot["timestamp-ms"])


def _old_metadata(document: Document, since_ms: int) -> tuple[str, ...]:
    """Logged metadata files that were replaced before ``since_ms``, the newest ones aside.

    A publish logs the files that it staged too, by the time at which they were staged: only the
    entry behind those tells when a file was replaced for sure.
    """
    log = document.get("metadata-log") or []
    old = log[: -max(_LOG_KEPT, _STAGED_FILES)]
    return tuple(
        entry["metadata-file"]
        for place, entry in enumerate(old)
        if int(log[place + _STAGED_FILES]["timestamp-ms"]) <= since_ms
    )
