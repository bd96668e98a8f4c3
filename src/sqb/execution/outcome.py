"""How bringing a relation up to date ended, and how a table wants to be stored."""

from __future__ import annotations

import msgspec

from sqb.execution.events import Rows
from sqb.execution.run import Published
from sqb.planning.plan import PlanWarning, Strategy


class Outcome(msgspec.Struct, frozen=True):
    """How bringing a relation up to date ended: what stands now, and whether it is new."""

    published: Published
    status: str
    rows: Rows | None = None
    amended: bool = False
    strategy: Strategy | None = None
    warnings: tuple[PlanWarning, ...] = ()


class Layout(msgspec.Struct, frozen=True):
    """How a table is stored: partitioning, order, properties."""

    partitioned_by: tuple[str, ...] = ()
    sorted_by: tuple[str, ...] = ()
    properties: dict[str, str] = {}
