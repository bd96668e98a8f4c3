"""The JSON document of a dbt plan: the plan of the contract, and what only dbt has."""

from __future__ import annotations

from typing import Any

from sqb.cli.render.documents import plan_document
from sqb.dbt.plan import DbtPlan, doing


def dbt_plan_document(plan: DbtPlan) -> dict[str, Any]:
    """``dbt plan --json``; has a schema in ``docs/json``."""
    models = plan.models
    return plan_document(plan.as_plan()) | {
        "dbt": {
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
    }
