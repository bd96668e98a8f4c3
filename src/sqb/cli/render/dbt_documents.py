"""The JSON document of a dbt plan: the plan of the contract, and what only dbt has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqb.cli.render.documents import SCHEMA_VERSION, build_document, plan_document, planned_node
from sqb.dbt.plan import DbtPlan, doing

if TYPE_CHECKING:
    from sqb.dbt.explaining import DbtExplanation
    from sqb.dbt.project import DbtResult


def dbt_plan_document(plan: DbtPlan) -> dict[str, Any]:
    """``dbt plan --json``; has a schema in ``docs/json``."""
    return plan_document(plan.as_plan()) | {"dbt": _dbt(plan)}


def dbt_build_document(result: DbtResult, seconds: float) -> dict[str, Any]:
    """``dbt build --json``: the plan, how each node ended, and dbt's own end."""
    ended = {
        "exit_code": result.ended.code if result.ended is not None else None,
        "invocation_id": result.invocation or None,
    }
    return build_document(result.build, seconds) | {"dbt": _dbt(result.plan) | ended}


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
        "inputs": [
            {
                "name": item.name,
                "recorded": item.recorded,
                "now": item.now,
                "changed": item.changed,
                "reading": item.reading,
                "value": item.value,
                "note": item.note,
            }
            for item in found.inputs
        ],
        "tests": [planned_node(test) for test in found.tests],
        "built": {"run_id": record.run, "ts": record.ts} if record is not None else None,
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
