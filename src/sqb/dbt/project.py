"""``DbtProject``: an existing dbt project, planned and built without touching a file of it.

It brings together what dbt says, what the warehouse shows and what is recorded, hands stale nodes
to dbt, and records what dbt did. It holds no rules of its own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from sqb.dbt.decide import Seen, Wish, decide
from sqb.dbt.drive import Ended, newer_parse, run_dbt, with_java
from sqb.dbt.expect import is_planned
from sqb.dbt.nodes import TESTS, DbtNode
from sqb.dbt.outcome import Outcome, read_outcome
from sqb.dbt.plan import DbtPlan
from sqb.dbt.reader import DbtReader
from sqb.dbt.recording import (
    Run,
    fingerprints,
    observations,
    records_of_built,
    records_of_tests,
)
from sqb.dbt.request import Request
from sqb.dbt.selection import RESULTS_FILE, chosen, run_arguments
from sqb.dbt.sources import sight_all
from sqb.dbt.warehouse import Asking, LakeWarehouse, Standing, Warehouse
from sqb.errors import SqbError, did_you_mean
from sqb.execution.events import (
    BuildResult,
    Event,
    Listener,
    NodeResult,
    Status,
    new_run_id,
    untouched,
)
from sqb.execution.failures import message_of
from sqb.freshness.sighting import Sighting
from sqb.identity.constants import clock
from sqb.lake.metadata import TableFacts
from sqb.project.secrets import masker
from sqb.state.record import Record

if TYPE_CHECKING:
    from sqb.dbt.explaining import DbtExplanation

_STATUS: dict[str, Status] = {"ok": "success", "failed": "failed", "left": "blocked"}


class DbtResult(msgspec.Struct, frozen=True):
    """A plan and how it ended; ``ended`` is None if dbt was not started."""

    plan: DbtPlan
    build: BuildResult
    ended: Ended | None = None
    invocation: str = ""


class _Sight(msgspec.Struct, frozen=True):
    """All that one plan was made from."""

    standing: Standing
    sightings: dict[str, Sighting]
    seen: Seen


class DbtProject:
    """A dbt project for one request: plan it, build it, explain it.

    ``listener`` hears of what takes a while; ``directory`` is where the user stands.
    """

    def __init__(
        self,
        request: Request,
        *,
        directory: str | Path = ".",
        environ: Mapping[str, str] | None = None,
        listener: Listener | None = None,
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self._hear: Listener = listener or (lambda _: None)
        self.reader = DbtReader(
            request,
            start=Path(directory).absolute(),
            environ=self.environ,
            say=self._say,
        )
        self._warehouse: Warehouse | None = None
        self._asking: Asking | None = None

    def _say(self, text: str) -> None:
        self._hear(Event("note", message=text))

    @property
    def root(self) -> Path:
        """The folder of ``dbt_project.yml``."""
        return self.reader.root

    @cached_property
    def mask(self) -> Callable[[str], str]:
        """Takes secrets out of a text, those of the profile among them."""
        # reading the profile costs more than a plan; what it holds is shown only in errors
        return masker(
            self.reader.found.config,
            environ=self.environ,
            settings=self.reader.profile.fields,
        )

    # Observe

    def warehouse(self) -> Warehouse:
        """Where dbt builds and the state is kept."""
        if self._warehouse is None:
            place, cache = self.reader.place, self.reader.work / "cache"
            if place.catalog is not None:
                self._warehouse = LakeWarehouse(place.catalog, place.schema, cache)
            elif place.method == "thrift":
                from sqb.dbt.thrift_warehouse import ThriftWarehouse

                self._warehouse = ThriftWarehouse(self.asking(), place.schema, cache)
            else:
                raise SqbError(
                    "B006",
                    f"the catalog of the target `{place.target}` can't be read without its Spark",
                    file=str(self.reader.profiles),
                    help="name an Iceberg catalog of type jdbc or rest in server_side_parameters, "
                    "in spark-defaults.conf or in [catalog] of sqlbuild_project.toml, or use "
                    "method thrift",
                )
        return self._warehouse

    def asking(self) -> Asking:
        """Someone who answers queries."""
        if self._asking is None:
            reader, place = self.reader, self.reader.place
            if place.method == "thrift":
                from sqb.dbt.thrift import Thrift

                self._asking = Thrift(reader.profile, reader.executable, self.environ)
            else:
                from sqb.dbt.spark_asking import SparkAsking, asking_settings

                # without a catalog there is no warehouse, and nobody comes this far
                assert place.catalog is not None
                self._asking = SparkAsking(
                    asking_settings(place.catalog, reader.profile.conf, reader.found.config),
                    environ=self.environ,
                    log_file=reader.work / "spark.log",
                    starting=lambda: self._hear(Event("spark_starting")),
                    started=lambda: self._hear(Event("spark_started")),
                )
        return self._asking

    def _look(self) -> _Sight:
        nodes = self.reader.nodes
        standing = self.warehouse().look(nodes)
        sightings = sight_all(
            nodes,
            _above(nodes, self.reader.selected),
            standing.relations,
            self.reader.work / "cache" / "freshness.mp",
            round(clock(self.environ).timestamp() * 1_000_000),
            self.asking,
            lambda error: self.mask(f"its freshness query failed: {message_of(error)}"),
            self._say,
        )
        seen = Seen(
            target=self.reader.place.target,
            nodes=nodes,
            rows=standing.rows,
            relations=_built(nodes, standing),
            sightings=sightings,
        )
        return _Sight(standing, sightings, seen)

    # Decide

    def plan(self) -> DbtPlan:
        """What a build would hand to dbt now, and why. Writes nothing."""
        return decide(self._look().seen, self._wish(), self.reader.settings)

    def explain(self, name: str) -> DbtExplanation:
        """Why a node would run or not."""
        from sqb.dbt.explaining import explained

        nodes = self.reader.nodes
        return explained(_named(name, nodes), self._look().seen, self._wish(), self.reader.settings)

    def _wish(self) -> Wish:
        reader, request = self.reader, self.reader.request
        return Wish(
            selected=reader.selected,
            command=request.command,
            selector=reader.selector,
            full_refresh=request.full_refresh,
            defer=bool(request.defer),
            # what is left out would be read from the other environment
            force=request.favors_state,
        )

    # Do

    def build(
        self,
        *,
        output: TextIO,
        on_plan: Callable[[DbtPlan], None] = lambda _: None,
        stopping: Callable[[int], None] | None = None,
    ) -> DbtResult:
        """Plan, then let dbt run what is stale; dbt is not started if nothing is.

        dbt's own words go to ``output``; ``stopping`` is told of requests to stop.
        """
        began = time.perf_counter()
        sight = self._look()
        plan = decide(sight.seen, self._wish(), self.reader.settings)
        on_plan(plan)
        if not plan.work:
            return DbtResult(plan, BuildResult.idle(plan.as_plan()))
        run = Run(new_run_id(), time.time_ns() // 1000, self.environ.get("USER", ""))
        for statement in plan.drop_views.values():
            self._say(statement)
            self.asking().rows(statement)
        # nobody else may hold the lake while dbt's own Spark is at it
        self.close()
        ended, outcome = self._run_dbt(plan, output, stopping)
        if self.reader.request.partial is None:
            self._record(sight, plan, outcome, run)
        result = _result(plan, outcome, run, ended, time.perf_counter() - began)
        self._leave(plan, result)
        return DbtResult(plan, result, ended, outcome.invocation)

    def _run_dbt(
        self, plan: DbtPlan, output: TextIO, stopping: Callable[[int], None] | None
    ) -> tuple[Ended, Outcome]:
        reader = self.reader
        environ = self.environ
        if reader.place.method == "session":
            environ = with_java(environ, reader.work / "cache")
        with chosen(reader.folders.states, plan.work) as state:
            words = run_arguments(
                reader.request,
                state,
                full_refresh=plan.full_refresh,
                parsed=newer_parse(reader.folders, reader.artifacts),
            )
            ended = run_dbt(
                reader.executable,
                words,
                root=reader.root,
                environ=environ,
                output=output,
                stopping=stopping,
            )
            outcome = read_outcome(reader.artifacts / RESULTS_FILE, state, plan.work)
        return ended, outcome

    def _record(self, sight: _Sight, plan: DbtPlan, outcome: Outcome, run: Run) -> None:
        """Write down what succeeded; a test's outcome whatever it was."""
        nodes, before = self.reader.nodes, sight.standing.rows
        ok = outcome.that("ok")
        tested = {
            name: node.status
            for name, node in outcome.nodes.items()
            if node.did != "left" and nodes[name].type in TESTS
        }
        if not ok and not tested:
            return
        warehouse = self.warehouse()
        relations = _built(nodes, warehouse.look(nodes))
        states = {n: s.state for n, s in sight.sightings.items() if s.state is not None}
        made = records_of_built(nodes, ok, before, relations, states, run)
        rows: dict[str, Record] = {**before, **made}
        made |= records_of_tests(nodes, tested, rows, relations, states, run)
        unfinished = {n.name for n in plan.nodes if n.action == "block"}
        unfinished |= {*plan.work} - {*ok}
        database = warehouse.database
        warehouse.record(
            fingerprints(made, nodes, database, self.reader.place.schema),
            observations(nodes, made, unfinished, before, sight.sightings, database, run),
        )

    def _leave(self, plan: DbtPlan, result: BuildResult) -> None:
        from sqb.execution.artifacts import Artifacts
        from sqb.project.layout import work_folder

        folder = work_folder(self.root) / "runs" / str(result.run_id)
        Artifacts(folder, plan.as_plan(), self.mask).finish(result)

    def close(self) -> None:
        """Let go of the lake and of Spark; both are opened again when they are needed."""
        if self._warehouse is not None:
            self._warehouse.close()
            self._warehouse = None
        if self._asking is not None:
            self._asking.close()
            self._asking = None

    def __enter__(self) -> DbtProject:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(SqbError):
            self.close()


