"""The build: start Spark while the lake is opened, run the plan, record what really happened."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqb.errors import SqbError
from sqb.execution.describe import describe
from sqb.execution.events import BuildResult, Event, Listener, NodeResult, untouched
from sqb.execution.nodes import amend, build_node, still_current
from sqb.execution.outcome import Outcome
from sqb.execution.run import Run
from sqb.execution.scheduler import run_all
from sqb.hashing import digest
from sqb.identity.expected import session_conf
from sqb.lake.failpoints import reached
from sqb.lake.staging import Lease, stage_schema
from sqb.planning.plan import Plan, PlannedNode
from sqb.project.secrets import mask, masked
from sqb.spark.pool import SessionPool
from sqb.spark.session import add_tag, interrupt, name_jobs
from sqb.state.definition import unpack
from sqb.state.record import Record
from sqb.state.store import StateStore
from sqb.state.tables import Fingerprint, Observation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def execute(
    run: Run,
    plan: Plan,
    store: StateStore,
    open_session: Callable[[], SparkSession],
    *,
    repairs: Mapping[str, Record],
    fail_fast: bool,
    concurrency: int,
    listener: Listener,
) -> BuildResult:
    """Walk the plan. State is appended once, at the end, also after failures and Ctrl-C."""
    started = time.perf_counter()
    namespaces = sorted({run.expected(n.name).namespace for n in plan.nodes})
    stages = [stage_schema(namespace) for namespace in namespaces]
    outcomes: dict[str, Outcome] = {}
    results: dict[str, NodeResult] = {}
    interrupted = False
    work = {node.name: node for node in plan.work}
    for name in plan.rerecord:
        # parents first, and before their readers run: these record the versions they find
        run.publish(name, amend(run, name, run.input_states(name)).published)
    if work:
        opening = threading.Thread(target=_open, args=(store,), name="open the lake", daemon=True)
        opening.start()
        with Lease(run.catalog, stages, run.id):
            session = _in_thread(open_session)
            opening.join()
            for stage in stages:
                run.catalog.sweep(stage, time.time(), facts=run.facts)
            run.pool = SessionPool(session, concurrency, session_conf(run.config.spark.conf))
            run.work = frozenset(work)
            results, interrupted = _walk(run, work, outcomes, fail_fast, concurrency, listener)
            run.shared.close(session)
            _describe(run, plan)
            # while the lease still protects the snapshots that the records name
            _record(run, plan, store, outcomes, results, repairs)
    else:
        for stage in stages:
            run.catalog.sweep(stage, time.time(), facts=run.facts)
        if plan.redescribe:
            with Lease(run.catalog, stages, run.id):
                _describe(run, plan)
        _record(run, plan, store, outcomes, results, repairs)
    reached("publish:7")
    nodes = tuple(results.get(node.name) or untouched(node) for node in plan.nodes)
    return BuildResult(run.id, plan, nodes, time.perf_counter() - started, interrupted)


def _open(store: StateStore) -> None:
    """Open it beforehand; who needs it hears if that fails."""
    with contextlib.suppress(Exception):
        store.open()


def _describe(run: Run, plan: Plan) -> None:
    for name in plan.redescribe:
        describe(run, name)


def _in_thread(open_session: Callable[[], SparkSession]) -> SparkSession:
    """Start Spark beside the main thread, which alone hears Ctrl-C and must not do so half way."""
    answers: list[SparkSession] = []
    errors: list[BaseException] = []

    def start() -> None:
        try:
            answers.append(open_session())
        except BaseException as error:  # noqa: BLE001 - raised again below, by the main thread
            errors.append(error)

    starting = threading.Thread(target=start, name="start Spark", daemon=True)
    starting.start()
    interrupted = False
    while starting.is_alive():
        try:
            starting.join(0.2)
        except KeyboardInterrupt:  # noqa: PERF203 - heard while waiting, told when it is safe
            interrupted = True
    if interrupted:
        raise KeyboardInterrupt
    if errors:
        raise errors[0]
    return answers[0]


def _walk(
    run: Run,
    work: Mapping[str, PlannedNode],
    outcomes: dict[str, Outcome],
    fail_fast: bool,
    concurrency: int,
    listener: Listener,
) -> tuple[dict[str, NodeResult], bool]:
    stop = threading.Event()
    sessions: set[SparkSession] = set()

    def one(name: str) -> NodeResult:
        node = work[name]
        began = time.perf_counter()
        try:
            states = run.input_states(name)
            if still_current(run, node, states):
                outcome = amend(run, name, states)
                reason = "upstream_unchanged"
            else:
                if run.pool is None:
                    raise AssertionError("no sessions")
                listener(Event("node_started", name))
                with run.pool.acquire() as sibling:
                    sessions.add(sibling)
                    name_jobs(sibling, f"sqb {name}")
                    add_tag(sibling, f"sqb-{run.id}")
                    outcome = build_node(run, sibling, node, states)
                reason = node.reason
        except Exception as error:  # noqa: BLE001 - a thread must always answer, whatever happened
            seconds = time.perf_counter() - began
            told = _told(error, name, interrupted=stop.is_set()).to_json()
            clean = masked(told, lambda text: mask(text, run.config, environ=run.environ))
            return NodeResult(name, "failed", node.reason, seconds, error=clean)
        outcomes[name] = outcome
        run.publish(name, outcome.published)
        seconds = time.perf_counter() - began
        return NodeResult(
            name,
            outcome.status,  # type: ignore[arg-type]
            reason,
            seconds,
            outcome.rows,
            strategy=outcome.strategy,
            warnings=outcome.warnings,
        )

    def cancel() -> None:
        if not stop.is_set():
            stop.set()
            run.stopping.set()
            listener(Event("note", message="interrupted: cancelling what runs"))
        for sibling in list(sessions):
            interrupt(sibling, f"sqb-{run.id}")

    return run_all(
        list(work),
        _dependencies(run, work),
        one,
        concurrency=concurrency,
        fail_fast=fail_fast,
        on_result=lambda result: listener(Event("node_finished", result.name, result)),
        on_stop=cancel,
    )


def _told(error: Exception, name: str, *, interrupted: bool) -> SqbError:
    """What is said about a node that did not reach its goal."""
    if interrupted:
        return SqbError("X005", f"`{name}` was interrupted", exit_code=1)
    if isinstance(error, SqbError):
        return error
    return SqbError("X004", f"`{name}`: {type(error).__name__}: {error}", exit_code=1)


def _dependencies(run: Run, work: Mapping[str, PlannedNode]) -> dict[str, list[str]]:
    """For each node of the work: the work it rests on, seen through views that stay as they are."""
    through: dict[str, frozenset[str]] = {}
    for name, expected in run.situation.expected.items():
        above: set[str] = set()
        for parent in expected.inputs:
            if parent in work:
                above.add(parent)
            else:
                above |= through.get(parent, frozenset())
        through[name] = frozenset(above)
    return {name: sorted(through[name]) for name in work}


def _record(
    run: Run,
    plan: Plan,
    store: StateStore,
    outcomes: Mapping[str, Outcome],
    results: Mapping[str, NodeResult],
    repairs: Mapping[str, Record],
) -> None:
    """Append what is true now: built, confirmed, amended and repaired nodes, consumed sources."""
    records = dict(repairs)
    for name in plan.rerecord:
        confirmed = run.published(name)
        if confirmed is not None:
            records[name] = confirmed.record
    for name, outcome in outcomes.items():
        records[name] = outcome.published.record
    fingerprints = [
        Fingerprint(
            record,
            run.catalog.name,
            run.expected(name).namespace,
            run.expected(name).relation,
            _text(run, name, record),
        )
        for name, record in sorted(records.items())
    ]
    observed_in = _observed(run, plan, outcomes, results)
    observations = []
    for source in sorted(observed_in):
        table, sighting = run.compiled.sources[source], run.situation.sightings[source]
        value = sighting.value or ""
        observations.append(
            Observation(
                source,
                table.catalog or run.catalog.name,
                table.namespace,
                table.table,
                run.id,
                value,
                digest(source, sighting.strategy, sighting.kind, value),
                run.now_us,
                sighting.strategy,
                sighting.kind,
            )
        )
    if fingerprints or observations:
        store.append(fingerprints, observations, observed_in)


def _text(run: Run, name: str, record: Record) -> str:
    """The definition that a record speaks of: a repaired one may be older than the project's."""
    expected = run.expected(name)
    if record.query == expected.query:
        return run.definition(name)
    head = run.heads.get((expected.namespace, expected.relation))
    return (unpack(run.facts.definition(head.location)) if head is not None else None) or ""


def _observed(
    run: Run, plan: Plan, outcomes: Mapping[str, Outcome], results: Mapping[str, NodeResult]
) -> dict[str, list[str]]:
    """Sources that moved and whose readers in this run all succeeded -> those readers' schemas.

    Everything below a source counts, also what was blocked: the next build must see the change.
    """
    unfinished = {node.name for node in plan.nodes if node.action == "block"}
    unfinished |= {name for name in results if name not in outcomes}
    readers: dict[str, list[str]] = {}
    for name, outcome in outcomes.items():
        record, before = outcome.published.record, run.situation.recorded.get(name)
        was = before.read() if before is not None else {}
        for source, data in record.read().items():
            sighting = run.situation.sightings.get(source)
            if sighting is not None and sighting.value is not None and was.get(source) != data:
                readers.setdefault(source, []).append(name)
    return {
        source: sorted({run.expected(name).namespace for name in names})
        for source, names in readers.items()
        if unfinished.isdisjoint(run.situation.graph.descendants([source]))
    }
