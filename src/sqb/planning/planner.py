"""The pipeline of passes: own change, cascade, coherence, freshness, then the plan itself."""

from __future__ import annotations

from sqb.lake.describe import DESCRIBED
from sqb.planning import coherence
from sqb.planning.cascade import Verdict, cascade
from sqb.planning.freshness import freshness_warnings
from sqb.planning.plan import DEFINITION_REASONS, Plan, PlannedNode, Strategy
from sqb.planning.row_gates import at_once
from sqb.planning.situation import Situation

_LOAD = Strategy("full", "the file is loaded in full")


def decide(situation: Situation) -> tuple[Plan, dict[str, Verdict]]:
    """What every selected node does, and the verdict on every node of the project.

    Pure: the same situation gives the same plan.
    """
    verdicts = cascade(situation)
    coherence.check(situation, verdicts)
    nodes: list[PlannedNode] = []
    rerecord: list[str] = []
    redescribe: list[str] = []
    for name, expected in situation.expected.items():
        if name not in situation.selected:
            continue
        verdict = verdicts[name]
        nodes.append(
            PlannedNode(
                name=name,
                type=expected.type,
                materialized=expected.materialized,
                action="block" if verdict.blocked else "run" if verdict.runs else "skip",
                reason=verdict.reason,
                if_changed=verdict.if_changed,
                cause=verdict.cause if verdict.runs or verdict.blocked else None,
                strategy=_strategy(situation, name, verdict) if verdict.runs else None,
                replay=expected.replay if verdict.reason in DEFINITION_REASONS else None,
                state_of=expected.state_of,
            )
        )
        if not verdict.runs and _outdated(situation, name, verdict):
            rerecord.append(name)
        stands = not verdict.runs and not verdict.blocked
        if stands and expected.described != _described(situation, name):
            redescribe.append(name)
    warnings = coherence.warnings(situation, verdicts) + freshness_warnings(situation, verdicts)
    plan = Plan(situation.target, tuple(nodes), warnings, tuple(rerecord), tuple(redescribe))
    return plan, verdicts


def _strategy(situation: Situation, name: str, verdict: Verdict) -> Strategy | None:
    """How a node is brought up to date, where its reason alone decides that."""
    kind = situation.expected[name].materialized
    if kind == "seed":
        return _LOAD
    known = at_once(verdict.reason)
    # of a log there is more to tell: what drives it
    if known is None or verdict.if_changed is not None or kind in ("view", "append"):
        return None
    stands = name in situation.relations and verdict.reason != "full_refresh"
    if kind != "table" and stands:
        return None  # what stands may be kept, or must be
    code, why = known
    return Strategy("full", why, code=code)


def _described(situation: Situation, name: str) -> str:
    """What the comments of a relation say already."""
    facts = situation.relations.get(name)
    return facts.properties.get(DESCRIBED, "") if facts is not None else ""


def _outdated(situation: Situation, name: str, verdict: Verdict) -> bool:
    """Is the node current although its record speaks of another version of the project?"""
    if verdict.state is None or verdict.stale_above:
        return False
    record = situation.recorded[name]
    return name in situation.outdated or record.version != situation.expected[name].version
