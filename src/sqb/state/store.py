"""The state tables in the lake: latest rows read through a cache, new rows appended at the end.

A state table whose head did not move holds what was read last time, so an unchanged project costs
no read at all. Rows are only ever appended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sqb import cachefile
from sqb.lake.catalog import Head
from sqb.lake.iceberg import open_iceberg
from sqb.lake.stores import answering
from sqb.state.record import Record, newest
from sqb.state.tables import (
    FINGERPRINTS,
    FRESHNESS,
    Fingerprint,
    Observation,
    arrow_schema,
    fingerprint_rows,
    observation_rows,
    record_of,
)

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog as IcebergCatalog
    from pyiceberg.table import Table

_LAYOUT = 1
_ATTEMPTS = 8


class _Cached(msgspec.Struct, array_like=True):
    """Latest records by node, for each state table by its metadata location."""

    tables: dict[str, dict[str, Record]] = {}


class StateStore:
    """Reads and appends the state tables of some schemas of one catalog."""

    def __init__(
        self,
        name: str,
        uri: str,
        warehouse: str,
        cache: Path | None,
        *,
        kind: str = "sql",
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self._opening = partial(open_iceberg, name, uri, warehouse, kind, properties)
        self._cache_path = cache
        cached = cachefile.read(cache, _Cached, _LAYOUT) if cache else None
        self._cached = cached or _Cached()
        self._iceberg: IcebergCatalog | None = None

    @answering("the state tables")
    def latest(
        self, heads: Mapping[tuple[str, str], Head], namespaces: Iterable[str]
    ) -> dict[str, Record]:
        """The newest record of every node in these schemas, by node name."""
        out: dict[str, Record] = {}
        for namespace in sorted(set(namespaces)):
            head = heads.get((namespace, FINGERPRINTS))
            if head is None:
                continue
            records = self._cached.tables.get(head.location)
            if records is None:
                records = self._scan(namespace)
                self._cached.tables[head.location] = records
                self._save({h.location for h in heads.values()})
            newest(out, records.values())
        return out

    @answering("the state tables")
    def append(
        self,
        fingerprints: Sequence[Fingerprint],
        observations: Sequence[Observation],
        observed_in: Mapping[str, Sequence[str]],
    ) -> None:
        """One append per schema and table; ``observed_in``: source -> schemas of its readers."""
        for namespace in sorted({f.home or f.schema for f in fingerprints}):
            mine = [f for f in fingerprints if (f.home or f.schema) == namespace]
            before, after = self._append(namespace, FINGERPRINTS, fingerprint_rows(mine))
            known = dict(self._cached.tables.pop(before, {}) if before else {})
            if before is None or known:
                newest(known, (f.record for f in mine))
                self._cached.tables[after] = known
        for namespace in sorted({n for schemas in observed_in.values() for n in schemas}):
            seen = [o for o in observations if namespace in observed_in.get(o.source, ())]
            self._append(namespace, FRESHNESS, observation_rows(seen))
        self._save(None)

    @answering("the state tables")
    def observations(self, namespaces: Iterable[str]) -> dict[str, dict[str, Any]]:
        """The newest recorded observation of every source, in any of these schemas."""
        out: dict[str, dict[str, Any]] = {}
        for namespace in sorted(set(namespaces)):
            table = self._load(namespace, FRESHNESS)
            for row in table.scan().to_arrow().to_pylist() if table is not None else ():
                known = out.get(row["source_name"])
                when = (row["observed_at"], row["run_id"])
                if known is None or when > (known["observed_at"], known["run_id"]):
                    out[row["source_name"]] = row
        return out

    @answering("the state tables")
    def history(self, namespaces: Iterable[str]) -> list[dict[str, Any]]:
        """Every fingerprint row of these schemas, oldest first."""
        rows: list[dict[str, Any]] = []
        for namespace in sorted(set(namespaces)):
            table = self._load(namespace, FINGERPRINTS)
            if table is not None:
                rows += table.scan().to_arrow().to_pylist()
        return sorted(rows, key=lambda row: (row["ts"], row["run_id"]))

    def definition(self, namespaces: Iterable[str], name: str) -> str | None:
        """The newest definition text that a row holds for a node."""
        from sqb.state.tables import text_of

        for row in reversed(self.history(namespaces)):
            if row["node_name"] == name:
                return text_of(row["definition_b64"])
        return None

    def carry(self, before: str, after: str) -> None:
        """A state table's metadata moved, its newest rows did not: what is known stays known."""
        known = self._cached.tables.pop(before, None)
        if known is not None:
            self._cached.tables[after] = known
            self._save(None)

    def open(self) -> IcebergCatalog:
        """pyiceberg's catalog, imported and opened once; over a second the first time."""
        if self._iceberg is None:
            self._iceberg = self._opening()
        return self._iceberg

    def close(self) -> None:
        """Let go of pyiceberg's catalog and its connections."""
        if self._iceberg is not None:
            self._iceberg.close()
            self._iceberg = None

    def _load(self, namespace: str, table: str) -> Table | None:
        from pyiceberg.exceptions import NoSuchTableError

        try:
            return self.open().load_table((namespace, table))
        except NoSuchTableError:
            return None

    def _scan(self, namespace: str) -> dict[str, Record]:
        table = self._load(namespace, FINGERPRINTS)
        out: dict[str, Record] = {}
        if table is not None:
            rows = table.scan(selected_fields=("metadata_json_b64",)).to_arrow()
            texts = rows.column("metadata_json_b64").to_pylist()
            newest(out, (r for r in map(record_of, texts) if r is not None))
        return out

    def _append(
        self, namespace: str, name: str, rows: list[dict[str, Any]]
    ) -> tuple[str | None, str]:
        """Append rows; the metadata location before (None: the table is new) and after.

        The location before is empty if someone else's rows came in between: what is known of the
        table is then not all that it holds.
        """
        import pyarrow as pa
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError

        catalog = self.open()
        schema = arrow_schema(name)
        data = pa.Table.from_pylist(rows, schema=schema)
        for attempt in range(_ATTEMPTS):
            table = self._load(namespace, name)
            before = table.metadata_location if table is not None else None
            try:
                if table is None:
                    _ensure_namespace(catalog, namespace)
                    table = catalog.create_table((namespace, name), schema=schema)
                base = table.metadata_location
                table.append(data)
            except (CommitFailedException, TableAlreadyExistsError):
                # another build appended at the same moment
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            # pyiceberg retries by itself, on top of what others appended meanwhile
            log = table.metadata.metadata_log
            alone = bool(log) and log[-1].metadata_file == base
            return before if alone else "", table.metadata_location
        raise AssertionError("unreachable")

    def _save(self, live: set[str] | None) -> None:
        if self._cache_path is None:
            return
        if live is not None:
            tables = self._cached.tables
            self._cached.tables = {k: v for k, v in tables.items() if k in live}
        cachefile.write(self._cache_path, self._cached, _LAYOUT)


def _ensure_namespace(catalog: IcebergCatalog, namespace: str) -> None:
    """Of two that create one at the same moment, one gets the database's own error, which a REST
    server passes on as it pleases."""
    from pyiceberg.exceptions import RESTError
    from sqlalchemy.exc import IntegrityError

    try:
        catalog.create_namespace_if_not_exists(namespace)
    except (IntegrityError, RESTError):
        if not catalog.namespace_exists(namespace):
            raise
