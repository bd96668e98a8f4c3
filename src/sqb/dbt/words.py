"""The verdicts of the planning core in dbt's words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from sqb.dbt.changes import Change, changes
from sqb.dbt.expect import planned_type
from sqb.dbt.nodes import DbtNode
from sqb.identity.data_id import UNKNOWN
from sqb.planning.cascade import Verdict
from sqb.planning.plan import Cause, PlannedNode, PlanWarning
from sqb.planning.situation import Situation
from sqb.state.record import Record

#: The core's reason -> dbt's; the others are called the same.
_WORDS = {
    "query_changed": "checksum_changed",
    "seed_changed": "checksum_changed",
    "config_changed": "identity_changed",
    "source_changed": "source_freshness_changed",
    "schema_changed": "source_freshness_changed",
}
_SOURCE_MOVED = frozenset({"source_changed", "schema_changed"})
_FROM_ABOVE = _SOURCE_MOVED | {"source_unknown", "upstream_changed"}
#: Reasons for which an incremental model meets rows of an older definition.
_REDEFINED = frozenset({"checksum_changed", "identity_changed"})


def planned_nodes(
    situation: Situation,
    verdicts: Mapping[str, Verdict],
    nodes: Mapping[str, DbtNode],
    mode: str,
    *,
    full_refresh: bool,
) -> tuple[PlannedNode, ...]:
    """Every selected node that is built; ``full_refresh``: dbt gets the flag."""
    moved = moved_above(situation, verdicts)
    words = _WORDS | ({"forced": "full_refresh"} if situation.full_refresh else {})
    out: list[PlannedNode] = []
    for name in situation.expected:
        if name not in situation.selected:
            continue
        verdict, node = verdicts[name], nodes[name]
        reason, cause = _reason(verdict, moved.get(name), words)
        detail = None
        if reason == "identity_changed":
            detail = _detail(node, situation.recorded.get(name), nodes, mode)
        elif reason == "view_in_the_way" and name in situation.barred:
            cause, detail = None, {"kind": "view", "name": drop_view(node)}
        out.append(
            PlannedNode(
                name=name,
                type=planned_type(node),
                materialized=node.materialized,
                action="block" if verdict.blocked else "run" if verdict.runs else "skip",
                reason=reason,
                cause=cause,
                detail=detail,
                replay=_replay(node, reason, full_refresh) if verdict.runs else None,
            )
        )
    return tuple(out)


def moved_above(situation: Situation, verdicts: Mapping[str, Verdict]) -> dict[str, str]:
    """For each node a source above that moved, also behind nodes that run."""
    out: dict[str, str] = {}
    for name, expected in situation.expected.items():
        record = situation.recorded.get(name)
        consumed = record.consumed() if record is not None else {}
        for parent in expected.inputs:
            state = situation.sources.get(parent)
            before = consumed.get(parent)
            found: str | None = None
            if state is None:
                found = out.get(parent) if _passes_on(situation, verdicts, parent) else None
            elif before is not None and state.data not in (before.data, UNKNOWN):
                found = parent
            if found is not None:
                out[name] = found
                break
    return out


def stale_above(
    situation: Situation,
    verdicts: Mapping[str, Verdict],
    nodes: Mapping[str, DbtNode],
    *,
    defer: bool,
) -> tuple[PlanWarning, ...]:
    """Selected nodes that rest on stale ones outside the selection.

    ``defer``: what is missing is read elsewhere, and is not stale.
    """
    out: list[PlanWarning] = []
    for name in situation.expected:
        stale = verdicts[name].stale_above
        if defer:
            stale &= situation.relations.keys()
        if name not in situation.selected or not stale:
            continue
        node, names = nodes[name], ", ".join(sorted(nodes[n].label for n in stale))
        text = (
            f"`{node.label}` rests on {len(stale)} stale upstream(s) outside the selection: "
            f"{names}; --select +{node.name} builds them too"
        )
        out.append(PlanWarning("S302", name, text))
    return tuple(out)


def drop_view(node: DbtNode) -> str:
    """The statement that clears the way for a node that is no view any more."""
    return f"DROP VIEW {node.relation_name}"


def _passes_on(situation: Situation, verdicts: Mapping[str, Verdict], name: str) -> bool:
    """Do readers of a node get what moved above it: because it runs, or because it is a view?"""
    return verdicts[name].runs or situation.expected[name].materialized == "view"


def _reason(
    verdict: Verdict, moved: str | None, words: Mapping[str, str]
) -> tuple[str, Cause | None]:
    """The reason in dbt's words; a source above that moved is told before other nodes."""
    cause = verdict.cause
    if verdict.blocked or not verdict.runs:
        return verdict.reason, cause if verdict.blocked else None
    if verdict.reason not in _FROM_ABOVE:
        return words.get(verdict.reason, verdict.reason), cause
    if moved is None and cause is not None and cause.reason in _SOURCE_MOVED:
        moved = cause.node
    if moved is not None:
        return "source_freshness_changed", Cause(moved, "source_freshness_changed")
    if cause is None:
        return "upstream_changed", None
    reason = "source_unknown" if cause.reason == "source_unknown" else "upstream_changed"
    return reason, Cause(cause.node, words.get(cause.reason, cause.reason))


def _detail(
    node: DbtNode, record: Record | None, nodes: Mapping[str, DbtNode], mode: str
) -> dict[str, str] | None:
    """What differs, as far as it can be told; the checksum rule sees ephemeral models alone."""
    hidden = [nodes[name].label for name in node.reads if nodes[name].is_ephemeral]
    found: tuple[Change, ...] = ()
    if record is not None and record.hashes is not None:
        found = changes(record.hashes.parts, node.hashes.parts)
    if mode == "checksum":
        found = tuple(c for c in found if c.kind == "ref" and c.name in hidden)
        if not found and hidden:
            return {"kind": "ref", "name": hidden[0]}
    return {"kind": found[0].kind, "name": found[0].name} if found else None


def _replay(node: DbtNode, reason: str, full_refresh: bool) -> str | None:
    """What becomes of the rows of an incremental model."""
    if node.materialized != "incremental":
        return None
    if full_refresh and node.full_refresh is not False:
        return "full"
    return "forward" if reason in _REDEFINED else None
