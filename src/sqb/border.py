"""A dbt project and the sqb models that read it: planned together, built one after the other.

Also the upkeep of the state that sqb keeps of a dbt project.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path

from sqb.api import Above, Project
from sqb.dbt.plan import DbtPlan
from sqb.dbt.project import DbtProject, DbtResult
from sqb.dbt.reader import DbtReader
from sqb.dbt.warehouse import LakeWarehouse
from sqb.execution.events import BuildResult, Listener
from sqb.planning.plan import Cause, Plan
from sqb.project.config_values import JanitorConfig
from sqb.project.layout import read_files
from sqb.upkeep.census import Lake
from sqb.upkeep.upkeep import Upkeep, state_scope


class Border:
    """The sqb models below the nodes that a dbt request selects; often there are none."""

    def __init__(self, dbt: DbtProject) -> None:
        self._dbt = dbt
        self._project: Project | None = None

    @cached_property
    def models(self) -> frozenset[str]:
        """The sqb models below what is selected."""
        config = self._dbt.reader.found.config
        if config is None:
            return frozenset()
        if not any(b"__dbt_ref" in text for text in read_files(Path(config.root)).models.values()):
            return frozenset()
        project = self.project()
        selected = [n for n in self._dbt.reader.selected if n in project.graph.parents]
        return frozenset(project.graph.descendants(selected) & project.expected.keys())

    def project(self) -> Project:
        """The sqb project around the dbt project."""
        if self._project is None:
            config = self._dbt.reader.found.config
            assert config is not None
            self._project = Project(
                config.root, target=config.target.name, environ=self._dbt.environ
            )
            self._project.dbt = self._dbt.reader
        return self._project

    def plan(self, dbt: DbtPlan, listener: Listener) -> Plan | None:
        """What a build would do after dbt; None where no sqb model reads what is selected."""
        if not self.models:
            return None
        runs = {n.name: Cause(n.name, n.reason) for n in dbt.nodes if n.action == "run"}
        blocked = {
            n.name: n.cause or Cause(n.name, n.reason) for n in dbt.nodes if n.action == "block"
        }
        above = Above(self._readers(runs | blocked, "upstream_changed"), self._readers(blocked))
        return self.project().plan(sorted(self.models), listener=listener, above=above)

    def build(
        self, result: DbtResult, listener: Listener, on_plan: Callable[[Plan], None]
    ) -> BuildResult | None:
        """Build what dbt's run made stale; what reads a node that failed is blocked."""
        if not self.models or result.build.interrupted:
            return None
        failed: dict[str, Cause] = {}
        for node in result.build.nodes:
            if node.status == "failed" or (node.status == "blocked" and result.ended is not None):
                failed[node.name] = Cause(node.name, "external_upstream_failed")
        for planned in result.plan.nodes:
            if planned.action == "block":
                failed[planned.name] = planned.cause or Cause(planned.name, planned.reason)
        above = Above(self._readers(failed), self._readers(failed))
        return self.project().build(
            sorted(self.models), listener=listener, on_plan=on_plan, above=above
        )

    def close(self) -> None:
        """Let go of the sqb project."""
        if self._project is not None:
            self._project.close()
            self._project = None

    def _readers(self, nodes: Mapping[str, Cause], reason: str | None = None) -> dict[str, Cause]:
        """The sqb models that read these nodes directly, with the first cause of each."""
        children = self.project().graph.children
        out: dict[str, Cause] = {}
        for name, cause in nodes.items():
            for model in children.get(name, ()):
                if model in self.models:
                    out.setdefault(model, cause if reason is None else Cause(name, reason))
        return out


@contextmanager
def state_upkeep(reader: DbtReader) -> Iterator[Upkeep | None]:
    """Upkeep of the state tables of a dbt project; None where the catalog's server sees to it."""
    from sqb.lake.sql_lake import SqlLake

    place = reader.place_of_profile
    if place.catalog is None or place.catalog.type != "sql":
        yield None
        return
    warehouse = LakeWarehouse(place.catalog, place.schema, reader.work / "cache")
    assert isinstance(warehouse.lake, SqlLake)
    config = reader.found.config
    settings = config.janitor if config is not None else JanitorConfig()
    lake = Lake(warehouse.lake, warehouse.facts, warehouse.store, settings)
    with closing(warehouse):
        yield Upkeep(lake, state_scope(place.schema, reader.environ))
