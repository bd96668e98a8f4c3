"""``Project``: the seam that notebooks, schedulers and the command line use.

It brings the rooms together (compile, observe, decide, execute) and holds no rules of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.execution.events import BuildResult, Event, new_run_id
from sqb.execution.look import Observed, compacted, refuse_moved
from sqb.execution.sessions import Sessions
from sqb.execution.sources import SourceLook
from sqb.lake.staging import stage_schema
from sqb.planning.cascade import Verdict
from sqb.planning.on_catalog import for_catalog
from sqb.planning.plan import Cause, Plan
from sqb.planning.planner import decide
from sqb.planning.situation import Situation
from sqb.state.tables import FINGERPRINTS, FRESHNESS
from sqb.workspace import Selectors, Workspace, several

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sqb.execution.events import Listener
    from sqb.execution.explaining import Explanation
    from sqb.execution.run import Run
    from sqb.execution.source_freshness import SourceFreshness
    from sqb.upkeep.upkeep import Upkeep
    from sqb.upkeep.verify import Verified


class Above(msgspec.Struct, frozen=True):
    """What happens above this project, in a dbt project that its models read.

    ``wanted`` models run whatever their own inputs show, ``barred`` ones can't.
    """

    wanted: dict[str, Cause] = {}
    barred: dict[str, Cause] = {}


NOTHING_ABOVE = Above()


class Project(Workspace):
    """A project folder and a target: plan it, build it, ask it.

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
        super().__init__(directory, target=target, vars=vars, environ=environ)
        self._sessions = Sessions(self.config, self.environ, spark)

    @cached_property
    def upkeep(self) -> Upkeep:
        """What keeps the lake small: ``survey``, then ``remove``; ``tidy`` ends every build."""
        from sqb.lake.sql_lake import SqlLake
        from sqb.upkeep.census import Lake
        from sqb.upkeep.upkeep import Upkeep, project_scope

        if not isinstance(self.catalog, SqlLake):
            raise SqbError(
                "C007",
                "the janitor looks after SQL catalogs; a REST server looks after its own tables",
                help="use the server's maintenance, or Iceberg's procedures such as "
                "expire_snapshots",
            )
        lake = Lake(self.catalog, self.facts, self.store, self.config.janitor)
        scope = project_scope(self.config, self.compiled, self.expected, self.environ)
        return Upkeep(lake, scope)

    def freshness(
        self,
        select: Selectors = (),
        exclude: Selectors = (),
        *,
        state: bool = False,
        listener: Listener | None = None,
    ) -> list[SourceFreshness]:
        """How fresh sources are, or those above some models. Writes nothing to the lake.

        ``state`` compares with what was last recorded of them.
        """
        from sqb.execution.source_freshness import report
        from sqb.graph.selectors import select_sources

        names = select_sources(self.selectable(), self.visible, several(select), several(exclude))
        observed = self.observe()
        look = self.watch.look(observed)
        sightings = self.watch.sight(look, observed, names, self._opened, listener)
        with_state = {n for n, table in observed.heads if table == FRESHNESS} if state else set()
        recorded = self.store.observations(with_state.intersection(self.namespaces()))
        return report((sightings[name] for name in names), recorded, with_state=state)

    # Decide

    def plan(
        self,
        select: Selectors = (),
        exclude: Selectors = (),
        *,
        force: bool = False,
        full_refresh: bool = False,
        refresh: str | None = None,
        listener: Listener | None = None,
        above: Above = NOTHING_ABOVE,
    ) -> Plan:
        """What a build would do now, and why. Writes nothing.

        ``refresh`` overrides what the models say about it. Spark is started only where a source
        is watched by a value that has to be asked for. ``above`` is what a dbt project does.
        """
        selected = self.select(select, exclude)
        observed = self.observe()
        plan, verdicts, situation, look = self._decide(
            selected,
            observed,
            force=force,
            full_refresh=full_refresh,
            listener=listener,
            above=above,
        )
        kinds = ("table", "append")
        if any(node.strategy is None and node.materialized in kinds for node in plan.work):
            from sqb.execution.foreseeing import with_strategies

            run = self._run("plan", situation, verdicts, observed, look)
            run.refresh = refresh
            plan = with_strategies(plan, run)
        self.facts.save(h.location for h in observed.heads.values())
        return self._with_diffs(plan, observed)

    def _decide(
        self,
        selected: frozenset[str],
        observed: Observed,
        *,
        force: bool,
        full_refresh: bool,
        listener: Listener | None = None,
        above: Above = NOTHING_ABOVE,
    ) -> tuple[Plan, dict[str, Verdict], Situation, SourceLook]:
        look = self.watch.look(observed)
        wanted = self.watch.above(self.graph, selected, observed)
        sightings = self.watch.sight(look, observed, wanted, self._opened, listener)
        situation = Situation(
            target=self.config.target.name,
            graph=self.graph,
            expected=self.expected,
            recorded=observed.recorded,
            known=frozenset(observed.rows),
            relations=observed.relations,
            sources={n: s.state for n, s in sightings.items() if s.state is not None},
            selected=selected,
            constants=self.constants(),
            force=force,
            full_refresh=full_refresh,
            outdated=observed.outdated
            | compacted(observed.recorded, {**look.facts, **observed.relations}),
            sightings=sightings,
            wanted=above.wanted,
            barred=above.barred,
        )
        plan, verdicts = decide(situation)
        plan = for_catalog(plan, situation.relations, self.catalog)
        return plan, verdicts, situation, look

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
        refresh: str | None = None,
        fail_fast: bool = False,
        concurrency: int | None = None,
        listener: Listener | None = None,
        on_plan: Callable[[Plan], None] | None = None,
        types: frozenset[str] | None = None,
        above: Above = NOTHING_ABOVE,
    ) -> BuildResult:
        """Plan, then run what is stale. Spark is started only if there is work.

        ``refresh`` overrides what the models say about it. ``types`` narrows the selection
        (``sqb seed`` builds seeds alone); ``on_plan`` hears the plan before anything runs.
        """
        selected = self.select(select, exclude)
        if types is not None:
            selected = frozenset(n for n in selected if self.expected[n].type in types)
        observed = self.observe()
        plan, verdicts, situation, look = self._decide(
            selected,
            observed,
            force=force,
            full_refresh=full_refresh,
            listener=listener,
            above=above,
        )
        plan = self._with_diffs(plan, observed)
        self.facts.save(h.location for h in observed.heads.values())
        if on_plan is not None:
            on_plan(plan)
        owed = plan.rerecord or plan.redescribe or observed.repairs
        idle = not (plan.work or owed or self._leftovers(observed))
        if idle:
            return BuildResult.idle(plan)
        return self._execute(
            plan,
            verdicts,
            situation,
            observed,
            look,
            refresh=refresh,
            fail_fast=fail_fast,
            concurrency=concurrency or self.config.settings.concurrency,
            listener=listener or (lambda _: None),
        )

    def _leftovers(self, observed: Observed) -> bool:
        """Did an earlier build leave staged tables behind?"""
        stages = {stage_schema(namespace) for namespace in self.namespaces()}
        return self.catalog.leftovers(stages, observed.heads)

    def _execute(
        self,
        plan: Plan,
        verdicts: dict[str, Verdict],
        situation: Situation,
        observed: Observed,
        look: SourceLook,
        *,
        refresh: str | None,
        fail_fast: bool,
        concurrency: int,
        listener: Listener,
    ) -> BuildResult:
        from sqb.execution.artifacts import Artifacts
        from sqb.execution.build import execute

        run_id = new_run_id()
        artifacts = Artifacts(self.work_dir / "runs" / run_id, plan, self.mask)
        run = self._run(run_id, situation, verdicts, observed, look)
        run.refresh, run.folder = refresh, artifacts.folder
        hear = artifacts.listening(listener)
        result = execute(
            run,
            plan,
            self.store,
            lambda: self._opened(
                hear, artifacts.folder / "spark.log", input_bytes=run.input_bytes(plan)
            ),
            repairs=observed.repairs,
            fail_fast=fail_fast,
            concurrency=concurrency,
            listener=hear,
        )
        artifacts.finish(result)
        if self.catalog.keeps_house and not result.interrupted:
            made = run.heads_made()
            for note in self.upkeep.tidy(made, run_id, run.pool, result.seconds):
                hear(Event("note", message=note))
        if run.pool is not None:
            run.pool.close()
        self.facts.save(h.location for h in observed.heads.values())
        self._sessions.content = not result.failed and not result.interrupted
        return result

    def _run(
        self,
        run_id: str,
        situation: Situation,
        verdicts: dict[str, Verdict],
        observed: Observed,
        look: SourceLook,
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
            look,
            self.catalog,
            self.facts,
            self.environ,
        )

    def _opened(
        self, hear: Listener, log_file: Path | None = None, *, input_bytes: int | None = None
    ) -> SparkSession:
        """The session; ``hear`` is told if it has to be started."""
        if self._sessions.there:
            return self.session()
        hear(Event("spark_starting"))
        session = self.session(log_file, input_bytes=input_bytes)
        hear(Event("spark_started"))
        return session

    def session(
        self, log_file: Path | None = None, *, input_bytes: int | None = None
    ) -> SparkSession:
        """The Spark session: the one handed in, else this project's own, started on first use."""
        return self._sessions.get(log_file or self.work_dir / "spark.log", input_bytes)

    def query(self, sql: str) -> DataFrame:
        """Run a query in which names mean what they mean in a model."""
        from sqb.execution.queries import prepare
        from sqb.execution.volume import bytes_behind

        prepared = prepare(sql, self.config, self.compiled, self.expected)
        refuse_moved(self.expected.values(), self.catalog, self.facts)
        size = None
        if not self._sessions.there and self.catalog.keeps_house:
            heads, sources = self.catalog.heads(), self.compiled.sources
            size = bytes_behind(prepared.reads, self.expected, sources, heads, self.facts)
        session = self.session(input_bytes=size)
        if prepared.files:
            from sqb.execution.files import bind_files

            bind_files(session, self.watch.look(self.observe()), prepared.files)
        return session.sql(prepared.text)

    def explain(self, name: str, *, listener: Listener | None = None) -> Explanation:
        """Why a node would run or not, and the SQL a run would send."""
        from sqb.execution.explaining import explained

        if name not in self.expected:
            raise SqbError(
                "S001",
                f"there is no model or seed named `{name}`",
                help=did_you_mean(name, self.expected) or "`sqb ls` lists all nodes",
            )
        observed = self.observe()
        selected = frozenset(self.expected)
        plan, verdicts, situation, look = self._decide(
            selected, observed, force=False, full_refresh=False, listener=listener
        )
        only = msgspec.structs.replace(plan, nodes=tuple(n for n in plan.nodes if n.name == name))
        run = self._run("explain", situation, verdicts, observed, look)
        work = {node.name for node in plan.work}
        return explained(name, self._with_diffs(only, observed), run, work)

    def verify(
        self,
        select: Selectors = (),
        exclude: Selectors = (),
        *,
        full: bool = False,
        listener: Listener | None = None,
    ) -> list[Verified]:
        """Do tables hold what their records say? ``full``: and what their queries give?"""
        from sqb.identity.expected import session_conf
        from sqb.spark.pool import SessionPool
        from sqb.upkeep.verify import comparable_tables, verify

        selected = self.select(select, exclude)
        observed = self.observe()
        _, verdicts, situation, look = self._decide(
            frozenset(self.expected), observed, force=False, full_refresh=False, listener=listener
        )
        run = self._run("verify", situation, verdicts, observed, look)
        names = comparable_tables(run, selected)
        if not names:
            return []
        session = self._opened(listener or (lambda _: None))
        pool = SessionPool(session, 1, session_conf(self.config.spark.conf))
        with pool.acquire() as sibling:
            found = [verify(run, sibling, name, full=full) for name in names]
        pool.close()
        return found

    def history(self, name: str | None = None) -> list[dict[str, Any]]:
        """Every recorded build of a node, or of all, oldest first."""
        state = {(namespace, FINGERPRINTS) for namespace in self.namespaces()}
        with_state = {
            namespace for namespace, table in self.catalog.look(state, ()) if table == FINGERPRINTS
        }
        rows = self.store.history(with_state.intersection(self.namespaces()))
        return [row for row in rows if name is None or row["node_name"] == name]

    def close(self) -> None:
        """Let go of the lake and stop the Spark session that this project started.

        A session that was handed in goes on.
        """
        self.store.close()
        self.catalog.close()
        self._sessions.close()

    def __enter__(self) -> Project:  # noqa: PYI034 - Self needs Python 3.11
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


__all__ = ["Above", "Project"]
