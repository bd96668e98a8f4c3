"""What builds ask of a lake, whatever catalog it has; ``opening`` chooses the implementation.

Two there are: ``SqlLake`` works on the rows of a SQL catalog, where one transaction can do
everything at once; ``RestLake`` calls a REST catalog, where each commit is about one table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol

from sqb.lake.catalog import Head
from sqb.lake.facts import FactsCache
from sqb.lake.metadata import TableFacts
from sqb.lake.shape import Shape
from sqb.lake.staging import Staged

#: How rebuilt tables are published: by a second name on the same metadata, on a branch, or in
#: place. What each guarantees is told in docs/catalogs.md.
Mode = Literal["alias", "branch", "replace"]

MakeStamp = Callable[[TableFacts], str]
Key = tuple[str, str]


class Lake(Protocol):
    """A catalog and the tables and views behind it."""

    name: str
    #: The folder that all tables lie in; empty where the server decides.
    warehouse: str

    @property
    def place(self) -> str:
        """The address as it may be shown."""

    @property
    def path(self) -> Path | None:
        """The file that holds the catalog, where it is one."""

    @property
    def mode(self) -> Mode | None:
        """How rebuilt tables are published; None until a build has found out."""

    @property
    def swaps_kinds(self) -> bool:
        """Can a view take the place of a table, or the other way round, in one step?"""

    @property
    def keeps_house(self) -> bool:
        """Do builds look after old snapshots and files here? A REST server does that itself."""

    def read(self, location: str) -> bytes:
        """The metadata document at a location."""

    def namespaces(self) -> list[str]:
        """All namespaces."""

    def heads(self, namespaces: Collection[str] | None = None) -> dict[Key, Head]:
        """Every relation, or those of some namespaces."""

    def look(self, relations: Collection[Key], whole: Collection[str]) -> dict[Key, Head]:
        """At least these relations, and everything in the namespaces of ``whole``."""

    def head(self, namespace: str, name: str) -> Head | None:
        """One relation, or None."""

    def ensure_namespace(self, namespace: str) -> None:
        """Create a namespace if it is missing."""

    def namespace_properties(self, namespace: str) -> dict[str, str]:
        """The properties of a namespace; empty if there is no such namespace."""

    def set_namespace_property(self, namespace: str, key: str, value: str) -> None:
        """Set one property, whatever it was before."""

    def remove_namespace_property(self, namespace: str, key: str) -> None:
        """Remove one property if it is there."""

    def stage(self, schema: str, table: str, run_id: str, shape: Shape) -> Staged:
        """Remember the target's head and say where its successor of this shape is built."""

    def staged_facts(self, staged: Staged, facts: FactsCache) -> TableFacts | None:
        """What stands there now that rows were written; None if it was taken away."""

    def publish_table(
        self,
        *,
        namespace: str,
        table: str,
        staged: Staged,
        properties: Mapping[str, str],
        make_stamp: MakeStamp,
        sort_order: tuple[str, ...] | None = None,
    ) -> Head:
        """Make the staged table the target's own, with exactly these properties and a stamp."""

    def publish_properties(
        self,
        *,
        namespace: str,
        table: str,
        base: Head,
        run_id: str,
        properties: Mapping[str, str],
        make_stamp: MakeStamp,
        sort_order: tuple[str, ...] | None = None,
    ) -> Head:
        """Give a table other properties or another stamp, its rows untouched."""

    def publish_view(
        self,
        *,
        namespace: str,
        name: str,
        base: Head | None,
        run_id: str,
        sql: str,
        schema: Mapping[str, Any],
        properties: Mapping[str, str],
        make_stamp: MakeStamp,
    ) -> Head:
        """Make or replace a view; a table of that name gives way to it."""

    def discard(self, staged: Staged, facts: FactsCache) -> None:
        """Take away what is left of staged work: names first, then files that only it reaches."""

    def leftovers(self, stage_schemas: Collection[str], heads: Mapping[Key, Head]) -> bool:
        """Did a build leave staged work behind?"""

    def sweep(self, stage_schema: str, now: float, *, facts: FactsCache) -> list[str]:
        """Discard all staged work without a live lease, and the dead leases; their names."""

    def close(self) -> None:
        """Let go of connections."""
