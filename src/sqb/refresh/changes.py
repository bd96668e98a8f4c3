"""What happened to a table between two of its versions, judged from its snapshots alone.

The first way of reading the change whose conditions hold is taken; none is assumed. The append
scan, for one, silently leaves out what an overwrite in its range did.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from sqb.lake.versions import Snapshot

#: ``none``: nothing changed. ``append``: rows were only added, read the added files. ``changelog``:
#: files were rewritten, read those. ``lineage``: rows have ids, compare these. ``versions``:
#: compare the two versions. ``files``: files were only added. ``unknown``: none of them.
Way = Literal["none", "append", "changelog", "lineage", "versions", "files", "unknown"]

_GONE = "the version that was read last is gone: it expired, or the table was made anew"


class TableChange(msgspec.Struct, frozen=True):
    """How the change of one table can be read, and about how large it is.

    ``bytes`` are those of the files to read; None where that is all of both versions.
    """

    way: Way
    old: int | None
    new: int | None
    reason: str = ""
    added_rows: int | None = 0
    removed_rows: int | None = 0
    bytes: int | None = 0
    sequence: int | None = None

    @property
    def only_adds(self) -> bool:
        """Did rows only come?"""
        return self.way in ("none", "append", "files")


def table_change(
    snapshots: Mapping[int, Snapshot], old: int | None, new: int | None
) -> TableChange:
    """The change from ``old`` to ``new``; None is the empty table before its first snapshot."""
    if old == new:
        return TableChange("none", old, new)
    if new is None and old in snapshots:
        # made anew in its place, and nothing was written yet
        return TableChange("versions", old, new, "the table is empty now", 0, None, None)
    if new is None:
        return TableChange("unknown", old, new, _GONE)
    path = _path(snapshots, old, new)
    if path is None:
        if old is not None and old not in snapshots:
            return TableChange("unknown", old, new, _GONE)
        return TableChange("versions", old, new, "not an ancestor", None, None, None)
    moved = [snapshot for snapshot in path if snapshot.operation != "replace"]
    if not moved:
        return TableChange("none", old, new)
    size = _sum(count for s in moved for count in (s.added_bytes, s.removed_bytes))
    added = _sum(snapshot.added_rows for snapshot in moved)
    removed = _sum(snapshot.removed_rows for snapshot in moved)
    if all(s.operation == "append" and not s.adds_deletes for s in moved):
        return TableChange("append", old, new, "", added, 0, size)
    if old is None:
        return TableChange("versions", old, new, "the table was empty", added, removed, None)
    if old not in snapshots:
        # the files that were removed since are gone with it
        return TableChange("unknown", old, new, _GONE)
    if any(s.has_deletes for s in path) or snapshots[old].has_deletes:
        sequence = snapshots[old].sequence
        if sequence is not None and all(s.lineage for s in (snapshots[old], *path)):
            return TableChange("lineage", old, new, "delete files", added, removed, None, sequence)
        return TableChange("versions", old, new, "delete files", added, removed, None)
    return TableChange("changelog", old, new, "", added, removed, size)


def may_have_grown(snapshots: Mapping[int, Snapshot], change: TableChange) -> bool:
    """May rows have come, and not only others in the place of some? As far as its commits tell."""
    if change.way in ("files", "unknown"):
        return True
    if change.way == "none" or change.new is None:
        return False
    path = _path(snapshots, change.old, change.new)
    if path is None:
        then, now = snapshots.get(change.old or -1), snapshots.get(change.new)
        totals = (then.rows if then else None, now.rows if now else None)
        return totals[0] is None or totals[1] is None or totals[1] > totals[0]
    counts = ((s.added_rows, s.removed_rows) for s in path if s.operation != "replace")
    return any(come is None or gone is None or come > gone for come, gone in counts)


def _path(snapshots: Mapping[int, Snapshot], old: int | None, new: int) -> list[Snapshot] | None:
    """The snapshots after ``old`` up to ``new``; None if ``old`` is not before ``new``."""
    path: list[Snapshot] = []
    at: int | None = new
    while at != old:
        snapshot = snapshots.get(at) if at is not None else None
        if snapshot is None:
            return None
        path.append(snapshot)
        at = snapshot.parent
    return path[::-1]


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total
