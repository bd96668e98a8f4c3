"""The warehouse of a dbt project behind a thrift server: all that is known of it is asked for.

A look costs a statement for each schema, and one for its views where Spark lists them apart. What
an Iceberg snapshot holds never changes, so it is asked for once and remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from sqb import cachefile
from sqb.dbt.nodes import DbtNode
from sqb.dbt.thrift_listing import (
    Listed,
    Rowset,
    ask_snapshots,
    facts_of,
    find,
    is_compaction,
    is_missing_schema,
    is_without_views,
    list_tables,
    list_views,
    named,
    place,
    read_snapshots,
    read_tables,
    read_views,
    rowset,
)
from sqb.dbt.thrift_state import create, insert, read_newest, select_newest
from sqb.dbt.warehouse import Asking, Rows, Standing
from sqb.errors import SqbError
from sqb.lake.metadata import Snapshot, TableFacts
from sqb.state.record import Record
from sqb.state.tables import (
    FINGERPRINTS,
    FRESHNESS,
    Fingerprint,
    Observation,
    fingerprint_rows,
    observation_rows,
)

_LAYOUT = 1
#: So many tables are asked for their snapshots in one statement.
_TOGETHER = 50


class _Cached(msgspec.Struct, array_like=True):
    """By ``Listed.version``: what tables hold, and the newest records of a state table."""

    rowsets: dict[str, Rowset] = {}
    records: dict[str, dict[str, Record]] = {}


class ThriftWarehouse:
    """A warehouse seen through one session; ``home`` is the schema of the state tables.

    Others' writes show in a new session only, so a look after them needs a new one.
    """

    def __init__(self, asking: Asking, home: str, cache: Path | None = None) -> None:
        self.home = home
        self._asking = asking
        self._file = cache / "thrift.mp" if cache is not None else None
        self._cached = (cachefile.read(self._file, _Cached, _LAYOUT) if self._file else None) or (
            _Cached()
        )
        self._state: dict[str, Listed] = {}
        self._catalog = ""

    @property
    def database(self) -> str:
        """The catalog that the state tables' schema was found in."""
        return self._catalog

    def look(self, nodes: Mapping[str, DbtNode]) -> Standing:
        """What stands and what is recorded now."""
        wanted: dict[str, set[str]] = {self.home: set()}
        for node in nodes.values():
            if node.relation is not None:
                wanted.setdefault(node.relation[0], set()).add(node.relation[1])
        shown = {schema: self._list(schema, names) for schema, names in wanted.items()}
        found: dict[str, tuple[str, Listed]] = {}
        for name, node in nodes.items():
            if node.relation is None:
                continue
            schema, alias = node.relation
            item = named(shown[schema], alias)
            if item is not None:
                found[name] = place(schema, alias), item
        held = self._rowsets(dict(found.values()))
        relations: dict[str, TableFacts] = {
            name: facts_of(item, held.get(item.version)) for name, (_, item) in found.items()
        }
        self._state = {
            table: item
            for table in (FINGERPRINTS, FRESHNESS)
            if (item := named(shown[self.home], table)) is not None
        }
        self._catalog = next((i.catalog for i in shown[self.home].values() if i.catalog), "")
        standing = Standing(relations, self._records())
        if self._file is not None:
            cachefile.write(self._file, self._cached, _LAYOUT)
        return standing

    def record(
        self, fingerprints: Sequence[Fingerprint], observations: Sequence[Observation]
    ) -> None:
        """Append rows to the state tables, which are made if the last look did not see them."""
        tables = {
            FINGERPRINTS: fingerprint_rows(fingerprints),
            FRESHNESS: observation_rows(observations),
        }
        try:
            for table, rows in tables.items():
                if not rows:
                    continue
                if table not in self._state:
                    for statement in create(self.home, table):
                        self._asking.rows(statement)
                for statement in insert(self.home, table, rows):
                    self._asking.rows(statement)
        except SqbError as error:
            # dbt has run by now
            error.exit_code = 1
            raise

    def close(self) -> None:
        """End the session."""
        self._asking.close()

    def _list(self, schema: str, names: set[str]) -> dict[str, Listed]:
        """The relations of a schema; none if there is no such schema."""
        own = {FINGERPRINTS, FRESHNESS} if schema == self.home else set()
        try:
            tables = read_tables(self._asking.rows(list_tables(schema, names | own)))
        except SqbError as error:
            if not is_missing_schema(error.message):
                raise
            return {}
        shown = find(tables)
        if any(item.session for item in tables) or all(named(shown, name) for name in names):
            return shown
        return {**shown, **find(read_views(self._views(schema, names), schema))}

    def _views(self, schema: str, names: set[str]) -> Rows:
        try:
            return self._asking.rows(list_views(schema, names))
        except SqbError as error:
            if not is_without_views(error.message):
                raise
            return []

    def _rowsets(self, tables: Mapping[str, Listed]) -> dict[str, Rowset]:
        """What each Iceberg table holds, by version; asked for are those that moved."""
        moved = {
            name: item
            for name, item in tables.items()
            if item.version and item.version not in self._cached.rowsets
        }
        held = {
            item.version: self._cached.rowsets[item.version]
            for item in tables.values()
            if item.version in self._cached.rowsets
        }
        snapshots = self._snapshots(moved)
        compacted = {n: item for n, item in moved.items() if is_compaction(item, snapshots[n])}
        snapshots |= self._snapshots(compacted, all_of_them=True)
        for name, item in moved.items():
            found = rowset(item, snapshots[name])
            if found is not None:
                held[item.version] = found
        self._cached.rowsets = held
        return held

    def _snapshots(
        self, tables: Mapping[str, Listed], *, all_of_them: bool = False
    ) -> dict[str, dict[int, Snapshot]]:
        out: dict[str, dict[int, Snapshot]] = {}
        names = list(tables)
        for start in range(0, len(names), _TOGETHER):
            some = {name: tables[name] for name in names[start : start + _TOGETHER]}
            rows = self._asking.rows(ask_snapshots(some, all_of_them=all_of_them))
            out |= read_snapshots(rows, some)
        return out

    def _records(self) -> dict[str, Record]:
        """The newest record of each node; of an Iceberg table that did not move, as it was read."""
        item = self._state.get(FINGERPRINTS)
        if item is None or item.snapshot == "none":
            return {}
        known = self._cached.records.get(item.version) if item.version else None
        if known is None:
            known = read_newest(self._asking.rows(select_newest(self.home, item.head)))
        self._cached.records = {item.version: known} if item.version else {}
        return known