def _built(nodes: Mapping[str, DbtNode], standing: Standing) -> dict[str, TableFacts]:
    return {n: f for n, f in standing.relations.items() if is_planned(nodes[n])}


def _above(nodes: Mapping[str, DbtNode], selected: tuple[str, ...]) -> frozenset[str]:
    """The selected nodes and all that they rest on."""
    found = set(selected)
    pending = list(selected)
    while pending:
        node = nodes.get(pending.pop())
        for parent in node.parents if node is not None else ():
            if parent not in found:
                found.add(parent)
                pending.append(parent)
    return frozenset(found)


def _named(name: str, nodes: Mapping[str, DbtNode]) -> DbtNode:
    """The node that a user means: by unique id, or by a name that only one has."""
    if name in nodes:
        return nodes[name]
    found = [node for node in nodes.values() if name in (node.name, node.label)]
    if len(found) > 1:
        models = [node for node in found if node.type not in TESTS and node.type != "source"]
        found = models or found
    if len(found) == 1:
        return found[0]
    if found:
        raise SqbError(
            "S001",
            f"`{name}` is the name of several nodes",
            help=f"write one of {', '.join(node.unique_id for node in found)}",
        )
    names = [node.name for node in nodes.values() if node.type not in TESTS]
    raise SqbError(
        "S001",
        f"there is no node named `{name}` in the dbt project",
        help=did_you_mean(name, names) or "`dbt ls` lists all nodes",
    )


def _result(plan: DbtPlan, outcome: Outcome, run: Run, ended: Ended, seconds: float) -> BuildResult:
    """How every planned node ended."""
    shown = plan.as_plan()
    results: list[NodeResult] = []
    for node in shown.nodes:
        did = outcome.nodes.get(node.name)
        if did is None:
            results.append(untouched(node))
            continue
        error = None
        if did.did == "failed":
            error = SqbError("B012", did.message or f"dbt says: {did.status}").to_json()
        results.append(
            NodeResult(node.name, _STATUS[did.did], node.reason, did.seconds, error=error)
        )
    return BuildResult(run.id, shown, tuple(results), seconds, ended.interrupted)
