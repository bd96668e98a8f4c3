"""The Iceberg SQL catalog, opened without a JVM: heads, namespaces and commits.

The tables are those of Iceberg's ``JdbcCatalog`` (schema version V1) and pyiceberg's
``SqlCatalog``; all three work on one database at a time. This module knows rows, not what the
metadata files behind them say, nor which database holds them (``sqlite`` and ``postgres`` do).
Every call opens and closes its own connection, so no lock outlives a call and any thread may
call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from sqb.lake.engines import (
    Database,
    MissingColumn,
    MissingTable,
    Transaction,
    open_database,
)

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["table", "view"]

_TABLE = "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
_VIEW = "iceberg_type = 'VIEW'"
_OF_KIND: dict[Kind, str] = {"table": _TABLE, "view": _VIEW}
_TYPE_NAME: dict[Kind, str] = {"table": "TABLE", "view": "VIEW"}

_PROPERTIES = "iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)"


class Head(msgspec.Struct, frozen=True, array_like=True):
    """What the catalog points at now, under one name."""

    namespace: str
    name: str
    kind: Kind
    location: str


class Point(msgspec.Struct, frozen=True):
    """Point a name at a metadata file: a new name if nothing is expected there, else a swap."""

    namespace: str
    name: str
    kind: Kind
    location: str
    expected: Head | None


class Drop(msgspec.Struct, frozen=True):
    """Remove a name that still points where it is expected to."""

    namespace: str
    name: str
    expected: Head


class CommitConflict(Exception):  # noqa: N818 - an outcome, not a failure
    """A name did not point where a commit expected it to; nothing of that commit was done."""

    def __init__(self, change: Point | Drop) -> None:
        super().__init__(f"{change.namespace}.{change.name} is not what the commit expected")
        self.change = change


class SqlCatalog:
    """One named catalog in one database.

    Reading never creates anything: a catalog that is not there yet has no heads. The first write
    creates what is missing, down to folder and file on SQLite.
    """

    def __init__(self, name: str, uri: str, warehouse: str) -> None:
        self.name = name
        self.uri = uri
        self.warehouse = warehouse
        self._database: Database = open_database(uri)

    @property
    def path(self) -> Path | None:
        """The file that holds the catalog, where it is one."""
        return self._database.path

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self._database.place!r})"

    def default_location(self, namespace: str, name: str) -> str:
        """Where a new relation of this name is kept."""
        return f"{self.warehouse.rstrip('/')}/{namespace}/{name}"

    # Reading

    def heads(self, namespaces: Iterable[str] | None = None) -> dict[tuple[str, str], Head]:
        """Every relation, or those of some namespaces, by (namespace, name)."""
        wanted = None if namespaces is None else list(namespaces)
        return {(h.namespace, h.name): h for h in self._heads(wanted, None)}

    def head(self, namespace: str, name: str) -> Head | None:
        """One relation, or None."""
        return next(iter(self._heads([namespace], name)), None)

    def namespaces(self) -> list[str]:
        """All namespaces, also those that exist only because a table is in them."""
        sql = (
            "SELECT namespace FROM iceberg_namespace_properties WHERE catalog_name = ?"
            " UNION SELECT table_namespace FROM iceberg_tables WHERE catalog_name = ? ORDER BY 1"
        )
        return [str(row[0]) for row in self._select(sql, [self.name, self.name])]

    def namespace_properties(self, namespace: str) -> dict[str, str]:
        """The properties of a namespace; empty if there is no such namespace."""
        sql = (
            "SELECT property_key, property_value FROM iceberg_namespace_properties"
            " WHERE catalog_name = ? AND namespace = ?"
        )
        return {str(k): str(v) for k, v in self._select(sql, [self.name, namespace])}

    # Writing

    def ensure_namespace(self, namespace: str) -> None:
        """Create a namespace if it is missing."""
        self._execute(
            f"INSERT INTO {_PROPERTIES} VALUES (?, ?, 'exists', 'true') ON CONFLICT DO NOTHING",
            [self.name, namespace],
        )

    def set_namespace_property(self, namespace: str, key: str, value: str) -> None:
        """Set one property, whatever it was before."""
        self._execute(
            f"INSERT INTO {_PROPERTIES} VALUES (?, ?, ?, ?)"
            " ON CONFLICT (catalog_name, namespace, property_key)"
            " DO UPDATE SET property_value = excluded.property_value",
            [self.name, namespace, key, value],
        )

    def remove_namespace_property(self, namespace: str, key: str) -> None:
        """Remove one property if it is there."""
        self._execute(
            "DELETE FROM iceberg_namespace_properties"
            " WHERE catalog_name = ? AND namespace = ? AND property_key = ?",
            [self.name, namespace, key],
        )

    def commit(self, changes: Sequence[Point | Drop]) -> None:
        """Do all changes in one transaction, or none and raise ``CommitConflict``."""

        def apply(db: Transaction) -> None:
            for change in changes:
                if self._apply(db, change) != 1:
                    raise CommitConflict(change)

        self._database.write(apply)

    def _apply(self, db: Transaction, change: Point | Drop) -> int:
        key = [self.name, change.namespace, change.name]
        expected = change.expected
        if expected is None:
            assert isinstance(change, Point)
            return db.execute(
                "INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                " metadata_location, previous_metadata_location, iceberg_type)"
                " VALUES (?, ?, ?, ?, NULL, ?) ON CONFLICT DO NOTHING",
                [*key, change.location, _TYPE_NAME[change.kind]],
            ).rowcount
        where = (
            " WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?"
            f" AND metadata_location = ? AND {_OF_KIND[expected.kind]}"
        )
        if isinstance(change, Drop):
            sql = f"DELETE FROM iceberg_tables{where}"
            return db.execute(sql, [*key, expected.location]).rowcount
        sql = (
            "UPDATE iceberg_tables SET metadata_location = ?, previous_metadata_location = ?,"
            f" iceberg_type = ?{where}"
        )
        new = [change.location, expected.location, _TYPE_NAME[change.kind]]
        return db.execute(sql, [*new, *key, expected.location]).rowcount

    # Rows

    def _heads(self, namespaces: list[str] | None, name: str | None) -> Iterator[Head]:
        where, values = "catalog_name = ?", [self.name]
        if namespaces is not None:
            # One JSON parameter: a list of any length is still one statement.
            where += f" AND table_namespace IN ({self._database.values_of_json})"
            values.append(msgspec.json.encode(namespaces).decode())
        if name is not None:
            where += " AND table_name = ?"
            values.append(name)
        columns = "table_namespace, table_name, metadata_location"
        sql = f"SELECT {columns}, {{}} FROM iceberg_tables WHERE {where}"
        try:
            rows = self._select(sql.format("iceberg_type"), values)
        except MissingColumn:
            # A catalog of schema version V0 holds tables only.
            rows = self._select(sql.format("NULL"), values)
        for namespace, found, location, kind in rows:
            # A row without metadata is a table that its writer never finished.
            if location is not None:
                yield Head(namespace, found, "view" if kind == "VIEW" else "table", location)

    def _select(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """Rows of a query; none if the catalog is not there yet."""
        try:
            return self._database.read(sql, values)
        except MissingTable:
            return []

    def _execute(self, sql: str, values: Sequence[str]) -> None:
        self._database.write(lambda db: db.execute(sql, values))
