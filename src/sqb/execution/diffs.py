"""What an edit changed: a diff against what was built, or the place that a relation moved from."""

from __future__ import annotations

import difflib

import msgspec

from sqb.compile.nodes import Compiled
from sqb.execution.look import Observed, built_definition
from sqb.identity.expected import Expected, settings_text
from sqb.lake.facts import FactsCache
from sqb.planning.plan import Plan
from sqb.state.store import StateStore


def with_diffs(
    plan: Plan,
    compiled: Compiled,
    expected: dict[str, Expected],
    observed: Observed,
    facts: FactsCache,
    store: StateStore,
) -> Plan:
    """The plan with what an edit did, where an edit is the reason."""
    nodes = list(plan.nodes)
    for i, planned in enumerate(nodes):
        node = expected[planned.name]
        if planned.reason == "relation_missing":
            place = _moved_from(node, observed, facts)
            if place is not None:
                detail = {"kind": "moved", "name": place}
                nodes[i] = msgspec.structs.replace(planned, detail=detail)
            continue
        if planned.action != "run" or planned.reason not in ("query_changed", "config_changed"):
            continue
        if planned.reason == "query_changed":
            before = built_definition(node, observed, facts, store)
            after, context = compiled.models[node.name].definition, 2
        else:
            before = settings_text(observed.recorded[node.name].config)
            after, context = settings_text(node.config), 0
        if before is not None:
            diff = _diff(before, after, node.path, context)
            nodes[i] = msgspec.structs.replace(planned, diff=diff)
    return msgspec.structs.replace(plan, nodes=tuple(nodes))


def _moved_from(node: Expected, observed: Observed, facts: FactsCache) -> str | None:
    """Where the relation still stands that the node's last record speaks of, under another name."""
    record = observed.rows.get(node.name)
    if record is None:
        return None
    base = node.namespace.partition("_")[0]
    for (namespace, name), head in sorted(observed.heads.items()):
        # another `schema` is another suffix of the target's schema
        if namespace.partition("_")[0] == base and facts.get(head.location).uuid == record.uuid:
            return f"{namespace}.{name}"
    return None


def _diff(before: str, after: str, path: str, context: int) -> str:
    lines = difflib.unified_diff(
        before.strip().splitlines(),
        after.strip().splitlines(),
        "built",
        path,
        lineterm="",
        n=context,
    )
    return "\n".join(lines)


__all__ = ["with_diffs"]
