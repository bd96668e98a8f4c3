"""The plan of a dbt project: what dbt is given to do, what stays as it is, and why."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sqb.planning.plan import Plan, PlannedNode, PlanWarning

#: Types that count as models; the others that run are non-model work.
MODELS = frozenset({"dbt_model", "dbt_snapshot"})


class DbtPlan(msgspec.Struct, frozen=True):
    """Every selected node, parents first, then the tests.

    ``resources`` is how many things dbt selected, ``selector`` the arguments it did so by.
    ``full_refresh``: the flag goes to dbt. ``drop_views`` has the statements that clear the way
    for models that run, by unique id.
    """

    target: str
    nodes: tuple[PlannedNode, ...]
    tests: tuple[PlannedNode, ...] = ()
    warnings: tuple[PlanWarning, ...] = ()
    resources: int = 0
    selector: str = ""
    full_refresh: bool = False
    drop_views: dict[str, str] = {}

    @property
    def work(self) -> tuple[str, ...]:
        """The unique ids that dbt is given; nothing to do: dbt is not started."""
        return tuple(n.name for n in (*self.nodes, *self.tests) if n.action == "run")

    @property
    def models(self) -> tuple[PlannedNode, ...]:
        """Models and snapshots."""
        return tuple(n for n in self.nodes if n.type in MODELS)

    @property
    def others(self) -> tuple[PlannedNode, ...]:
        """Seeds, functions and tests."""
        return (*(n for n in self.nodes if n.type not in MODELS), *self.tests)

    def as_plan(self) -> Plan:
        """The same in the form that all plans are shown in."""
        return Plan(self.target, (*self.nodes, *self.tests), self.warnings, publish_mode=None)


def doing(nodes: Iterable[PlannedNode], action: str) -> tuple[PlannedNode, ...]:
    """The nodes with which this happens."""
    return tuple(n for n in nodes if n.action == action)
