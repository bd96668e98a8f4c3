"""Why a node runs or not, from what, and the SQL that a run would send to Spark."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from sqb.execution.foreseeing import Moved, foresee
from sqb.execution.kinds.telling import foretold
from sqb.execution.reading import statement, view_statement
from sqb.execution.run import Run
from sqb.identity.expected import Expected
from sqb.planning.plan import Plan
from sqb.planning.present import Present, present_inputs
from sqb.state.record import Record


class Explanation(msgspec.Struct, frozen=True):
    """One node of a plan with all that the decision rests on."""

    plan: Plan
    expected: Expected
    record: Record | None
    upstream: tuple[str, ...]
    downstream: tuple[str, ...]
    inputs: tuple[Present, ...]
    sql: str
    moved: tuple[Moved, ...] = ()
    steps: tuple[tuple[str, str], ...] = ()
    #: Where its row state is kept, if it has one.
    row_state: str | None = None


def explained(name: str, plan: Plan, run: Run, work: Collection[str]) -> Explanation:
    """``plan`` holds the node alone; ``run`` what a build would know, ``work`` what it would do."""
    foreseen = foresee(run, plan.nodes[0], work)
    node = msgspec.structs.replace(plan.nodes[0], strategy=foreseen.strategy)
    plan = msgspec.structs.replace(plan, nodes=(node,))
    expected, compiled = run.expected(name), run.compiled
    sql = ""
    if name in compiled.models:
        make = view_statement if expected.materialized == "view" else statement
        sql = make(run, name).text
    strategy = foretold(run, node)
    if strategy is not None:
        nodes = (msgspec.structs.replace(node, strategy=strategy) for node in plan.nodes)
        plan = msgspec.structs.replace(plan, nodes=tuple(nodes))
    return Explanation(
        plan,
        expected,
        run.situation.recorded.get(name),
        tuple(compiled.parents[name]),
        tuple(sorted(run.situation.graph.children[name])),
        present_inputs(run.situation, run.verdicts, name),
        sql,
        foreseen.sources,
        foreseen.steps,
        next((e.place for e in run.situation.expected.values() if e.state_of == name), None),
    )
