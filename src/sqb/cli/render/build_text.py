"""How a build tells what it did: a line per node, the errors in full, a last line with counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from sqb.cli.output import Output
from sqb.cli.render.errors import error_text
from sqb.cli.render.plan_text import show_warnings
from sqb.cli.render.strategy_text import outcome
from sqb.cli.render.words import count, duration, some, words
from sqb.execution.events import BuildResult, NodeResult
from sqb.planning.plan import Plan

if TYPE_CHECKING:
    from sqb.project.config import Config

#: status -> its word and colour.
_STATUS: dict[str, tuple[str, str]] = {
    "success": ("ok", "green"),
    "unchanged": ("unchanged", "cyan"),
    "reused": ("reused", "cyan"),
    "current": ("current", "cyan"),
    "skipped": ("skipped", "cyan"),
    "failed": ("failed", "red"),
    "blocked": ("blocked", "red"),
}
#: The error of a node that the user's Ctrl-C ended.
_STOPPED = "X005"
#: More nodes than this are not told one by one on a terminal.
CROWD = 40
_LONGEST_NAME = 40
_ROWS = 14
_SECONDS = 7


class ResultLines:
    """One aligned line per finished node: ``3/7  table  fct_orders  ok  1,204 rows  0.9s``."""

    def __init__(self, plan: Plan, out: Output) -> None:
        work = {node.name: node for node in plan.work}
        self.total = len(work)
        self.done = 0
        self._work = work
        self._out = out
        self._digits = len(str(self.total))
        self._kinds = max((len(node.materialized) for node in work.values()), default=0)
        self._names = min(max((len(name) for name in work), default=0), _LONGEST_NAME)

    @property
    def crowded(self) -> bool:
        """Would a line per node scroll a terminal away?"""
        return self.total > CROWD and self._out.terminal and not self._out.verbose

    def line(self, result: NodeResult) -> str:
        """The line of the next node that finished."""
        self.done += 1
        out, node = self._out, self._work[result.name]
        word, colour = _STATUS[result.status]
        if result.error is not None and result.error.get("code") == _STOPPED:
            word = "stopped"
        number = f"{self.done:>{self._digits}}/{self.total}"
        start = f"  {number}  {node.materialized:<{self._kinds}}  "
        name = f"{node.name:<{self._names}}"
        if result.status == "current":
            cut_off = result.reason == "upstream_unchanged"
            why = words(result.reason) if cut_off else "another build made it"
            tail = out.style(f"{word} ({why})", fg=colour)
            return f"{out.style(start, dim=True)}{name}  {tail}"
        rows = (
            count(result.rows.total, "row") if result.rows and result.rows.total is not None else ""
        )
        took = duration(result.seconds) if result.status != "blocked" else ""
        middle = f"  {word:<9}"
        tail = f"{rows:>{_ROWS}}{took:>{_SECONDS + 1}}".rstrip()
        room = out.width - len(start) - len(name) - len(middle) - len(tail)
        # the reason is a comfort, the rest is the result
        reason = "" if result.status == "blocked" else f"  {words(node.reason)}"
        how, short = (f"  {text}" if text else "" for text in outcome(result))
        texts = (how + reason, how, short + reason, reason) if how else (reason,)
        reason = next((text for text in texts if len(text) <= room), "")
        styled = out.style(start, dim=True) + name + out.style(middle, fg=colour)
        return (styled + tail + out.style(reason, dim=True)).rstrip()


def show_end(
    result: BuildResult,
    out: Output,
    *,
    seconds: float,
    root: Path,
    config: Config | None = None,
) -> None:
    """Print the errors, what they held up, and the last line."""
    if ResultLines(result.plan, out).crowded:
        _show_slowest(result, out)
    show_warnings([warning for node in result.nodes for warning in node.warnings], out)
    failures = [node for node in result.nodes if node.status == "failed"]
    for node in failures:
        if node.error is not None and not _is_stop(node, result):
            out.important()
            out.important(error_text(node.error, out, root, config))
    blocked = [node.name for node in result.nodes if node.status == "blocked" and node.blocked_by]
    if blocked and not result.interrupted:
        out.important()
        names = some(blocked, out.width - 45)
        out.important(f"blocked because they read what failed: {names}")
    too_old = [node.name for node in result.nodes if _is_too_old(node)]
    if too_old:
        out.important()
        out.important(f"blocked by a source that is too old: {some(too_old, out.width - 40)}")
    if failures and result.run_id is not None and not result.interrupted:
        log = Path(".sqb") / "runs" / result.run_id / "spark.log"
        if (root / log).exists():
            out.important(out.style(f"Spark's own words: {log}", dim=True))
    if failures or blocked or too_old:
        out.important()
    out.important(last_line(result, out, seconds))


def _show_slowest(result: BuildResult, out: Output) -> None:
    """Where the time went, and where every node is told."""
    ran = [node for node in result.nodes if node.status in ("success", "unchanged", "failed")]
    slowest = sorted(ran, key=lambda node: -node.seconds)[:3]
    if slowest:
        names = ", ".join(f"{node.name} {duration(node.seconds)}" for node in slowest)
        out.line(f"slowest: {names}")
    out.line(f"every node: .sqb/runs/{result.run_id}/sqb.log", dim=True)


def _is_stop(node: NodeResult, result: BuildResult) -> bool:
    """Did the node fail only because the user stopped the build?"""
    return result.interrupted and node.error is not None and node.error.get("code") == _STOPPED


def _is_too_old(node: NodeResult) -> bool:
    """Did the plan block the node because of the age of a source above it?"""
    return node.status == "blocked" and node.reason == "source_freshness_error"


def last_line(result: BuildResult, out: Output, seconds: float) -> str:
    """``done: 5 built, 1 unchanged, 41 current in 12.3s``"""
    ended = Counter(node.status for node in result.nodes)
    stopped = sum(1 for node in result.nodes if _is_stop(node, result))
    blocked = sum(
        1
        for node in result.nodes
        if _is_too_old(node) or (node.blocked_by and not result.interrupted)
    )
    parts = [
        (ended["success"], "built", "green"),
        (ended["unchanged"], "unchanged", "cyan"),
        (ended["reused"], "reused", "cyan"),
        (ended["skipped"], "skipped", "cyan"),
        (ended["current"], "current", "green"),
        (ended["failed"] - stopped, "failed", "red"),
        (stopped, "stopped", "red"),
        (blocked, "blocked", "red"),
        (ended["blocked"] - blocked, "not started", "red"),
    ]
    head, colour = "done", "green"
    if result.failed:
        head, colour = "failed", "red"
    if result.interrupted:
        head, colour = "interrupted", "red"
    text = ", ".join(out.style(f"{n} {what}", fg=c) for n, what, c in parts if n)
    return f"{out.style(head, fg=colour, bold=True)}: {text} in {duration(seconds)}"
