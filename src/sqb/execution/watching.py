"""Watching a project's sources: one look, and values that are asked for only when they moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sqb.compile.nodes import Compiled
from sqb.execution.events import Event, Listener
from sqb.execution.look import Observed
from sqb.execution.source_values import observe_sources
from sqb.execution.sources import SourceLook
from sqb.freshness.cache import ValueCache
from sqb.freshness.sighting import Sighting
from sqb.graph.graph import Graph
from sqb.identity.constants import clock
from sqb.identity.expected import constants_of, session_settings
from sqb.lake.facts import FactsCache
from sqb.project.config import Config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqb.freshness.values import Answer


class SourceWatch:
    """The sources of one project and what is remembered of them in its cache folder."""

    def __init__(
        self,
        config: Config,
        compiled: Compiled,
        facts: FactsCache,
        cache: Path,
        environ: Mapping[str, str],
    ) -> None:
        self._config, self._compiled, self._environ = config, compiled, environ
        self._facts = facts
        self._foreign = FactsCache(cache / "foreign.mp")
        self._values = ValueCache(cache / "freshness.mp")

    def look(self, observed: Observed) -> SourceLook:
        """One look: heads, metadata, file listings."""
        look = SourceLook(
            self._compiled,
            self._config.catalog.name,
            observed.heads,
            self._facts,
            self._foreign,
            self._config.spark.conf,
            Path(self._config.root),
        )
        self._foreign.save()
        return look

    def above(self, graph: Graph, selected: frozenset[str], observed: Observed) -> list[str]:
        """The watched sources that a selection rests on, also by what it was built from before."""
        if not self._compiled.probes:
            return []
        above = graph.ancestors(selected)
        found = set(above)
        for name in above & observed.recorded.keys():
            found.update(observed.recorded[name].consumed())
        return sorted(found & self._compiled.probes.keys())

    def sight(
        self,
        look: SourceLook,
        observed: Observed,
        wanted: Iterable[str],
        open_session: Callable[[Listener], SparkSession],
        listener: Listener | None = None,
    ) -> dict[str, Sighting]:
        """Every source as it is now; Spark is asked where the value of a wanted one moved."""
        hear = listener or (lambda _: None)

        def ask_spark(look: SourceLook, names: list[str]) -> Mapping[str, Answer]:
            from sqb.execution.asking import ask

            hear(Event("note", message=f"asking Spark how fresh these are: {', '.join(names)}"))
            constants = constants_of(self._config, self._environ)
            return ask(open_session(hear), look, names, self._config, constants)

        return observe_sources(
            look,
            wanted,
            session_settings(self._config.spark.conf),
            observed.recorded,
            self._values,
            round(clock(self._environ).timestamp() * 1_000_000),
            ask_spark,
        )
