"""What a run of dbt did, from its ``run_results.json``: which nodes succeeded, failed or were left.

dbt leaves the file of an earlier run in place when it fails early, so a file counts only if it
names the state folder that this run was started with.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Literal

import msgspec

#: ``left``: dbt skipped the node, or ended before it came to it.
Did = Literal["ok", "failed", "left"]

_DID: dict[str, Did] = {
    "success": "ok",
    "pass": "ok",
    "warn": "ok",
    "no-op": "ok",
    "error": "failed",
    "fail": "failed",
    "runtime error": "failed",
    # some batches of a model failed
    "partial success": "failed",
    "skipped": "left",
}


class NodeResult(msgspec.Struct, frozen=True):
    """One node. ``status`` is dbt's word, empty for a node that it did not come to."""

    unique_id: str
    did: Did
    status: str = ""
    message: str | None = None
    failures: int | None = None
    seconds: float = 0.0


class Outcome(msgspec.Struct, frozen=True):
    """A run: every node that was handed over, in order of unique id.

    ``known`` is false where dbt left no results; then no node counts as done.
    """

    nodes: dict[str, NodeResult]
    known: bool = True
    invocation: str = ""
    dbt_version: str = ""

    def that(self, did: Did) -> tuple[str, ...]:
        """The nodes that ended so."""
        return tuple(name for name, node in self.nodes.items() if node.did == did)


class _Metadata(msgspec.Struct):
    invocation_id: str = ""
    dbt_version: str = ""


class _Arguments(msgspec.Struct):
    state: str | None = None


class _Result(msgspec.Struct):
    unique_id: str
    status: str
    message: str | None = None
    failures: int | None = None
    execution_time: float = 0.0


class _Results(msgspec.Struct):
    metadata: _Metadata
    results: list[_Result]
    args: _Arguments = msgspec.field(default_factory=_Arguments)


def read_outcome(path: Path, state: Path, handed: Collection[str]) -> Outcome:
    """The outcome of the run that was started with the state folder ``state``."""
    try:
        content: bytes | None = path.read_bytes()
    except OSError:
        content = None
    return outcome_of(content, str(state), handed)


def outcome_of(content: bytes | None, state: str, handed: Collection[str]) -> Outcome:
    """The same, from what the file holds; None if there is no file."""
    names = sorted(handed)
    left = {name: NodeResult(name, "left") for name in names}
    found = _decoded(content) if content is not None else None
    if found is None or found.args.state != state:
        return Outcome(left, known=False)
    by_id = {result.unique_id: result for result in found.results}
    nodes = {name: _told(by_id[name]) if name in by_id else left[name] for name in names}
    return Outcome(
        nodes, invocation=found.metadata.invocation_id, dbt_version=found.metadata.dbt_version
    )


def _decoded(content: bytes) -> _Results | None:
    try:
        return msgspec.json.decode(content, type=_Results)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        pass
    try:
        # JSON as Python writes it: what an adapter answers may hold NaN
        return msgspec.convert(json.loads(content), _Results)
    except (ValueError, RecursionError):
        return None


def _told(result: _Result) -> NodeResult:
    return NodeResult(
        result.unique_id,
        # a word that a later dbt brings is no success
        _DID.get(result.status, "failed"),
        result.status,
        result.message,
        result.failures,
        result.execution_time,
    )
