"""Which runs of sqb wrote the versions of a table: each leaves its id in the summary."""

from __future__ import annotations

from typing import Any

#: The property of a snapshot that names the run that wrote it.
RUN_ID = "sqb.run-id"


def writer_of(snapshot: dict[str, Any]) -> str:
    """The run that wrote a version; empty if it was someone else."""
    return str((snapshot.get("summary") or {}).get(RUN_ID, ""))


def writers_since(document: dict[str, Any], recorded: int | None) -> frozenset[str]:
    """The runs of sqb that wrote all versions after the ``recorded`` one; none if there are no such
    versions, if someone else wrote one of them, or if an older one is back.

    >>> versions = [{"snapshot-id": 11, "sequence-number": 1}]
    >>> versions += [{"snapshot-id": 12, "sequence-number": 2, "summary": {"sqb.run-id": "r2"}}]
    >>> writers_since({"current-snapshot-id": 12, "snapshots": versions}, 11)
    frozenset({'r2'})
    """
    there = {s["snapshot-id"]: s for s in document.get("snapshots") or []}
    before, now = there.get(recorded), there.get(document.get("current-snapshot-id"))
    if before is None or now is None:
        return frozenset()
    later = [s for s in there.values() if _order(s) > _order(before)]
    writers = {writer_of(s) for s in later}
    return frozenset(writers) if now in later and "" not in writers else frozenset()


def _order(snapshot: dict[str, Any]) -> int:
    return int(snapshot.get("sequence-number") or 0)
