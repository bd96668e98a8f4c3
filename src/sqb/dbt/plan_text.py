"""A dbt plan as lines of text: the counts, then each model with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sqb.dbt.plan import DbtPlan, doing
from sqb.planning.plan import PlannedNode

#: Current nodes that are shown before the rest is only counted.
FEW = 20
#: Tests that run with their model from which on they are only counted.
_MANY_TESTS = 2
_LONGEST = 48

_GROUPS = (("run", "Run"), ("skip", "Current"), ("block", "Blocked"))
_OWED = {
    "never_run": "never passed",
    "changed": "the test changed",
    "new_build": "not run on this build",
    "failed": "failed before",
}


def plan_lines(plan: DbtPlan, *, verbose: bool = False) -> Iterator[str]:
    """The plan; ``verbose`` shows every current model."""
    models = plan.models
    counts = {action: len(doing(models, action)) for action, _ in _GROUPS}
    others = len(doing(plan.others, "run"))
    by = f" ({plan.selector})" if plan.selector else ""
    yield f"dbt ({_count(plan.resources, 'selected resource')})"
    yield f"  selected by dbt selector: {plan.resources} from dbt selector{by}"
    yield (
        f"  planned models: {counts['run']} run, {counts['skip']} current, "
        f"{counts['block']} blocked"
    )
    yield f"  planned non-model dbt work: {others}"
    if not plan.work:
        yield f"  skipped: {_skipped(plan, counts)}"
    elif plan.full_refresh:
        yield "  with --full-refresh: incremental models and seeds are rebuilt"
    told = {node.name: node for node in (*plan.nodes, *plan.tests)}
    if models:
        yield from _section("Model plan", models, told, verbose)
    busy = tuple(n for n in plan.others if n.action != "skip")
    if busy:
        yield from _section("Non-model plan", busy, told, verbose)
    for statement in plan.drop_views.values():
        yield f"  first: {statement}"


def reason_text(node: PlannedNode, told: Mapping[str, PlannedNode] | None = None) -> str:
    """A reason in words, with the finer cause; ``told`` are the nodes that causes may name.

    >>> from sqb.planning.plan import Cause
    >>> detail = {"kind": "macro", "name": "cents"}
    >>> stg = PlannedNode("model.a.stg", "dbt_model", "view", "run", "identity_changed",
    ...     detail=detail)
    >>> cause = Cause("model.a.stg", "identity_changed")
    >>> fct = PlannedNode("model.a.fct", "dbt_model", "table", "run", "upstream_changed",
    ...     cause=cause)
    >>> reason_text(stg), reason_text(fct, {"model.a.stg": stg})
    ('macro changed: cents', 'upstream changed (model.a.stg: macro changed: cents)')
    """
    own = _own(node)
    cause = node.cause
    if cause is None or cause.node == node.name:
        return own
    root = (told or {}).get(cause.node)
    if cause.reason == node.reason:
        return f"{own} ({cause.node})"
    beyond = (
        _own(root) if root is not None and root.reason == cause.reason else _words(cause.reason)
    )
    return f"{own} ({cause.node}: {beyond})"


def _own(node: PlannedNode) -> str:
    detail = node.detail
    if detail is None:
        return _words(node.reason)
    if node.reason == "identity_changed":
        return f"{detail['kind']} changed: {detail['name']}"
    if node.reason == "test_owed":
        return f"test owed: {_OWED.get(detail['name'], detail['name'])}"
    return f"{_words(node.reason)}: {detail['name']}"


def _section(
    title: str, nodes: Sequence[PlannedNode], told: Mapping[str, PlannedNode], verbose: bool
) -> Iterator[str]:
    yield ""
    yield f"  {title}"
    for action, heading in _GROUPS:
        found = doing(nodes, action)
        if not found:
            continue
        yield f"    {heading} ({len(found)})"
        shown, rest = (found, "") if verbose else _shown(action, found)
        width = min(max((len(node.name) for node in shown), default=0), _LONGEST)
        for node in shown:
            yield f"      {node.name:<{width}}   {reason_text(node, told)}"
        if rest:
            yield f"      {'… and ' if shown else ''}{rest}, -v shows all"


def _shown(action: str, found: Sequence[PlannedNode]) -> tuple[Sequence[PlannedNode], str]:
    """The nodes of a group that have a line of their own, and what is said of the others."""
    # "and 1 more" would take the line of that one
    if action == "skip" and len(found) > FEW + 1:
        return found[:FEW], f"{len(found) - FEW} more"
    followers = {n.name for n in found if n.type == "dbt_test" and n.reason != "test_owed"}
    if action == "skip" or len(followers) < _MANY_TESTS:
        return found, ""
    what = "what runs" if action == "run" else "what is blocked"
    return (
        [n for n in found if n.name not in followers],
        f"{_count(len(followers), 'test')} of {what}",
    )


def _skipped(plan: DbtPlan, counts: Mapping[str, int]) -> str:
    if counts["block"]:
        return "nothing can run, see Blocked"
    return "all planned dbt models are current" if plan.models else "nothing to do"


def _words(reason: str) -> str:
    return reason.replace("_", " ")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
