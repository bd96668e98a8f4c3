"""A dbt plan and an explanation of one node as text."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sqb.cli.output import Output
from sqb.cli.render.explain_text import labelled, show_inputs
from sqb.cli.render.plan_text import show_warnings
from sqb.cli.render.words import duration, some
from sqb.dbt.plan_text import plan_lines, reason_text

if TYPE_CHECKING:
    from sqb.dbt.explaining import DbtExplanation
    from sqb.dbt.plan import DbtPlan

_LABELS = 12
_HEADS = {"Run": "cyan", "Current": "green", "Blocked": "red"}


def show_dbt_plan(plan: DbtPlan, out: Output, seconds: float) -> None:
    """Print a plan; a plan without work and trouble is one that ``-q`` shows too."""
    first, *rest = plan_lines(plan, verbose=out.verbose)
    took = out.style(f"({duration(seconds)})", dim=True)
    out.important(f"{out.style(first, bold=True)} {took}")
    for line in rest:
        head = line.strip().partition(" (")[0]
        colour = _HEADS.get(head) if line.startswith("    ") and line[4:5] != " " else None
        out.line(out.style(line, fg=colour) if colour else line)
    out.line()
    show_warnings(plan.warnings, out)


def show_dbt_explanation(found: DbtExplanation, out: Output) -> None:
    """Print an explanation."""
    node, planned = found.node, found.planned
    out.important(
        f"{out.style(node.unique_id, bold=True)}  {node.materialized}  "
        + out.style(node.path, dim=True)
    )
    out.important()
    reason = reason_text(planned, found.told)
    why = {"run": f"it runs: {reason}", "block": f"it is blocked: {reason}"}.get(
        planned.action, "it is current: nothing that it is made of has changed"
    )
    changed = ", ".join(f"{change.kind} {change.name}" for change in found.changed)
    width = out.width - _LABELS
    labelled(
        [
            ("why", why),
            ("changed", changed),
            ("relation", node.relation_name or ""),
            ("last built", _built(found)),
            ("upstream", some(found.upstream, width) if found.upstream else "none"),
            ("downstream", some(found.downstream, width) if found.downstream else "none"),
        ],
        out,
    )
    if found.inputs:
        out.important()
        show_inputs(found.inputs, out)
    if found.tests:
        out.important()
        out.important("tests", dim=True)
        for test in found.tests:
            state = {"skip": "passed", "block": "blocked"}.get(test.action) or (
                reason_text(test) if test.reason == "test_owed" else "runs with it"
            )
            out.important(f"  {test.name}   {state}")


def _built(found: DbtExplanation) -> str:
    record = found.record
    if record is None:
        return "never"
    moment = datetime.fromtimestamp(record.ts / 1_000_000, timezone.utc)
    told = f", {record.outcome}" if record.outcome else ""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC, run {record.run}{told}"
