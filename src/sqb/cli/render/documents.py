"""The JSON documents of the contract, as plain values. Each has a schema in ``docs/json``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.planning.plan import Plan, PlannedNode

if TYPE_CHECKING:
    from sqb.execution.events import BuildResult, NodeResult
    from sqb.planning.present import Present

SCHEMA_VERSION = 1


def planned_node(node: PlannedNode) -> dict[str, Any]:
    """A node of ``plan --json``; its fields are a promise."""
    return {
        "name": node.name,
        "type": node.type,
        "materialized": node.materialized,
        "action": node.action,
        "reason": node.reason,
        "if_changed": list(node.if_changed) if node.if_changed is not None else None,
        "cause": msgspec.to_builtins(node.cause),
        # only tables that are more than their query replay anything
        "replay": {"kind": node.replay, "duration": None} if node.replay else None,
        "strategy": msgspec.to_builtins(node.strategy),
        "diff": node.diff,
        "detail": node.detail,
        "internal": node.state_of is not None,
    }


def input_document(item: Present) -> dict[str, Any]:
    """An input of ``explain --json``: what was recorded of it, and what is there now."""
    return {
        "name": item.name,
        "recorded": item.recorded,
        "now": item.now,
        "changed": item.changed,
        "reading": item.reading,
        "value": item.value,
        "note": item.note,
    }


def plan_document(plan: Plan) -> dict[str, Any]:
    """``plan --json``"""
    return {
        "schema_version": SCHEMA_VERSION,
        "target": plan.target,
        "virtual_env": None,
        "publish_mode": plan.publish_mode,
        "summary": plan.summary(),
        "nodes": [planned_node(node) for node in plan.nodes],
        "warnings": list(msgspec.to_builtins(plan.warnings)),
    }


def build_document(result: BuildResult, seconds: float) -> dict[str, Any]:
    """``build --json``: the plan, and how each node ended.

    The counts are the plan's, but ``blocked`` is what was really blocked.
    """
    ended = Counter(node.status for node in result.nodes)
    document = plan_document(result.plan)
    document["summary"] |= {
        "blocked": ended["blocked"],
        "succeeded": ended["success"] + ended["unchanged"] + ended["reused"],
        "failed": ended["failed"],
        "seconds": round(seconds, 3),
        "run_id": result.run_id,
    }
    results = {node.name: node for node in result.nodes}
    told = [warning for node in result.nodes for warning in node.warnings]
    document["warnings"] = [*document["warnings"], *msgspec.to_builtins(told)]
    document["nodes"] = [
        planned_node(node) | _ended(node, results[node.name]) for node in result.plan.nodes
    ]
    return document


def _ended(node: PlannedNode, result: NodeResult) -> dict[str, Any]:
    action = {"blocked": "block", "current": "skip"}.get(result.status, node.action)
    return {
        "action": action,
        "reason": result.reason,
        "status": result.status,
        "rows": msgspec.to_builtins(result.rows),
        "seconds": round(result.seconds, 3),
        "error": result.error,
        "strategy": msgspec.to_builtins(result.strategy or node.strategy),
        "audits": [],
        "tests": [],
        **_blocked_by(result),
    }


def _blocked_by(result: NodeResult) -> dict[str, Any]:
    """The failure above as the cause, where there is one."""
    if not result.blocked_by:
        return {}
    return {"cause": {"node": result.blocked_by[0], "reason": "upstream_changed"}}
