"""A lake whose catalog is rows in a database: every publish is one transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqb.lake import cleanup, publish, staging
from sqb.lake.catalog import Head, SqlCatalog
from sqb.lake.facts import FactsCache
from sqb.lake.io import read_bytes
from sqb.lake.lake import Key, MakeStamp, Mode
from sqb.lake.metadata import TableFacts
from sqb.lake.shape import Shape
from sqb.lake.staging import Staged


class SqlLake(SqlCatalog):
    """The catalog's rows, and the protocol on top of them."""

    @property
    def place(self) -> str:
        """The address as it may be shown."""
        return self._database.place

    @property
    def mode(self) -> Mode | None:
        """A row may name any metadata file, so an alias is always possible."""
        return "alias"

    @property
    def swaps_kinds(self) -> bool:
        """Both are rows of one table."""
        return True

    @property
    def keeps_house(self) -> bool:
        """Nobody else would."""
        return True

    def read(self, location: str) -> bytes:
        """The metadata document at a location."""
        return read_bytes(location)

    def look(self, relations: Collection[Key], whole: Collection[str]) -> dict[Key, Head]:  # noqa: ARG002
        """One SELECT brings everything."""
        return self.heads()

    def stage(self, schema: str, table: str, run_id: str, shape: Shape) -> Staged:  # noqa: ARG002
        """An alias takes any shape."""
        return staging.stage(self, schema, table, run_id)

    def staged_facts(self, staged: Staged, facts: FactsCache) -> TableFacts | None:
        """What stands under the alias."""
        alias = self.head(staged.namespace, staged.name)
        return facts.get(alias.location) if alias is not None else None

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
        """One swap."""
        return publish.publish_table(
            self,
            namespace=namespace,
            table=table,
            staged=staged,
            properties=properties,
            make_stamp=make_stamp,
            sort_order=sort_order,
        )

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
        """One swap."""
        return publish.publish_properties(
            self,
            namespace=namespace,
            table=table,
            base=base,
            run_id=run_id,
            properties=properties,
            make_stamp=make_stamp,
            sort_order=sort_order,
        )

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
        """One swap, also where a table was."""
        return publish.publish_view(
            self,
            namespace=namespace,
            name=name,
            base=base,
            run_id=run_id,
            sql=sql,
            schema=schema,
            properties=properties,
            make_stamp=make_stamp,
        )

    def discard(self, staged: Staged, facts: FactsCache) -> None:
        """The alias's row, then its own files."""
        leftover = self.head(staged.namespace, staged.name)
        if leftover is not None:
            cleanup.discard(self, leftover, facts=facts)

    def leftovers(self, stage_schemas: Collection[str], heads: Mapping[Key, Head]) -> bool:
        """Is there a row in a stage schema?"""
        return any(namespace in stage_schemas for namespace, _ in heads)

    def sweep(self, stage_schema: str, now: float, *, facts: FactsCache) -> list[str]:
        """Every alias without a live lease."""
        return cleanup.sweep(self, stage_schema, now, facts=facts)

    def close(self) -> None:
        """Every call has its own connection."""
