"""An explanation as text: why, how, from what, and the SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from sqb.cli.output import Output
from sqb.cli.render.plan_text import diff_lines
from sqb.cli.render.words import NOTES, count, some, words, wrapped

if TYPE_CHECKING:
    from sqb.execution.explaining import Explanation
    from sqb.planning.plan import PlannedNode

_LABELS = 12


def show_explanation(
    found: Explanation, inputs: Sequence[dict[str, Any]], out: Output, catalog: str
) -> None:
    """Print an explanation."""
    node, expected = found.plan.nodes[0], found.expected
    out.important(
        f"{out.style(node.name, bold=True)}  {node.materialized}  "
        + out.style(expected.path, dim=True)
    )
    out.important()
    fields = [
        ("why", why(node)),
        ("relation", f"{catalog}.{expected.namespace}.{expected.relation}"),
        ("last built", _built(found)),
        ("strategy", f"{node.strategy.name}: {node.strategy.why}" if node.strategy else ""),
        ("upstream", some(found.upstream, out.width - _LABELS) if found.upstream else "none"),
        ("downstream", some(found.downstream, out.width - _LABELS) if found.downstream else "none"),
    ]
    for label, text in fields:
        if text:
            for i, line in enumerate(wrapped(text, out.width - _LABELS, "")):
                shown = f"{label if i == 0 else '':<{_LABELS}}"
                out.important(out.style(shown, dim=True) + line)
    if inputs:
        out.important()
        _inputs(inputs, out)
    if node.diff:
        out.important()
        out.important("diff", dim=True)
        for line in diff_lines(node.diff, out):
            out.important(line)
    if found.sql:
        out.important()
        out.important("the SQL that a build would send", dim=True)
        for line in found.sql.strip().splitlines():
            out.important(f"  {line}".rstrip())


def why(node: PlannedNode) -> str:
    """The decision in a sentence."""
    if node.action == "skip":
        return "it is current: nothing that it is made of has changed"
    note = NOTES.get(node.reason)
    reason = f"{words(node.reason)} ({note})" if note else words(node.reason)
    if node.cause is not None and node.cause.node != node.name:
        reason += f": {node.cause.node}"
        if node.cause.reason != node.reason:
            reason += f" ({words(node.cause.reason)})"
    if node.if_changed is not None:
        return f"it runs if {' or '.join(node.if_changed)} comes out with other rows ({reason})"
    return f"it runs: {reason}" if node.action == "run" else f"it is blocked: {reason}"


def _built(found: Explanation) -> str:
    record = found.record
    if record is None:
        return "never"
    moment = datetime.fromtimestamp(record.ts / 1_000_000, timezone.utc)
    rows = f", {count(record.rows, 'row')}" if record.rows is not None else ""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC, run {record.run}{rows}"


def _inputs(inputs: Sequence[dict[str, Any]], out: Output) -> None:
    """Recorded against now; the ids are hashes, of which the first letters tell enough."""
    width = min(max(len(item["name"]) for item in inputs), 40)
    width = max(width, len("input"))
    out.important(f"{'input':<{width}}  {'recorded':<10}  now", dim=True)
    for item in inputs:
        recorded, now = (_short(item[key]) for key in ("recorded", "now"))
        verdict = {True: "changed", False: "same", None: ""}[item["changed"]]
        colour = "yellow" if item["changed"] else "green"
        line = f"{item['name']:<{width}}  {recorded:<10}  {now:<10}"
        note = _note(item)
        out.important(f"{line}  {out.style(verdict, fg=colour)}{note}".rstrip())


def _note(item: dict[str, Any]) -> str:
    """How a source is read, and its freshness value or why there is none."""
    if item["reading"] is None:
        return ""
    return "  " + ", ".join(filter(None, (item["reading"], item["value"], item["why"])))


def _short(value: str | None) -> str:
    if not value:
        return "-"
    # the data id of a source that is watched by a value starts with what was asked
    return value[2:10] if value.startswith(("f:", "l:", "e:")) else value[:8]
