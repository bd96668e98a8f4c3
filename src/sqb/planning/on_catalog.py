"""What a plan says about the catalog that it will be carried out on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from sqb.lake.metadata import TableFacts
from sqb.planning.plan import Plan, PlanWarning


class Publishes(Protocol):
    """How a catalog publishes."""

    @property
    def mode(self) -> str | None:
        """The mode of rebuilt tables; None if no build has found out yet."""

    @property
    def swaps_kinds(self) -> bool:
        """Can a view take the place of a table, or the other way round, in one step?"""


def for_catalog(plan: Plan, relations: Mapping[str, TableFacts], catalog: Publishes) -> Plan:
    """The plan with the mode, and a warning for every name that will be missing for a moment."""
    plan = msgspec.structs.replace(plan, publish_mode=catalog.mode)
    if catalog.swaps_kinds:
        return plan
    gaps = []
    for node in plan.work:
        facts = relations.get(node.name)
        wanted = "view" if node.materialized == "view" else "table"
        if facts is not None and facts.kind != wanted:
            text = (
                f"`{node.name}` becomes a {wanted}: on this catalog the {facts.kind} is dropped "
                "first, and readers find no such name for a moment"
            )
            gaps.append(PlanWarning("S308", node.name, text))
    return msgspec.structs.replace(plan, warnings=(*plan.warnings, *gaps)) if gaps else plan
