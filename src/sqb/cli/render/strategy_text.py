"""A strategy as text: in a word or two beside a node, or in full with what it rests on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqb.cli.render.words import count, duration

if TYPE_CHECKING:
    from sqb.execution.events import NodeResult
    from sqb.execution.foreseeing import Moved
    from sqb.planning.plan import Numbers, Strategy

#: Rebuilds that the reason of the node tells already.
_PLAIN = frozenset(
    {"FIRST_BUILD", "TARGET_MISSING", "TARGET_MODIFIED_OUTSIDE", "DEFINITION_CHANGED", "FORCED"}
)
#: Rebuilds that are cheaper, though others would be right too.
_GUARD = frozenset({"CHEAPER_TO_REBUILD", "CHANGE_TOO_LARGE", "TOO_MANY_KEYS"})
_ROWS = frozenset(
    {"append", "group_merge", "affected_key", "partition_overwrite", "bag_merge", "top_merge"}
)


def title(strategy: Strategy) -> str:
    """``affected_key on (customer)``, ``full: CHEAPER_TO_REBUILD``"""
    if strategy.key:
        return f"{strategy.name} on ({', '.join(strategy.key)})"
    return f"{strategy.name}: {strategy.code}" if strategy.code else strategy.name


def outcome(result: NodeResult) -> tuple[str, str]:
    """How a node was brought up to date, beside its result: ``rows +12 -3``; or nothing.

    Once in full and once short. What the reason tells already is not said again.
    """
    strategy, rows = result.strategy, result.rows
    if strategy is None or result.status not in ("success", "unchanged"):
        return "", ""
    if strategy.name not in ("full", "skip"):
        if rows is None or not (rows.inserted or rows.deleted):
            return "rows", "rows"
        parts = [f"+{rows.inserted:,}" if rows.inserted else ""]
        parts.append(f"-{rows.deleted:,}" if rows.deleted else "")
        return " ".join(["rows", *filter(None, parts)]), "rows"
    if strategy.name == "full" and strategy.code and strategy.code not in _PLAIN:
        return f"full: {strategy.code}", ""
    return "", ""


def lines(strategy: Strategy | None, moved: Sequence[Moved]) -> list[tuple[str, str]]:
    """Labels and sentences: the strategy, what changed, why, what else, what it takes."""
    found = [("strategy", title(strategy))] if strategy is not None else []
    for label, changed in (("changed", True), ("unchanged", False)):
        items = [item for item in moved if (item.change.way != "none") == changed]
        found += [(label if i == 0 else "", _source(item)) for i, item in enumerate(items)]
    if strategy is None:
        return found
    found.append(("because", strategy.why))
    others = [
        r for r in strategy.rejected if (r["code"], r["why"]) != (strategy.code, strategy.why)
    ]
    found += [
        ("not chosen" if i == 0 else "", f"{r['name']}: {r['why']} ({r['code']})")
        for i, r in enumerate(others)
    ]
    able = [r["name"] for r in strategy.rejected if r not in others and r["name"] in _ROWS]
    if strategy.name == "full" and strategy.code in _GUARD and able:
        text = f"{' or '.join(able)} would give the same rows; --refresh rows takes it"
        found.append(("by rows", text))
    if strategy.estimate is not None:
        text = _estimate(strategy.name, strategy.estimate)
        found += [("estimate", text)] if text else []
    found += [("advice" if i == 0 else "", text) for i, text in enumerate(strategy.advice)]
    return found


def _source(item: Moved) -> str:
    change = item.change
    if change.way == "none":
        return item.name
    if change.way == "unknown":
        return f"{item.name}  {change.reason}"
    come, gone = change.added_rows, change.removed_rows
    counts = [f"+{come:,}" if come else "", f"-{gone:,}" if gone else ""]
    moved = " ".join(filter(None, counts))
    if moved and change.way == "changelog":
        moved += " rows in rewritten files"
    how = {
        "append": "rows were added",
        "files": "files were added",
        "lineage": "rows are compared by their ids",
        "versions": "two versions are compared",
    }
    words = [moved, how.get(change.way, "")]
    return f"{item.name}  {', '.join(filter(None, words))}".rstrip()


def _estimate(name: str, numbers: Numbers) -> str:
    parts = []
    if numbers.changed_rows is not None:
        parts.append(count(numbers.changed_rows, "changed row"))
    if numbers.keys is not None:
        parts.append(count(numbers.keys, "key"))
    if name != "full" and numbers.seconds is not None:
        parts.append(f"about {duration(numbers.seconds)}{_from(numbers.runs)}")
    if numbers.full_seconds is not None:
        took = f"{duration(numbers.full_seconds)}{_from(numbers.full_runs)}"
        parts.append(f"a rebuild about {took}")
    return ", ".join(parts)


def _from(runs: int) -> str:
    return f" (from {count(runs, 'run')})" if runs else ""
