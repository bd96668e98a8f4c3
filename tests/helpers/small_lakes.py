"""A lake on which builds are played without Spark: pyiceberg writes, sqb publishes.

``SmallLake.build`` goes through the publish protocol as a real build does: lease, alias, rows,
stamp, swap, state row. The tables have one column of numbers, so what a snapshot must hold is
known and can be read back.
"""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog as IceCatalog
from pyiceberg.table import StaticTable
from records import STAMP, of

from sqb.lake.catalog import Head, Point, SqlCatalog
from sqb.lake.cleanup import discard
from sqb.lake.facts import FactsCache
from sqb.lake.io import write_new
from sqb.lake.metadata import TableFacts, read_document
from sqb.lake.publish import Overtaken, publish_table
from sqb.lake.staging import Lease, stage, stage_schema
from sqb.project.config import JanitorConfig
from sqb.state.record import Record, encode
from sqb.state.store import StateStore
from sqb.state.tables import Fingerprint
from sqb.upkeep.census import Lake

_runs = itertools.count(1)


def numbers(ids: Iterable[int]) -> pa.Table:
    return pa.table({"id": pa.array(list(ids), pa.int64())})


class SmallLake:
    """One catalog in a folder, opened by sqb and by pyiceberg."""

    def __init__(
        self,
        folder: Path,
        warehouse: str | None = None,
        properties: dict[str, str] | None = None,
        **settings: Any,
    ) -> None:
        self.folder = folder
        uri, warehouse = f"sqlite:///{folder}/catalog.db", warehouse or str(folder / "data")
        self.catalog = SqlCatalog("lake", uri, warehouse)
        self.catalog.ensure_namespace("dev")
        self.ice = IceCatalog("lake", uri=uri, warehouse=warehouse, **(properties or {}))
        self.store = StateStore("lake", uri, warehouse, None, properties=properties)
        self.settings = JanitorConfig(**settings)

    def close(self) -> None:
        self.ice.engine.dispose()
        self.store.close()

    def upkeep(self) -> Lake:
        return Lake(self.catalog, FactsCache(None), self.store, self.settings)

    def head(self, name: str, schema: str = "dev") -> Head:
        found = self.catalog.head(schema, name)
        assert found is not None
        return found

    def document(self, name: str, schema: str = "dev") -> dict[str, Any]:
        return read_document(self.head(name, schema).location)

    def snapshots(self, name: str, schema: str = "dev") -> list[int]:
        return [s["snapshot-id"] for s in self.document(name, schema)["snapshots"]]

    def read(self, name: str, snapshot: int | None = None, schema: str = "dev") -> list[int]:
        return rows_at(self.head(name, schema).location, snapshot)

    def files(self) -> set[Path]:
        return {p for p in (self.folder / "data").rglob("*") if p.is_file()}

    def build(
        self,
        name: str,
        ids: Iterable[int],
        *,
        schema: str = "dev",
        pins: dict[str, int] | None = None,
        append: bool = False,
        lag: float = 0,
        record: bool = True,
    ) -> Head | None:
        """Publish a table with these rows, or with these added; None if another build won."""
        run_id = f"r{next(_runs)}"
        with Lease(self.catalog, [stage_schema(schema)], run_id):
            staged = stage(self.catalog, schema, name, run_id)
            alias = f"{staged.namespace}.{staged.name}"
            made: list[Record] = []

            def stamp(facts: TableFacts) -> str:
                made.append(
                    of(
                        STAMP,
                        node=name,
                        uuid=facts.uuid,
                        snapshot=facts.snapshot_id,
                        table=facts.shape,
                        run=run_id,
                        ts=time.time_ns() // 1000,
                        pins=pins or {},
                        owner=f"small/{schema}",
                    )
                )
                return encode(made[-1])

            try:
                if staged.alias is None:
                    place = self.catalog.default_location(schema, name)
                    table = self.ice.create_table(alias, numbers([]).schema, location=place)
                else:
                    table = self.ice.load_table(alias)
                if append or staged.alias is None:
                    table.append(numbers(ids))
                else:
                    table.overwrite(numbers(ids))
                time.sleep(lag)
                head = publish_table(
                    self.catalog,
                    namespace=schema,
                    table=name,
                    staged=staged,
                    properties={"sqb.definition": "d"},
                    make_stamp=stamp,
                )
            except Overtaken:
                return None
            finally:
                left = self.catalog.head(staged.namespace, staged.name)
                if left is not None:
                    discard(self.catalog, left)
            if record:
                self.store.append([Fingerprint(made[-1], "lake", schema, name, "d")], [], {})
        return head

    def clone(self, name: str, new: str, schema: str = "dev", *, tag: bool = True) -> int:
        """A zero-copy clone of the head, protected by a tag on its origin; its snapshot."""
        table = self.ice.load_table(f"{schema}.{name}")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        if tag:
            marked = f"sqb_clone_{uuid.uuid4().hex[:8]}"
            table.manage_snapshots().create_tag(snapshot.snapshot_id, marked).commit()
        document = read_document(table.metadata_location)
        place = self.catalog.default_location("clones", new)
        only = [s for s in document["snapshots"] if s["snapshot-id"] == snapshot.snapshot_id]
        document |= {"table-uuid": str(uuid.uuid4()), "location": place, "metadata-log": []}
        document |= {"snapshots": only, "snapshot-log": [], "refs": {}}
        document["refs"] = {"main": {"snapshot-id": snapshot.snapshot_id, "type": "branch"}}
        document["current-snapshot-id"] = snapshot.snapshot_id
        document["properties"] = {**document["properties"], "gc.enabled": "false"}
        file = f"{place}/metadata/00000-{uuid.uuid4()}.metadata.json"
        write_new(file, msgspec.json.encode(document))
        self.catalog.ensure_namespace("clones")
        self.catalog.commit([Point("clones", new, "table", file, expected=None)])
        return snapshot.snapshot_id


def rows_at(location: str, snapshot: int | None = None) -> list[int]:
    """All rows of a snapshot (or of the head), through pyiceberg."""
    table = StaticTable.from_metadata(location)
    found = table.scan(snapshot_id=snapshot).to_arrow()["id"].to_pylist()
    return sorted(found)
