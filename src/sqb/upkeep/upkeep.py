"""``Upkeep``: one project's and target's upkeep, as the ``Project`` hands it out."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqb.compile.compiler import STATE_SUFFIX
from sqb.compile.nodes import Compiled
from sqb.identity.constants import clock
from sqb.identity.expected import Expected, namespaces_of
from sqb.lake.catalog import Head, SqlCatalog
from sqb.lake.facts import FactsCache
from sqb.project.config import Config
from sqb.state.record import owner_of
from sqb.state.store import StateStore
from sqb.upkeep import after_build, janitor
from sqb.upkeep.census import Lake
from sqb.upkeep.janitor import Scope, Survey

if TYPE_CHECKING:
    from sqb.spark.pool import SessionPool


def schemas_of(config: Config, expected: Mapping[str, Expected]) -> tuple[str, ...]:
    """The schemas to look after: those of nodes, and of row state, also where it ended."""
    written = namespaces_of(config, expected)
    states = {f"{name}{STATE_SUFFIX}" for name in written if not name.endswith(STATE_SUFFIX)}
    return tuple(sorted({*written, *states}))


class Upkeep:
    """What keeps the lake of a project small."""

    def __init__(
        self,
        config: Config,
        compiled: Compiled,
        expected: Mapping[str, Expected],
        catalog: SqlCatalog,
        facts: FactsCache,
        store: StateStore,
        environ: Mapping[str, str],
    ) -> None:
        self._lake = Lake(catalog, facts, store, config.janitor)
        self._scope = Scope(
            owner=owner_of(config),
            schemas=schemas_of(config, expected),
            nodes=frozenset((e.namespace, e.relation) for e in expected.values()),
            disabled=compiled.disabled,
            now=clock(environ).timestamp(),
        )

    def tidy(
        self, published: Sequence[Head], run_id: str, pool: SessionPool | None, took: float
    ) -> list[str]:
        """At the end of a build that ``took`` seconds; what went wrong, in words.

        Expiry gets a tenth of that time. A table is due once in ten builds or so, so all come by.
        """
        schemas, seconds = self._scope.schemas, max(2.0, took / 10)
        return after_build.tidy(self._lake, published, schemas, run_id, pool, seconds)

    def survey(self) -> Survey:
        """What the janitor would remove, and what it leaves alone and why."""
        return janitor.survey(self._lake, self._scope)

    def remove(self, found: Survey) -> Survey:
        """Remove what a survey found, as far as it may still go; what really went."""
        removed = janitor.remove(self._lake, self._scope, found, f"janitor-{uuid.uuid4().hex[:12]}")
        self._lake.facts.save(h.location for h in self._lake.catalog.heads().values())
        return removed
