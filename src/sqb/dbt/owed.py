"""Which tests run: those of nodes that run, and those that are owed.

A test is owed until it passed on the very build that is recorded of what it reads. A unit test
reads the model's text instead of its rows. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from sqb.dbt.expect import planned_type, same_identity
from sqb.dbt.nodes import TESTS, DbtNode
from sqb.graph.graph import Graph
from sqb.hashing import digest
from sqb.identity.data_id import UNKNOWN, InputState, source_data
from sqb.lake.metadata import TableFacts
from sqb.planning.plan import Action, Cause, PlannedNode, PlanWarning
from sqb.state.record import Record

#: Outcomes after which a test has been done, as far as its severity asks.
SETTLED = frozenset({"pass", "warn"})
_FAILED = frozenset({"fail", "error"})

#: What a test rests on, by unique id of what it reads: rows for a data test, a definition for a
#: unit test; None if that can't be told, which equals nothing.
Ground = Callable[[str, bool], str | None]


def ground(
    recorded: Mapping[str, Record],
    relations: Mapping[str, TableFacts],
    sources: Mapping[str, InputState],
) -> Ground:
    """What tests rest on, by what was recorded; a relation without a record stands for itself."""

    def of(name: str, definition: bool) -> str | None:
        if name in sources:
            data = sources[name].data
            return data if data != UNKNOWN else None
        record = recorded.get(name)
        if record is not None:
            return record.local if definition else record.data
        facts = relations.get(name)
        if facts is None:
            return ""
        # nothing tells the rows of a relation without a uuid from others
        return source_data(facts.uuid, facts.shape, facts.data_snapshot_id) if facts.uuid else None

    return of


def proof(test: DbtNode, on: Ground) -> str | None:
    """What an outcome of a test is an outcome on; None equals nothing, not even itself."""
    fields: list[str] = []
    for parent in test.parents:
        found = on(parent, test.type == "unit_test")
        if found is None:
            return None
        fields += parent, found
    return digest(*fields)


def owed(test: DbtNode, record: Record | None, on: Ground, mode: str) -> str | None:
    """Why a test is owed, or None: ``never_run``, ``changed``, ``new_build`` or ``failed``."""
    if record is None or not record.outcome:
        return "never_run"
    if not same_identity(test, record, mode):
        return "changed"
    if record.data != proof(test, on):
        return "new_build"
    return None if record.outcome in SETTLED else "failed"


def wanted_models(
    tests: Iterable[DbtNode], rows: Mapping[str, Record], on: Ground, mode: str
) -> dict[str, Cause]:
    """Models that have to run for an owed unit test: dbt runs one only together with its model."""
    return {
        test.attached: Cause(test.unique_id, "test_owed")
        for test in tests
        if test.type == "unit_test" and test.attached
        if owed(test, rows.get(test.unique_id), on, mode)
    }


def barred_below(
    tests: Iterable[DbtNode],
    rows: Mapping[str, Record],
    on: Ground,
    mode: str,
    graph: Graph,
) -> dict[str, Cause]:
    """Nodes that must not be built on what failed an error-level test, by the first such test.

    As in dbt, a test of several nodes guards only what is below all of them.
    """
    out: dict[str, Cause] = {}
    for test in tests:
        record = rows.get(test.unique_id)
        if record is None or record.outcome not in _FAILED or test.severity != "error":
            continue
        if owed(test, record, on, mode) != "failed" or not test.parents:
            continue
        below = set.intersection(*(graph.descendants([parent]) for parent in test.parents))
        cause = Cause(test.unique_id, "upstream_test_failed")
        for name in below - set(test.parents):
            out.setdefault(name, cause)
    return out


def plan_tests(
    nodes: Mapping[str, DbtNode],
    selected: Collection[str],
    planned: Mapping[str, PlannedNode],
    rows: Mapping[str, Record],
    on: Ground,
    mode: str,
) -> tuple[PlannedNode, ...]:
    """Every selected test: run, current, or blocked with what it tests."""
    return tuple(
        _plan(node, nodes, planned, rows.get(name), on, mode)
        for name, node in nodes.items()
        if name in selected and node.type in TESTS
    )


def _plan(
    test: DbtNode,
    nodes: Mapping[str, DbtNode],
    planned: Mapping[str, PlannedNode],
    record: Record | None,
    on: Ground,
    mode: str,
) -> PlannedNode:
    def node(
        action: Action,
        reason: str,
        cause: Cause | None = None,
        detail: dict[str, str] | None = None,
    ) -> PlannedNode:
        return PlannedNode(
            test.unique_id,
            planned_type(test),
            test.materialized,
            action,
            reason,
            cause=cause,
            detail=detail,
        )

    above = [planned[parent] for parent in test.parents if parent in planned]
    for parent in above:
        if parent.action == "block":
            return node("block", parent.reason, parent.cause or Cause(parent.name, parent.reason))
    for parent in above:
        if parent.action == "run":
            return node("run", "upstream_changed", Cause(parent.name, parent.reason))
    model = nodes.get(test.attached or "") if test.type == "unit_test" else None
    why = owed(test, record, on, mode)
    if why is None or (model is not None and model.is_ephemeral):
        # dbt build has no turn for an ephemeral model, nor for its unit tests
        return node("skip", "no_change")
    action: Action = "skip" if test.type == "unit_test" else "run"
    return node(action, "test_owed", None, {"kind": "test", "name": why})


def unit_tests_alone(tests: Iterable[PlannedNode]) -> tuple[PlanWarning, ...]:
    """Owed unit tests that were selected without their model."""
    return tuple(
        PlanWarning(
            "B009",
            test.name,
            f"`{test.name}` is owed, but dbt runs a unit test only together with its model: "
            "select that too",
        )
        for test in tests
        if test.action == "skip" and test.reason == "test_owed"
    )
