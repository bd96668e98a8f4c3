"""What a build tells while it runs, to whoever listens: the terminal, the artifacts, a notebook."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Literal

import msgspec

from sqb.planning.plan import Plan, PlannedNode, PlanWarning, Strategy

Status = Literal["success", "failed", "blocked", "skipped", "reused", "unchanged", "current"]


class Rows(msgspec.Struct, frozen=True):
    """How many rows a node wrote, took away and holds."""

    inserted: int | None = None
    deleted: int | None = None
    total: int | None = None


class NodeResult(msgspec.Struct, frozen=True):
    """How a node ended; ``blocked_by`` names the failures above it that kept it from starting."""

    name: str
    status: Status
    reason: str
    seconds: float = 0.0
    rows: Rows | None = None
    error: dict[str, object] | None = None
    blocked_by: tuple[str, ...] = ()
    strategy: Strategy | None = None
    warnings: tuple[PlanWarning, ...] = ()


def untouched(node: PlannedNode) -> NodeResult:
    """How a node ends that the plan gave nothing to do."""
    return NodeResult(node.name, "blocked" if node.action == "block" else "current", node.reason)


class BuildResult(msgspec.Struct, frozen=True):
    """How every selected node ended, in plan order."""

    run_id: str | None
    plan: Plan
    nodes: tuple[NodeResult, ...]
    seconds: float
    interrupted: bool = False

    @classmethod
    def idle(cls, plan: Plan) -> BuildResult:
        """Nothing to do: every node is current, no run took place."""
        return cls(None, plan, tuple(untouched(node) for node in plan.nodes), 0.0)

    @property
    def failed(self) -> tuple[NodeResult, ...]:
        """The nodes that did not reach their goal."""
        return tuple(n for n in self.nodes if n.status in ("failed", "blocked"))


class Event(msgspec.Struct, frozen=True):
    """Something happened: ``kind`` says what, ``node`` to whom."""

    kind: Literal["spark_starting", "spark_started", "node_started", "node_finished", "note"]
    node: str | None = None
    result: NodeResult | None = None
    message: str | None = None


Listener = Callable[[Event], None]


def new_run_id() -> str:
    """Sortable by time, unique: ``20260131T060000-1a2b3c``."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
