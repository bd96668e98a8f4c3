"""The verdicts of the planning core in dbt's words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sqb.dbt.expect import planned_type
from sqb.dbt.identity import Change, changes
from sqb.dbt.nodes import DbtNode
from sqb.identity.data_id import UNKNOWN
from sqb.planning.cascade import Verdict
from sqb.planning.plan import Cause, PlannedNode, PlanWarning
from sqb.planning.situation import Situation
from sqb.state.record import Record

#: The core's reason -> dbt's; the others are called the same.
_WORDS = {
    "forced": "full_refresh",
    "query_changed": "checksum_changed",
    "seed_changed": "checksum_changed",
    "config_changed": "identity_changed",
    "source_changed": "source_freshness_changed",
    "schema_changed": "source_freshness_changed",
}
_FROM_ABOVE = frozenset({"source_changed", "schema_changed", "source_unknown", "upstream_changed"})
#: Reasons for which an incremental model meets rows of an older definition.
_REDEFINED = frozenset({"checksum_changed", "identity_changed"})


class Above(msgspec.Struct, frozen=True):
    """The sources above a node that gave it a reason: one that moved, one that can't be seen."""

    moved: str | None = None
    unknown: str | None = None


def planned_nodes(
    situation: Situation,
    verdicts: Mapping[str, Verdict],
    nodes: Mapping[str, DbtNode],
    mode: str,
    *,
    full_refresh: bool,
) -> tuple[PlannedNode, ...]:
    """Every selected node that is built; ``full_refresh``: dbt gets the flag."""
    above = sources_above(situation, verdicts)
    out: list[PlannedNode] = []
    for name in situation.expected:
        if name not in situation.selected:
            continue
        verdict, node = verdicts[name], nodes[name]
        reason, cause = _reason(verdict, above[name])
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


def sources_above(situation: Situation, verdicts: Mapping[str, Verdict]) -> dict[str, Above]:
    """For each node the sources that moved or can't be seen, also behind nodes that run."""
    out: dict[str, Above] = {}
    for name, expected in situation.expected.items():
        record = situation.recorded.get(name)
        consumed = record.consumed() if record is not None else {}
        moved: str | None = None
        unknown: str | None = None
        for parent in expected.inputs:
            state = situation.sources.get(parent)
            if state is not None:
                if state.data == UNKNOWN:
                    unknown = unknown or parent
                elif parent in consumed and consumed[parent].data != state.data:
                    moved = moved or parent
            elif parent in out and _passes_on(situation, verdicts, parent):
                moved = moved or out[parent].moved
                unknown = unknown or out[parent].unknown
        out[name] = Above(moved, unknown)
    return out


def stale_above(
    situation: Situation, verdicts: Mapping[str, Verdict], nodes: Mapping[str, DbtNode]
) -> tuple[PlanWarning, ...]:
    """Selected nodes that rest on stale ones outside the selection."""
    out: list[PlanWarning] = []
    for name in situation.expected:
        stale = verdicts[name].stale_above
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
    if name in situation.selected:
        return verdicts[name].runs
    return situation.expected[name].materialized == "view"


def _reason(verdict: Verdict, above: Above) -> tuple[str, Cause | None]:
    """The reason in dbt's words. Moved sources come first, as they do in the graph."""
    cause = verdict.cause
    if verdict.blocked or not verdict.runs:
        return verdict.reason, cause if verdict.blocked else None
    if verdict.reason not in _FROM_ABOVE:
        return _WORDS.get(verdict.reason, verdict.reason), cause
    root = cause.reason if cause is not None else ""
    moved = above.moved
    if moved is None and cause is not None and root in {"source_changed", "schema_changed"}:
        moved = cause.node
    if moved is not None:
        return "source_freshness_changed", Cause(moved, "source_freshness_changed")
    unknown = above.unknown
    if unknown is None and cause is not None and root == "source_unknown":
        unknown = cause.node
    if unknown is not None:
        return "source_unknown", Cause(unknown, "source_unknown")
    told = Cause(cause.node, _WORDS.get(root, root)) if cause is not None else None
    return "upstream_changed", told


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
