"""An explanation as text: why, how, from what, and the SQL."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from sqb.cli.output import Output
from sqb.cli.render.plan_text import diff_lines
from sqb.cli.render.strategy_text import lines
from sqb.cli.render.words import NOTES, count, moved_from, some, words, wrapped
from sqb.hashing import digest

if TYPE_CHECKING:
    from sqb.execution.explaining import Explanation
    from sqb.planning.plan import PlannedNode
    from sqb.planning.present import Present

_LABELS = 12


def show_explanation(found: Explanation, out: Output, catalog: str) -> None:
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
        ("row state", f"{catalog}.{found.row_state}" if found.row_state else ""),
        ("last built", _built(found)),
        ("upstream", some(found.upstream, out.width - _LABELS) if found.upstream else "none"),
        ("downstream", some(found.downstream, out.width - _LABELS) if found.downstream else "none"),
    ]
    labelled(fields, out)
    how = lines(node.strategy, found.moved) if node.action == "run" else []
    if how:
        out.important()
        labelled(how, out)
    if found.inputs:
        out.important()
        show_inputs(found.inputs, out)
    if node.diff:
        out.important()
        out.important("diff", dim=True)
        for line in diff_lines(node.diff, out):
            out.important(line)
    if found.sql:
        out.important()
        by_rows = bool(found.steps) and node.strategy is not None and node.strategy.name != "full"
        whole = "the SQL of a rebuild" if by_rows else "the SQL that a build would send"
        more = "; -v shows that of a refresh by rows" if found.steps and not out.verbose else ""
        out.important(whole + more, dim=True)
        for line in found.sql.strip().splitlines():
            out.important(f"  {line}".rstrip())
    if found.steps and out.verbose:
        out.important()
        out.important("the steps of a refresh by rows, each over those before it", dim=True)
        for name, sql in found.steps:
            out.important(f"  {out.style(name, dim=True)}  {sql}")


def labelled(fields: Sequence[tuple[str, str]], out: Output) -> None:
    """Print texts behind their labels; an empty one is left out."""
    for label, text in fields:
        if text:
            for i, line in enumerate(wrapped(text, out.width - _LABELS, "")):
                shown = f"{label if i == 0 else '':<{_LABELS}}"
                out.important(out.style(shown, dim=True) + line)


def why(node: PlannedNode) -> str:
    """The decision in a sentence."""
    if node.action == "skip":
        return "it is current: nothing that it is made of has changed"
    place = moved_from(node)
    if place:
        return f"it runs: it moved here from {place}, which stays until you drop it"
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


def show_inputs(inputs: Sequence[Present], out: Output) -> None:
    """Print what was recorded of inputs against what is there now, both as short hashes."""
    width = min(max(len(item.name) for item in inputs), 40)
    width = max(width, len("input"))
    out.important(f"{'input':<{width}}  {'recorded':<10}  now", dim=True)
    for item in inputs:
        line = f"{item.name:<{width}}  {_short(item.recorded):<10}  "
        if item.now is not None:
            line += f"{_short(item.now):<10}  "
        if item.changed is not None:
            colour = "magenta" if item.changed else "green"
            line += out.style(f"{'changed' if item.changed else 'same':<7}", fg=colour) + "  "
        told = (item.reading, item.value, item.note)
        out.important((line + ", ".join(text for text in told if text)).rstrip())


def _short(value: str | None) -> str:
    return digest(value)[:8] if value else "-"
