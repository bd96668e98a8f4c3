"""The plan: for every selected node what happens to it and why."""

from __future__ import annotations

from typing import Literal

import msgspec

Action = Literal["run", "reuse", "skip", "block"]

#: Reasons a node runs by itself, whatever its inputs do.
OWN_REASONS = frozenset(
    {
        "first_run",
        "relation_missing",
        "relation_changed",
        "full_refresh",
        "forced",
        "query_changed",
        "config_changed",
        "seed_changed",
        "constant_changed",
    }
)


#: Reasons that lie in what the node's own files say.
DEFINITION_REASONS = frozenset({"query_changed", "config_changed"})


class Cause(msgspec.Struct, frozen=True):
    """The root of a chain: the node that moved first, and why."""

    node: str
    reason: str


class Numbers(msgspec.Struct, frozen=True):
    """What a way was thought to take beside a rebuild, and how much changed; None: not known.

    ``runs`` is how many earlier runs the first figure rests on, ``full_runs`` the second.
    """

    seconds: float | None = None
    full_seconds: float | None = None
    runs: int = 0
    full_runs: int = 0
    changed_rows: int | None = None
    keys: int | None = None


class Strategy(msgspec.Struct, frozen=True):
    """How a table is brought up to date; ``code`` says why, where a rebuild has a reason.

    ``advice`` is what would make it cheaper.
    """

    name: str
    why: str
    key: tuple[str, ...] | None = None
    rejected: tuple[dict[str, str], ...] = ()
    code: str | None = None
    estimate: Numbers | None = None
    advice: tuple[str, ...] = ()


class PlannedNode(msgspec.Struct, frozen=True):
    """One node of the plan.

    ``if_changed`` names nodes of this plan whose outcome decides whether this one runs at all.
    ``detail`` says more about a reason: ``{"kind": "moved", "name": "dev.old_name"}``.
    """

    name: str
    type: str
    materialized: str
    action: Action
    reason: str
    if_changed: tuple[str, ...] | None = None
    cause: Cause | None = None
    strategy: Strategy | None = None
    diff: str | None = None
    detail: dict[str, str] | None = None
    replay: str | None = None
    #: The model whose groups it holds, for sqb's own use.
    state_of: str | None = None

    @property
    def maybe(self) -> bool:
        """Will only the run itself show whether there is work?"""
        return self.if_changed is not None


class PlanWarning(msgspec.Struct, frozen=True):
    """Something the user should know that stops nothing."""

    code: str
    node: str | None
    message: str


class Plan(msgspec.Struct, frozen=True):
    """All selected nodes in the order they can run.

    ``rerecord`` are current nodes whose record should be written anew (an upgrade, or an upstream
    that was redefined without moving a row), ``redescribe`` those whose comments are to be written.
    ``publish_mode`` is how the catalog lets tables be published; None if no build has found out
    yet.
    """

    target: str
    nodes: tuple[PlannedNode, ...]
    warnings: tuple[PlanWarning, ...]
    rerecord: tuple[str, ...] = ()
    redescribe: tuple[str, ...] = ()
    publish_mode: str | None = "alias"

    @property
    def work(self) -> tuple[PlannedNode, ...]:
        """The nodes that run or may run."""
        return tuple(n for n in self.nodes if n.action == "run")

    def summary(self) -> dict[str, int]:
        """The counts of ``plan --json``."""
        maybe = sum(1 for n in self.nodes if n.action == "run" and n.maybe)
        counts = {a: sum(1 for n in self.nodes if n.action == a) for a in ("run", "reuse", "skip")}
        return {
            "selected": len(self.nodes),
            "run": counts["run"] - maybe,
            "maybe": maybe,
            "reuse": counts["reuse"],
            "current": counts["skip"],
            "blocked": sum(1 for n in self.nodes if n.action == "block"),
        }
