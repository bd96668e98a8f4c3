"""The JSON document of a dbt plan: the plan of the contract, and what only dbt has."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sqb.cli.render.documents import (
    SCHEMA_VERSION,
    build_document,
    input_document,
    plan_document,
    planned_node,
)
from sqb.dbt.plan import DbtPlan, doing

if TYPE_CHECKING:
    from sqb.dbt.explaining import DbtExplanation
    from sqb.dbt.project import DbtResult
    from sqb.execution.events import BuildResult
    from sqb.planning.plan import Plan
    from sqb.state.record import Record


def dbt_plan_document(plan: DbtPlan, below: Plan | None = None) -> dict[str, Any]:
    """``dbt plan --json``; has a schema in ``docs/json``. ``below`` are models of sqb's own."""
    document = plan_document(plan.as_plan())
    if below is not None:
        document = _joined(document, plan_document(below))
    return document | {"dbt": _dbt(plan)}


def dbt_build_document(
    result: DbtResult, below: BuildResult | None, seconds: float
) -> dict[str, Any]:
    """``dbt build --json``: the plan, how each node ended, and dbt's own end."""
    ended = {
        "exit_code": result.ended.code if result.ended is not None else None,
        "invocation_id": result.invocation or None,
    }
    document = build_document(result.build, seconds)
    if below is not None:
        document = _joined(document, build_document(below, seconds))
    return document | {"dbt": _dbt(result.plan) | ended}


def _joined(dbt: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """One document of both sides: dbt's nodes first, the counts added up."""
    summary = {
        key: value + own["summary"][key] if isinstance(value, int) else value or own["summary"][key]
        for key, value in dbt["summary"].items()
    }
    return dbt | {
        "publish_mode": own["publish_mode"],
        "summary": summary,
        "nodes": [*dbt["nodes"], *own["nodes"]],
        "warnings": [*dbt["warnings"], *own["warnings"]],
    }


def dbt_explanation_document(found: DbtExplanation) -> dict[str, Any]:
    """``dbt explain --json``"""
    record = found.record
    return {
        "schema_version": SCHEMA_VERSION,
        **planned_node(found.planned),
        "path": found.node.path,
        "relation": found.node.relation_name,
        "upstream": list(found.upstream),
        "downstream": list(found.downstream),
        "changed": [{"kind": change.kind, "name": change.name} for change in found.changed],
        "inputs": [input_document(item) for item in found.inputs],
        "tests": [planned_node(test) for test in found.tests],
        "built": _built(record) if record is not None else None,
    }


def _dbt(plan: DbtPlan) -> dict[str, Any]:
    models = plan.models
    return {
        "resources": plan.resources,
        "selector": plan.selector,
        "models": {
            "run": len(doing(models, "run")),
            "current": len(doing(models, "skip")),
            "blocked": len(doing(models, "block")),
        },
        "non_model_work": len(doing(plan.others, "run")),
        "full_refresh": plan.full_refresh,
        "drop_views": list(plan.drop_views.values()),
    }


def _built(record: Record) -> dict[str, Any]:
    return {
        "run_id": record.run,
        "ts": datetime.fromtimestamp(record.ts / 1_000_000, timezone.utc),
    }
