"""``sqb explain``: why a model runs or not, from what, how, and the SQL that would be sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command
from sqb.cli.render.waiting import Waiting

if TYPE_CHECKING:
    from sqb.api import Project
    from sqb.execution.explaining import Explanation
    from sqb.freshness.sighting import Sighting


def explain(call: Call, *, model: str) -> None:
    """Explain one node."""
    call.no_selection("explain")
    with call.project() as project:
        found = project.explain(model, listener=Waiting(call).hear)
        inputs = _inputs(project, found)
    if call.out.json:
        from sqb.cli.render.documents import planned_node

        expected = found.expected
        catalog = project.config.catalog.name
        call.out.document(
            {
                "schema_version": 1,
                **planned_node(found.plan.nodes[0]),
                "path": expected.path,
                "relation": f"{catalog}.{expected.namespace}.{expected.relation}",
                "upstream": list(found.upstream),
                "downstream": list(found.downstream),
                "inputs": inputs,
                "built": _built(found),
                "sql": found.sql,
            }
        )
        return
    from sqb.cli.render.explain_text import show_explanation

    show_explanation(found, inputs, call.out, project.config.catalog.name)


def _built(found: Explanation) -> dict[str, Any] | None:
    record = found.record
    if record is None:
        return None
    from datetime import datetime, timezone

    moment = datetime.fromtimestamp(record.ts / 1_000_000, timezone.utc)
    return {"run_id": record.run, "ts": moment, "rows": record.rows}


def _inputs(project: Project, found: Explanation) -> list[dict[str, Any]]:
    """Each input: what the node was built from, and what is there now.

    What is seen through a view, and what is not built, has no version of its own: ``now`` is null.
    """
    observed = project.observe()
    sightings = found.sightings
    consumed = found.record.consumed() if found.record is not None else {}
    out: list[dict[str, Any]] = []
    for name in dict.fromkeys((*found.upstream, *consumed)):
        now: str | None = None
        sighting = sightings.get(name)
        if sighting is not None:
            now = sighting.state.data if sighting.state is not None else None
        elif name in observed.recorded and observed.recorded[name].materialized != "view":
            now = observed.recorded[name].data
        before = consumed[name].data if name in consumed else None
        out.append(
            {
                "name": name,
                "recorded": before,
                "now": now,
                "changed": None if now is None or before is None else _moved(sighting, before, now),
                "reading": sighting.reading if sighting is not None else None,
                "value": sighting.value if sighting is not None and sighting.watched else None,
                "why": (sighting.why or None) if sighting is not None else None,
            }
        )
    return out


def _moved(sighting: Sighting | None, before: str, now: str) -> bool:
    from sqb.identity.data_id import tolerated

    tolerance = sighting.tolerance if sighting is not None else None
    return now != before and not tolerated(before, now, tolerance)


command = sqb_command(
    "explain",
    help="Tell why a model runs or not, and show the SQL that would be sent to Spark.",
    example="""
sqb explain fct_orders
sqb explain fct_orders --json
""",
)(click.argument("model")(explain))
