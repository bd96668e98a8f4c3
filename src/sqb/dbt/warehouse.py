"""What sqb asks of the warehouse of a dbt project, and the answer of an Iceberg catalog.

Two things are asked: what stands there and what is recorded of it, which needs no Spark where the
catalog can be read; and now and then a query, which someone who has a Spark answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from sqb.dbt.nodes import DbtNode
from sqb.lake.facts import FactsCache
from sqb.lake.metadata import TableFacts
from sqb.lake.opening import open_lake
from sqb.project.config_values import CatalogConfig
from sqb.state.record import Record
from sqb.state.store import StateStore
from sqb.state.tables import DBT, FINGERPRINTS, FRESHNESS, Fingerprint, Observation

#: Rows of texts, as Spark shows values.
Rows = Sequence[Sequence[str | None]]


class Standing(msgspec.Struct, frozen=True):
    """One look: relations of nodes and sources by unique id, and the newest row of each node.

    A relation that stands, but about which the warehouse tells no more, has facts without a
    ``uuid``.
    """

    relations: dict[str, TableFacts]
    rows: dict[str, Record]


class Warehouse(Protocol):
    """Where dbt builds, and where the state is kept."""

    @property
    def database(self) -> str:
        """Its name in state rows."""

    def look(self, nodes: Mapping[str, DbtNode]) -> Standing:
        """What stands and what is recorded now."""

    def record(
        self, fingerprints: Sequence[Fingerprint], observations: Sequence[Observation]
    ) -> None:
        """Append rows to the state tables."""

    def close(self) -> None:
        """Let go of connections."""


class Asking(Protocol):
    """Someone who has a Spark that sees what dbt's Spark sees."""

    def rows(self, sql: str) -> Rows:
        """The rows of a query; what a statement without rows gives is empty."""

    def close(self) -> None:
        """Let go of it."""


class LakeWarehouse:
    """An Iceberg catalog that sqb reads by itself; ``home`` is the schema of the state tables."""

    def __init__(self, catalog: CatalogConfig, home: str, cache: Path) -> None:
        self.home = home
        self.lake = open_lake(catalog, cache)
        self.facts = FactsCache(cache / "facts.mp", self.lake.warehouse, self.lake.read)
        self.store = StateStore(
            catalog.name,
            catalog.uri,
            catalog.warehouse,
            cache / "state.mp",
            kind=catalog.type,
            properties=catalog.properties,
        )

    @property
    def database(self) -> str:
        return self.lake.name

    def look(self, nodes: Mapping[str, DbtNode]) -> Standing:
        places = {name: place for name, node in nodes.items() if (place := self._place(node))}
        state = {(self.home, FINGERPRINTS), (self.home, FRESHNESS)}
        heads = self.lake.look({*places.values(), *state}, ())
        relations: dict[str, TableFacts] = {}
        for name, place in places.items():
            head = heads.get(place)
            if head is not None:
                relations[name] = self.facts.get(head.location)
        rows = self.store.latest(heads, [self.home])
        self.facts.save(head.location for head in heads.values())
        return Standing(relations, {n: r for n, r in rows.items() if r.type == DBT})

    def record(
        self, fingerprints: Sequence[Fingerprint], observations: Sequence[Observation]
    ) -> None:
        self.store.append(
            fingerprints, observations, {item.source: [self.home] for item in observations}
        )

    def close(self) -> None:
        self.store.close()
        self.lake.close()

    def _place(self, node: DbtNode) -> tuple[str, str] | None:
        """Schema and name in the catalog; a schema may be written with the catalog's name."""
        if node.relation is None:
            return None
        schema, name = node.relation
        return schema.removeprefix(f"{self.lake.name}."), name
