"""The plan as text: nodes grouped by why they run, one line each, and a last line with counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqb.cli.output import Output
from sqb.cli.render.strategy_text import title as title_of
from sqb.cli.render.words import (
    MOVED,
    NOTES,
    TITLES,
    count,
    duration,
    moved_from,
    some,
    title,
    words,
    wrapped,
)
from sqb.planning.plan import Plan, PlannedNode, PlanWarning, Strategy

#: Lines of a diff that are shown without ``-v``.
DIFF_LINES = 20
#: Nodes of a group that are shown without ``-v``.
GROUP_NODES = 12
#: Lines of diffs after which a plan shows no further ones without ``-v``.
ALL_DIFF_LINES = 40

_MAYBE = "May run, if upstream rows change"
_LONGEST_NAME = 40


def show_plan(plan: Plan, out: Output, seconds: float) -> None:
    """Print a plan."""
    groups = [(heading, nodes, _first(nodes, out)) for heading, nodes in _groups(plan)]
    busy = [node for _, _, shown in groups for node in shown]
    width = min(max((len(node.name) for node in busy), default=0), _LONGEST_NAME)
    kinds = max((len(node.materialized) for node in busy), default=0)
    diffs = 0
    for heading, nodes, shown in groups:
        out.line(f"{out.style(heading, bold=True)} ({len(nodes)})")
        hidden = 0
        for node in shown:
            for text in node_lines(node, out, width, kinds):
                out.line(text)
            if out.verbose and node.strategy is not None and node.materialized == "table":
                for text in wrapped(_how(node.strategy), out.width - 6, ""):
                    out.line(f"      {text}", dim=True)
            if node.diff and diffs >= ALL_DIFF_LINES and not out.verbose:
                hidden += 1
            elif node.diff:
                for text in diff_lines(node.diff, out):
                    diffs += 1
                    out.line(text)
        if len(shown) < len(nodes):
            out.line(f"  … and {len(nodes) - len(shown)} more, -v shows all", dim=True)
        elif hidden:
            out.line(f"  … {count(hidden, 'more diff')}, -v shows all", dim=True)
        out.line()
    if plan.redescribe:
        heading = out.style("Description changed, nothing is rebuilt", bold=True)
        out.line(f"{heading} ({len(plan.redescribe)})")
        out.line(f"  {some(plan.redescribe, out.width - 2)}")
        out.line()
    if out.verbose:
        _current(plan, out)
    show_warnings(plan.warnings, out)
    if plan.work and plan.publish_mode not in {"alias", None}:
        out.line(f"Tables are published by {plan.publish_mode}, see docs/catalogs.md", dim=True)
    out.important(last_line(plan, out, seconds))


def _first(nodes: list[PlannedNode], out: Output) -> list[PlannedNode]:
    """The nodes of a group that are shown; "and 1 more" would take the line of that one."""
    return nodes if out.verbose or len(nodes) <= GROUP_NODES + 1 else nodes[:GROUP_NODES]


def _groups(plan: Plan) -> Iterator[tuple[str, list[PlannedNode]]]:
    """The groups that have nodes, in the order of the house."""
    runs = [node for node in plan.nodes if node.action == "run" and not node.maybe]
    known = list(TITLES)
    reasons = sorted(
        {node.reason for node in runs},
        key=lambda reason: (known.index(reason) if reason in TITLES else len(known), reason),
    )
    for reason in reasons:
        note = NOTES.get(reason)
        heading = f"{title(reason)}, {note}" if note else title(reason)
        found = [node for node in runs if node.reason == reason]
        moved = [node for node in found if moved_from(node)]
        if moved:
            yield MOVED, moved
        if len(moved) < len(found):
            yield heading, [node for node in found if node not in moved]
    others = (
        (_MAYBE, [node for node in plan.nodes if node.action == "run" and node.maybe]),
        ("Reused", [node for node in plan.nodes if node.action == "reuse"]),
        ("Blocked", [node for node in plan.nodes if node.action == "block"]),
    )
    for heading, nodes in others:
        if nodes:
            yield heading, nodes


def node_lines(node: PlannedNode, out: Output, width: int, kinds: int) -> list[str]:
    """A node in one line; in two where its name leaves no room."""
    start = f"  {node.name:<{width}}  {node.materialized:<{kinds}}"
    room = out.width - len(start) - 2
    detail = _detail(node, max(room, out.width // 2))
    dim = node.state_of is not None
    styled = f"  {out.style(f'{node.name:<{width}}', fg=_colour(node), dim=dim)}"
    styled += out.style(f"  {node.materialized:<{kinds}}", dim=True)
    if not detail:
        return [styled.rstrip()]
    if len(detail) > room:
        return [styled.rstrip(), f"      {detail}"]
    return [f"{styled}  {detail}"]


def _how(strategy: Strategy) -> str:
    """The strategy in short: what is done and why not less."""
    return f"{title_of(strategy)}, {strategy.why}"


def _detail(node: PlannedNode, width: int) -> str:
    """Why, beyond the heading: the nodes that decide, or the root of the chain."""
    place = moved_from(node)
    if place:
        return f"was {place}"
    if node.state_of is not None and node.cause is None:
        return f"row state of {node.state_of}"
    if node.if_changed is not None:
        return f"if {some(node.if_changed, width - 3)}"
    cause = node.cause
    if cause is None or (cause.node == node.name and cause.reason == node.reason):
        return words(node.reason) if node.action == "block" else ""
    if cause.reason == node.reason:
        return cause.node
    return f"{cause.node} ({words(cause.reason)})"


def _colour(node: PlannedNode) -> str:
    if node.action == "block":
        return "red"
    return "cyan" if node.maybe or node.action == "reuse" else "magenta"


def diff_lines(diff: str, out: Output) -> Iterator[str]:
    """A diff, indented and coloured; a long one is cut unless ``-v`` was given."""
    indent = "      "
    lines = diff.splitlines()
    # the two lines that name the files say nothing here
    if len(lines) > 2 and lines[0].startswith("---") and lines[1].startswith("+++"):
        lines = lines[2:]
    limit = len(lines) if out.verbose or len(lines) <= DIFF_LINES + 1 else DIFF_LINES
    for line in lines[:limit]:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        for part in _folded(line, out.width - len(indent)):
            yield indent + (out.style(part, fg=colour) if colour else part)
    if limit < len(lines):
        left = count(len(lines) - limit, "more line")
        yield indent + out.style(f"… {left}; -v shows the whole diff", dim=True)


def _folded(line: str, width: int) -> list[str]:
    """A line of SQL over as many lines as it needs, broken at blanks; no word is torn apart.

    A word that is wider than the page is cut, and ends in an ellipsis.
    """
    parts: list[str] = []
    indent = ""
    while len(indent) + len(line) > width:
        room = width - len(indent)
        end = line.rfind(" ", len(line) - len(line.lstrip(" +-")) + 1, room + 1)
        if end <= 0:
            end = line.find(" ", room)
            word = line if end < 0 else line[:end]
            parts.append(indent + word[: room - 1] + "…")
            line = "" if end < 0 else line[end + 1 :]
        else:
            parts.append(indent + line[:end].rstrip())
            line = line[end + 1 :]
        line = line.lstrip()
        indent = " " * 8
        if not line:
            return parts
    return [*parts, indent + line]


def _current(plan: Plan, out: Output) -> None:
    names = [node.name for node in plan.nodes if node.action == "skip"]
    if names:
        out.line(f"{out.style('Current', bold=True)} ({len(names)})")
        for text in wrapped(", ".join(names), out.width - 2, ""):
            out.line(f"  {text}", dim=True)
        out.line()


def show_warnings(warnings: Sequence[PlanWarning], out: Output) -> None:
    """Print warnings."""
    for warning in warnings:
        head = f"warning[{warning.code}]: "
        first, *rest = wrapped(head + warning.message, out.width, "  ")
        out.line(out.style(first[: len(head) - 2], fg="magenta") + first[len(head) - 2 :])
        for text in rest:
            out.line(text)
    if warnings:
        out.line()


def counts(plan: Plan, out: Output) -> str:
    """``3 to run, 2 may run, 45 current``"""
    summary = plan.summary()
    parts = [
        (summary["run"], "to run", "magenta"),
        (summary["maybe"], "may run", "cyan"),
        (summary["reuse"], "to reuse", "cyan"),
        (summary["blocked"], "blocked", "red"),
        (summary["current"], "current", "green"),
    ]
    return ", ".join(
        out.style(f"{number} {what}", fg=colour) for number, what, colour in parts if number
    )


def last_line(plan: Plan, out: Output, seconds: float) -> str:
    """The counts, or that there is nothing to do."""
    took = out.style(f"({duration(seconds)})", dim=True)
    if any(node.action != "skip" for node in plan.nodes):
        return f"{counts(plan, out)} {took}"
    if not plan.nodes:
        return f"Nothing to do: the project has no models and seeds yet {took}"
    number = len(plan.nodes)
    what = "the only one is current" if number == 1 else f"{number} models and seeds are current"
    return f"{out.style('Nothing to do', fg='green')}: {what} {took}"
