"""Why one node of a dbt project runs or not, with all that the decision rests on. Pure."""

from __future__ import annotations

import msgspec

from sqb.dbt.changes import Change, changes
from sqb.dbt.decide import Seen, Wish, decide, judge
from sqb.dbt.expect import is_planned
from sqb.dbt.nodes import DbtNode
from sqb.dbt.settings import DbtSettings
from sqb.errors import SqbError
from sqb.planning.plan import PlannedNode
from sqb.planning.present import Present, present_inputs
from sqb.state.record import Record


class DbtExplanation(msgspec.Struct, frozen=True):
    """One node: ``changed`` are the parts of its identity that differ from the recorded ones.

    ``tests`` are those that check it, as the plan has them; ``told`` are the nodes that causes may
    name.
    """

    node: DbtNode
    planned: PlannedNode
    record: Record | None
    upstream: tuple[str, ...]
    downstream: tuple[str, ...]
    inputs: tuple[Present, ...] = ()
    changed: tuple[Change, ...] = ()
    tests: tuple[PlannedNode, ...] = ()
    told: dict[str, PlannedNode] = {}


def explained(node: DbtNode, seen: Seen, wish: Wish, settings: DbtSettings) -> DbtExplanation:
    """``node`` as a build of everything would treat it."""
    name = node.unique_id
    everything = msgspec.structs.replace(
        wish, command="build", selected=tuple(n for n in seen.nodes), selector=""
    )
    plan = decide(seen, everything, settings)
    told = {planned.name: planned for planned in (*plan.nodes, *plan.tests)}
    if name not in told:
        what = "is ephemeral: its readers carry it" if node.is_ephemeral else f"is a {node.type}"
        raise SqbError(
            "S001",
            f"`{node.name}` is not planned: it {what}",
            help="explain a model, seed, snapshot or test",
        )
    record = seen.rows.get(name)
    inputs: tuple[Present, ...] = ()
    found: tuple[Change, ...] = ()
    if is_planned(node):
        situation, verdicts = judge(seen, everything, settings)
        inputs = present_inputs(situation, verdicts, name)
        if record is not None and record.hashes is not None:
            found = changes(record.hashes.parts, node.hashes.parts)
            if record.hashes.checksum != node.hashes.checksum:
                found = (Change("checksum", node.path), *found)
    nodes = seen.nodes.values()
    return DbtExplanation(
        node,
        told[name],
        record,
        node.parents,
        tuple(n.unique_id for n in nodes if name in n.parents and is_planned(n)),
        inputs,
        found,
        tuple(t for t in plan.tests if name in seen.nodes[t.name].parents),
        told,
    )
