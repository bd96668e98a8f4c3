"""What an edit changed, as a diff against what was built."""

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
    """The plan with a diff of the definition where an edit is the reason."""
    nodes = list(plan.nodes)
    for i, planned in enumerate(nodes):
        node = expected[planned.name]
        if planned.action != "run" or planned.reason not in ("query_changed", "config_changed"):
            continue
        if planned.reason == "query_changed":
            before = built_definition(node, observed, facts, store)
            after, context = compiled.models[node.name].sql, 2
        else:
            before = settings_text(observed.recorded[node.name].config)
            after, context = settings_text(node.config), 0
        if before is not None:
            diff = _diff(before, after, node.path, context)
            nodes[i] = msgspec.structs.replace(planned, diff=diff)
    return msgspec.structs.replace(plan, nodes=tuple(nodes))


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
