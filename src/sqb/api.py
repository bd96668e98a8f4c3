"""``Project``: the seam that notebooks, schedulers and the command line use.

It brings the rooms together (compile, observe, decide, execute) and holds no rules of its own.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.compile.compiler import compile_project
from sqb.compile.nodes import Compiled
from sqb.errors import SqbError, did_you_mean
from sqb.execution.events import BuildResult, Event
from sqb.execution.look import Observed, look
from sqb.freshness.observe import observe_sources
from sqb.graph.graph import Graph
from sqb.graph.selectors import Selectable, select
from sqb.identity.constants import bound_constants, clock
from sqb.identity.expected import (
    Expected,
    build_graph,
    expect,
    namespaces_of,
    session_time_zone,
)
from sqb.lake.catalog import SqlCatalog
from sqb.lake.facts import FactsCache
from sqb.lake.staging import stage_schema
from sqb.planning.cascade import Verdict
from sqb.planning.plan import Plan
from sqb.planning.planner import decide
from sqb.planning.situation import Situation
from sqb.project.config import Config, load_config
from sqb.project.layout import find_project, read_files
from sqb.state.record import Record
from sqb.state.store import StateStore
from sqb.state.tables import FINGERPRINTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sqb.execution.events import Listener
    from sqb.execution.run import Run
    from sqb.upkeep.upkeep import Upkeep


#: One selector or several; several are united.
Selectors = str | Sequence[str]


class Explanation(msgspec.Struct, frozen=True):
    """Why a node runs or not, and the SQL that a run would send to Spark."""

    plan: Plan
    expected: Expected
    record: Record | None
    upstream: tuple[str, ...]
    downstream: tuple[str, ...]
    sql: str


class Project:
    """A project folder and a target.

    ``spark``: a session of your own (notebook, spark-submit); it is used and never stopped.
    """

    def __init__(
        self,
        directory: str | Path = ".",
        *,
        target: str | None = None,
        vars: Mapping[str, object] | None = None,
        spark: SparkSession | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.root = find_project(Path(directory).absolute())
        self.config: Config = load_config(
            self.root, target=target, cli_vars=dict(vars or {}), environ=self.environ
        )
        self._given = spark
        self._own: SparkSession | None = None

    # Compile

    @property
    def work_dir(self) -> Path:
        """``.sqb``: disposable, ignored by git."""
        folder = self.root / ".sqb"
        if not folder.exists():
            folder.mkdir()
            (folder / ".gitignore").write_text("*\n")
        return folder

    @cached_property
    def compiled(self) -> Compiled:
        """The project's files, compiled; unchanged ones come from the cache."""
        files = read_files(self.root)
        if files.later:
            raise SqbError(
                "C011",
                f"{files.later[0]}: this kind of file arrives in a later release",
                file=files.later[0],
                line=1,
                help="release 0.5 brings functions, audits, tests, hooks and Python nodes",
            )
        cache = self.work_dir / "cache" / "compile.mp"
        return compile_project(self.config, files, self.environ, cache)

    @cached_property
    def graph(self) -> Graph:
        """Models, seeds and sources with their edges."""
        return build_graph(self.compiled)

    @cached_property
    def expected(self) -> dict[str, Expected]:
        """Every buildable node as the project wants it, parents first."""
        return expect(self.compiled, self.graph, self.config)

    def selectable(self) -> dict[str, Selectable]:
        """Every node as selectors see it."""
        out = {e.name: Selectable(e.name, e.type, e.path, e.tags) for e in self.expected.values()}
        for source in self.compiled.sources.values():
            out[source.name] = Selectable(source.name, "source", source.file or "", ())
        return out

    def select(self, include: Selectors = (), exclude: Selectors = ()) -> frozenset[str]:
        """The buildable nodes that selectors pick; without any, all of them."""
        include = [include] if isinstance(include, str) else include
        exclude = [exclude] if isinstance(exclude, str) else exclude
        if not include and not exclude:
            return frozenset(self.expected)
        return frozenset(select(self.selectable(), self.graph, include, exclude))

    # Observe

    @cached_property
    def catalog(self) -> SqlCatalog:
        """The lake's catalog."""
        catalog = self.config.catalog
        return SqlCatalog(catalog.name, catalog.uri, catalog.warehouse)

    @cached_property
    def facts(self) -> FactsCache:
        """What metadata files say, cached for ever by location."""
        return FactsCache(self.work_dir / "cache" / "facts.mp", self.config.catalog.warehouse)

    @cached_property
    def store(self) -> StateStore:
        """The state tables."""
        catalog = self.config.catalog
        cache = self.work_dir / "cache" / "state.mp"
        return StateStore(catalog.name, catalog.uri, catalog.warehouse, cache)

    @cached_property
    def upkeep(self) -> Upkeep:
        """What keeps the lake small: ``survey``, then ``remove``; ``tidy`` ends every build."""
        from sqb.upkeep.upkeep import Upkeep

        lake = (self.catalog, self.facts, self.store)
        return Upkeep(self.config, self.compiled, self.expected, *lake, self.environ)

    def namespaces(self) -> list[str]:
        """The schemas that this target writes."""
        return namespaces_of(self.config, self.expected)

    def constants(self) -> dict[str, str]:
        """The bound constants of this run, in the session's time zone."""
        return bound_constants(clock(self.environ), session_time_zone(self.config.spark.conf))

    def observe(self) -> Observed:
        """One look at the lake: heads, facts, records."""
        return look(self.expected, self.namespaces(), self.catalog, self.facts, self.store)

    # Decide

    def plan(
        self,
        select: Selectors = (),
        exclude: Selectors = (),
        *,
        force: bool = False,
        full_refresh: bool = False,
    ) -> Plan:
        """What a build would do now, and why. Writes nothing."""
        selected = self.select(select, exclude)
        observed = self.observe()
        plan, _, _ = self._decide(selected, observed, force=force, full_refresh=full_refresh)
        self.facts.save(h.location for h in observed.heads.values())
        return self._with_diffs(plan, observed)

    def _decide(
        self, selected: frozenset[str], observed: Observed, *, force: bool, full_refresh: bool
    ) -> tuple[Plan, dict[str, Verdict], Situation]:
        situation = Situation(
            target=self.config.target.name,
            graph=self.graph,
            expected=self.expected,
            recorded=observed.recorded,
            known=frozenset(observed.rows),
            relations=observed.relations,
            sources=observe_sources(self.compiled.sources.values(), observed.heads, self.facts),
            selected=selected,
            constants=self.constants(),
            force=force,
            full_refresh=full_refresh,
            outdated=observed.outdated,
        )
        plan, verdicts = decide(situation)
        return plan, verdicts, situation

    def _with_diffs(self, plan: Plan, observed: Observed) -> Plan:
        """The plan with a diff of the definition where that is the reason."""
        if not any(node.action == "run" for node in plan.nodes):
            return plan
        from sqb.execution.diffs import with_diffs

        return with_diffs(plan, self.compiled, self.expected, observed, self.facts, self.store)

    # Do

    def build(
        self,
        select: Selectors = (),
        exclude: Selectors = (),
        *,
        force: bool = False,
        full_refresh: bool = False,
        fail_fast: bool = False,
        concurrency: int | None = None,
        listener: Listener | None = None,
        on_plan: Callable[[Plan], None] | None = None,
        types: frozenset[str] | None = None,
    ) -> BuildResult:
        """Plan, then run what is stale. Spark is started only if there is work.

        ``types`` narrows the selection (``sqb seed`` builds seeds alone); ``on_plan`` hears the
        plan before anything runs.
        """
        selected = self.select(select, exclude)
        if types is not None:
            selected = frozenset(n for n in selected if self.expected[n].type in types)
        observed = self.observe()
        plan, verdicts, situation = self._decide(
            selected, observed, force=force, full_refresh=full_refresh
        )
        plan = self._with_diffs(plan, observed)
        self.facts.save(h.location for h in observed.heads.values())
        if on_plan is not None:
            on_plan(plan)
        idle = not (plan.work or plan.rerecord or observed.repairs or self._leftovers(observed))
        if idle:
            return BuildResult.idle(plan)
        return self._execute(
            plan,
            verdicts,
            situation,
            observed,
            fail_fast=fail_fast,
            concurrency=concurrency or self.config.settings.concurrency,
            listener=listener or (lambda _: None),
        )

    def _leftovers(self, observed: Observed) -> bool:
        """Did an earlier build leave staged tables behind?"""
        stages = {stage_schema(namespace) for namespace in self.namespaces()}
        return any(namespace in stages for namespace, _ in observed.heads)

    def _execute(
        self,
        plan: Plan,
        verdicts: dict[str, Verdict],
        situation: Situation,
        observed: Observed,
        *,
        fail_fast: bool,
        concurrency: int,
        listener: Listener,
    ) -> BuildResult:
        from sqb.execution.artifacts import Artifacts
        from sqb.execution.build import execute

        run_id = new_run_id()
        artifacts = Artifacts(self.work_dir / "runs" / run_id, plan)
        run = self._run(run_id, situation, verdicts, observed)
        hear = artifacts.listening(listener)

        def open_session() -> SparkSession:
            if self._given is not None or self._own is not None:
                return self.session()
            hear(Event("spark_starting"))
            session = self.session(artifacts.folder / "spark.log")
            hear(Event("spark_started"))
            return session

        result = execute(
            run,
            plan,
            self.store,
            open_session,
            repairs=observed.repairs,
            fail_fast=fail_fast,
            concurrency=concurrency,
            listener=hear,
        )
        artifacts.finish(result)
        if not result.interrupted:
            made = run.heads_made()
            for note in self.upkeep.tidy(made, run_id, run.pool, result.seconds):
                hear(Event("note", message=note))
        self.facts.save(h.location for h in observed.heads.values())
        return result

    def _run(
        self,
        run_id: str,
        situation: Situation,
        verdicts: dict[str, Verdict],
        observed: Observed,
    ) -> Run:
        from sqb.execution.run import Run

        return Run(
            run_id,
            time.time_ns() // 1000,
            self.config,
            self.compiled,
            situation,
            verdicts,
            observed.heads,
            self.catalog,
            self.facts,
            self.environ,
        )

    def session(self, log_file: Path | None = None) -> SparkSession:
        """The Spark session: the one handed in, else this project's own, started on first use."""
        from sqb.spark.session import check_session, start_session
        from sqb.spark.settings import settings_of

        settings = settings_of(self.config)
        if self._given is not None:
            check_session(self._given, settings)
            return self._given
        if self._own is None:
            self._own = start_session(
                settings,
                log_file=log_file or self.work_dir / "spark.log",
                app_name=f"sqb {self.config.name}",
                environ=self.environ,
            )
        return self._own

    def query(self, sql: str) -> DataFrame:
        """Run a query in which names mean what they mean in a model."""
        from sqb.compile.compiler import names_of
        from sqb.compile.resolve import rebind
        from sqb.execution.statement import full_name, render

        sql = sql.strip().rstrip("; \n\t")
        names = names_of(self.config, self.compiled)
        analysis, bindings, extra = rebind(sql, names, self.compiled.sources, "query")
        sources = {**self.compiled.sources, **extra}

        def place(name: str, _: bool) -> tuple[str, bool]:
            node = self.expected.get(name)
            if node is not None:
                return full_name(self.catalog.name, node.namespace, node.relation), False
            source = sources[name]
            return full_name(self.catalog.name, source.namespace, source.table), False

        text = render(sql, analysis, bindings, place, {}).text
        return self.session().sql(text)

    def explain(self, name: str) -> Explanation:
        """Why a node would run or not, and the SQL a run would send."""
        from sqb.execution.reading import statement, view_statement

        if name not in self.expected:
            raise SqbError(
                "S001",
                f"there is no model or seed named `{name}`",
                help=did_you_mean(name, self.expected) or "`sqb ls` lists all nodes",
            )
        observed = self.observe()
        selected = frozenset(self.expected)
        plan, verdicts, situation = self._decide(
            selected, observed, force=False, full_refresh=False
        )
        only = msgspec.structs.replace(plan, nodes=tuple(n for n in plan.nodes if n.name == name))
        run = self._run("explain", situation, verdicts, observed)
        model = self.compiled.models.get(name)
        sql = ""
        if model is not None:
            view = self.expected[name].materialized == "view"
            sql = (view_statement if view else statement)(run, name).text
        return Explanation(
            self._with_diffs(only, observed),
            self.expected[name],
            observed.recorded.get(name),
            tuple(self.compiled.parents[name]),
            tuple(sorted(self.graph.children[name])),
            sql,
        )

    def history(self, name: str | None = None) -> list[dict[str, Any]]:
        """Every recorded build of a node, or of all, oldest first."""
        with_state = {
            namespace for namespace, table in self.catalog.heads() if table == FINGERPRINTS
        }
        rows = self.store.history(with_state.intersection(self.namespaces()))
        return [row for row in rows if name is None or row["node_name"] == name]

    def close(self) -> None:
        """Let go of the lake and stop the Spark session that this project started.

        A session that was handed in goes on.
        """
        self.store.close()
        if self._own is not None:
            from sqb.spark.session import stop_session

            stop_session(self._own)
            self._own = None

    def __enter__(self) -> Project:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def new_run_id() -> str:
    """Sortable by time, unique: ``20260131T060000-1a2b3c``."""
    return f"{datetime.now(timezone.utc):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"


__all__ = ["Explanation", "Project"]
