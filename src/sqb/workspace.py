"""A project as it is written and as its lake shows it: compiled, expected, observed.

Everything is read on first use and kept; nothing is decided and nothing is run here.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from sqb.compile.compiler import compile_project
from sqb.compile.nodes import Compiled, DbtRefs
from sqb.errors import SqbError
from sqb.execution.look import Observed, look
from sqb.execution.watching import SourceWatch
from sqb.graph.graph import Graph
from sqb.graph.selectors import Selectable, select
from sqb.identity.expected import Expected, build_graph, constants_of, expect, namespaces_of
from sqb.lake.facts import FactsCache
from sqb.lake.lake import Lake
from sqb.lake.opening import open_lake
from sqb.project.config import Config, load_config
from sqb.project.layout import find_project, read_files, work_folder
from sqb.project.secrets import masker
from sqb.state.store import StateStore

if TYPE_CHECKING:
    from sqb.dbt.reader import DbtReader

#: One selector or several; several are united.
Selectors = str | Sequence[str]


class Workspace:
    """A project folder and a target."""

    def __init__(
        self,
        directory: str | Path,
        *,
        target: str | None,
        vars: Mapping[str, object] | None,
        environ: Mapping[str, str] | None,
    ) -> None:
        self.environ = dict(os.environ if environ is None else environ)
        self.root = find_project(Path(directory).absolute())
        self.config: Config = load_config(
            self.root, target=target, cli_vars=dict(vars or {}), environ=self.environ
        )
        self.mask = masker(self.config, environ=self.environ)
        #: The dbt project beside this one, where someone has opened it already.
        self.dbt: DbtReader | None = None

    # Compile

    @property
    def work_dir(self) -> Path:
        """``.sqb``: disposable, ignored by git."""
        return work_folder(self.root)

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
        return compile_project(self.config, files, self.environ, cache, self._find_dbt)

    def _find_dbt(self, wanted: Collection[tuple[str, str]]) -> DbtRefs:
        """What models of this project read of the dbt project that ``[dbt]`` names."""
        from sqb.dbt.border import dbt_refs
        from sqb.dbt.reader import DbtReader
        from sqb.dbt.request import Request

        if self.dbt is None:
            self.dbt = DbtReader(Request(), start=self.root, environ=self.environ)
        return dbt_refs(wanted, self.dbt, self.config.catalog)

    @cached_property
    def graph(self) -> Graph:
        """Models, seeds and sources with their edges."""
        return build_graph(self.compiled)

    @cached_property
    def expected(self) -> dict[str, Expected]:
        """Every buildable node as the project wants it, parents first."""
        return expect(self.compiled, self.graph, self.config)

    @cached_property
    def groups(self) -> dict[str, str]:
        """The models that hold groups for sqb's own use, by the model they are those of."""
        return {e.state_of: e.name for e in self.expected.values() if e.state_of is not None}

    @cached_property
    def visible(self) -> Graph:
        """The graph as selectors walk it: a model reads what its groups read."""
        hidden = {groups: model for model, groups in self.groups.items()}
        if not hidden:
            return self.graph
        parents = self.graph.parents
        return Graph(
            {
                name: parents[self.groups[name]] if name in self.groups else above
                for name, above in parents.items()
                if name not in hidden
            }
        )

    def selectable(self) -> dict[str, Selectable]:
        """Every node as selectors see it; groups go with their model."""
        shown = [e for e in self.expected.values() if e.state_of is None]
        out = {e.name: Selectable(e.name, e.type, e.path, e.tags) for e in shown}
        for source in self.compiled.sources.values():
            out[source.name] = Selectable(source.name, "source", source.file or "", ())
        return out

    def select(self, include: Selectors = (), exclude: Selectors = ()) -> frozenset[str]:
        """The buildable nodes that selectors pick; without any, all of them."""
        include, exclude = several(include), several(exclude)
        if not include and not exclude:
            return frozenset(self.expected)
        chosen = select(self.selectable(), self.visible, include, exclude)
        return frozenset(chosen | {self.groups[name] for name in chosen & self.groups.keys()})

    # Observe

    @cached_property
    def catalog(self) -> Lake:
        """The lake's catalog."""
        return open_lake(self.config.catalog, self.work_dir / "cache")

    @cached_property
    def facts(self) -> FactsCache:
        """What metadata files say, cached for ever by location."""
        path = self.work_dir / "cache" / "facts.mp"
        return FactsCache(path, self.catalog.warehouse, self.catalog.read)

    @cached_property
    def store(self) -> StateStore:
        """The state tables."""
        catalog = self.config.catalog
        cache = self.work_dir / "cache" / "state.mp"
        return StateStore(
            catalog.name,
            catalog.uri,
            catalog.warehouse,
            cache,
            kind=catalog.type,
            properties=catalog.properties,
        )

    def namespaces(self) -> list[str]:
        """The schemas that this target writes."""
        return namespaces_of(self.config, self.expected)

    def constants(self) -> dict[str, str]:
        """The bound constants of this run, in the session's time zone."""
        return constants_of(self.config, self.environ)

    def observe(self) -> Observed:
        """One look at the lake: heads, facts, records."""
        sources = {(s.namespace, s.table) for s in self.compiled.sources.values() if s.in_lake}
        namespaces = self.namespaces()
        return look(self.expected, namespaces, sources, self.catalog, self.facts, self.store)

    @cached_property
    def watch(self) -> SourceWatch:
        """What looks at the sources."""
        cache = self.work_dir / "cache"
        return SourceWatch(self.config, self.compiled, self.facts, cache, self.environ)


def several(selectors: Selectors) -> Sequence[str]:
    """Selectors as a sequence."""
    return [selectors] if isinstance(selectors, str) else selectors


__all__ = ["Selectors", "Workspace", "several"]
