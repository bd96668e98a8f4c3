"""``sqb explain``: why a model runs or not, from what, how, and the SQL that would be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import SELECTION, Call, offer
from sqb.cli.call import command as sqb_command
from sqb.cli.render.waiting import Waiting

if TYPE_CHECKING:
    from sqb.execution.explaining import Explanation
    from sqb.execution.foreseeing import Moved


def explain(call: Call, *, model: str) -> None:
    """Explain one node."""
    call.no_selection("explain")
    with call.project() as project:
        found = project.explain(model, listener=Waiting(call).hear)
    if call.out.json:
        from sqb.cli.render.documents import input_document, planned_node

        expected = found.expected
        catalog = project.config.catalog.name
        call.out.document(
            {
                "schema_version": 1,
                **planned_node(found.plan.nodes[0]),
                "path": expected.path,
                "relation": f"{catalog}.{expected.namespace}.{expected.relation}",
                "row_state": f"{catalog}.{found.row_state}" if found.row_state else None,
                "upstream": list(found.upstream),
                "downstream": list(found.downstream),
                "inputs": [input_document(item) for item in found.inputs],
                "built": _built(found),
                "sql": found.sql,
                "changes": [_change(item) for item in found.moved],
                "steps": [{"name": step, "sql": sql} for step, sql in found.steps],
            }
        )
        return
    from sqb.cli.render.explain_text import show_explanation

    show_explanation(found, call.out, project.config.catalog.name)


def _change(item: Moved) -> dict[str, Any]:
    change = item.change
    return {
        "name": item.name,
        "way": change.way,
        "old": change.old,
        "new": change.new,
        "added": change.added_rows,
        "removed": change.removed_rows,
        "why": change.reason or None,
    }


def _built(found: Explanation) -> dict[str, Any] | None:
    record = found.record
    if record is None:
        return None
    from datetime import datetime, timezone

    moment = datetime.fromtimestamp(record.ts / 1_000_000, timezone.utc)
    return {"run_id": record.run, "ts": moment, "rows": record.rows}


command = sqb_command(
    "explain",
    help="Tell why a model runs or not, and show the SQL that would be sent to Spark.",
    example="""
sqb explain fct_orders
sqb explain fct_orders --json
""",
    hides=SELECTION,
)(click.argument("model", shell_complete=offer("node"))(explain))
