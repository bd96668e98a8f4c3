"""``Upkeep``: the upkeep of one project and target."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sqb.compile.compiler import STATE_SUFFIX
from sqb.compile.nodes import Compiled
from sqb.identity.constants import clock
from sqb.identity.expected import Expected, namespaces_of
from sqb.lake.catalog import Head
from sqb.project.config import Config
from sqb.state.record import owner_of
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


def project_scope(
    config: Config, compiled: Compiled, expected: Mapping[str, Expected], environ: Mapping[str, str]
) -> Scope:
    """What a project of sqb's own has to do with the lake."""
    return Scope(
        owner=owner_of(config),
        schemas=schemas_of(config, expected),
        nodes=frozenset((e.namespace, e.relation) for e in expected.values()),
        disabled=compiled.disabled,
        now=clock(environ).timestamp(),
    )


def state_scope(schema: str, environ: Mapping[str, str]) -> Scope:
    """A schema in which the state tables alone are sqb's."""
    nothing: frozenset[str] = frozenset()
    now = clock(environ).timestamp()
    return Scope("", (schema,), frozenset(), nothing, now, state_only=True)


class Upkeep:
    """What keeps the lake small, within a scope."""

    def __init__(self, lake: Lake, scope: Scope) -> None:
        self._lake, self._scope = lake, scope

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
