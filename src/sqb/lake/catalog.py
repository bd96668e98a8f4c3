"""The Iceberg SQL catalog on SQLite, opened without a JVM: heads, namespaces and commits.

The tables are those of Iceberg's ``JdbcCatalog`` (schema version V1) and pyiceberg's
``SqlCatalog``; all three work on one file at a time. This module knows rows, not what the
metadata files behind them say. Every call opens and closes its own connection, so no lock
outlives a call and any thread may call.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from sqb.errors import SqbError

Kind = Literal["table", "view"]

#: How long to wait for another process's lock.
LOCK_TIMEOUT_S = 60.0

_SQLITE = "sqlite:///"
_TABLE = "(iceberg_type = 'TABLE' OR iceberg_type IS NULL)"
_VIEW = "iceberg_type = 'VIEW'"
_OF_KIND: dict[Kind, str] = {"table": _TABLE, "view": _VIEW}
_TYPE_NAME: dict[Kind, str] = {"table": "TABLE", "view": "VIEW"}

# Word for word what JdbcCatalog would create, with the column that its V1 schema adds.
_CREATE_TABLES = (
    "CREATE TABLE IF NOT EXISTS iceberg_tables("
    "catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,"
    "table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),"
    "previous_metadata_location VARCHAR(1000),iceberg_type VARCHAR(5),"
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
)
_CREATE_PROPERTIES = (
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties("
    "catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,"
    "property_key VARCHAR(255),property_value VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, namespace, property_key))"
)
_PROPERTIES = "iceberg_namespace_properties (catalog_name, namespace, property_key, property_value)"
_UPGRADE = "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"


def _uri_path(path: Path) -> str:
    escapes = (("%", "%25"), ("?", "%3f"), ("#", "%23"))
    text = str(path)
    for plain, escaped in escapes:
        text = text.replace(plain, escaped)
    return text


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
    """One named catalog in one SQLite file.

    Reading never creates the file: a catalog that is not there yet has no heads. The first write
    creates folder, file and tables.
    """

    def __init__(self, name: str, uri: str, warehouse: str) -> None:
        if not uri.startswith(_SQLITE) or uri == _SQLITE:
            raise SqbError(
                "C007",
                f"the catalog address has the scheme `{uri.partition(':')[0]}`, not `sqlite`",
                help='use uri = "sqlite:///lake/catalog.db"',
            )
        self.name = name
        self.uri = uri
        self.warehouse = warehouse
        self.path = Path(uri[len(_SQLITE) :]).absolute()
        self._complete = False

    def __repr__(self) -> str:
        return f"SqlCatalog({self.name!r}, {self.uri!r})"

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
        with self._transaction() as db:
            db.execute(
                f"INSERT OR IGNORE INTO {_PROPERTIES} VALUES (?, ?, 'exists', 'true')",
                [self.name, namespace],
            )

    def set_namespace_property(self, namespace: str, key: str, value: str) -> None:
        """Set one property, whatever it was before."""
        with self._transaction() as db:
            db.execute(
                f"INSERT INTO {_PROPERTIES} VALUES (?, ?, ?, ?)"
                " ON CONFLICT (catalog_name, namespace, property_key)"
                " DO UPDATE SET property_value = excluded.property_value",
                [self.name, namespace, key, value],
            )

    def remove_namespace_property(self, namespace: str, key: str) -> None:
        """Remove one property if it is there."""
        with self._transaction() as db:
            db.execute(
                "DELETE FROM iceberg_namespace_properties"
                " WHERE catalog_name = ? AND namespace = ? AND property_key = ?",
                [self.name, namespace, key],
            )

    def commit(self, changes: Sequence[Point | Drop]) -> None:
        """Do all changes in one transaction, or none and raise ``CommitConflict``."""
        with self._transaction() as db:
            for change in changes:
                if self._apply(db, change) != 1:
                    raise CommitConflict(change)

    def _apply(self, db: sqlite3.Connection, change: Point | Drop) -> int:
        key = [self.name, change.namespace, change.name]
        expected = change.expected
        if expected is None:
            assert isinstance(change, Point)
            return db.execute(
                "INSERT OR IGNORE INTO iceberg_tables (catalog_name, table_namespace, table_name,"
                " metadata_location, previous_metadata_location, iceberg_type)"
                " VALUES (?, ?, ?, ?, NULL, ?)",
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

    # Connections

    def _heads(self, namespaces: list[str] | None, name: str | None) -> Iterator[Head]:
        where, values = "catalog_name = ?", [self.name]
        if namespaces is not None:
            # One JSON parameter: a list of any length is still one statement.
            where += " AND table_namespace IN (SELECT value FROM json_each(?))"
            values.append(msgspec.json.encode(namespaces).decode())
        if name is not None:
            where += " AND table_name = ?"
            values.append(name)
        columns = "table_namespace, table_name, metadata_location"
        sql = f"SELECT {columns}, {{}} FROM iceberg_tables WHERE {where}"
        rows = self._select(sql.format("iceberg_type"), values, older=sql.format("NULL"))
        for namespace, found, location, kind in rows:
            # A row without metadata is a table that its writer never finished.
            if location is not None:
                yield Head(namespace, found, "view" if kind == "VIEW" else "table", location)

    def _select(
        self, sql: str, values: Sequence[str], older: str | None = None
    ) -> list[tuple[str, ...]]:
        """Rows of a query; none if file or tables are missing. ``older`` suits a V0 catalog."""
        if not self.path.exists():
            return []
        with self._connect("rw") as db:
            try:
                return db.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                if older is None or "no such column" not in str(error):
                    raise
                return db.execute(older, values).fetchall()

    @contextlib.contextmanager
    def _connect(self, mode: Literal["rw", "rwc"]) -> Iterator[sqlite3.Connection]:
        try:
            if mode == "rwc":
                self.path.parent.mkdir(parents=True, exist_ok=True)
            # Not read-only even for reading: a crashed writer's journal must be rolled back.
            db = sqlite3.connect(
                f"file:{_uri_path(self.path)}?mode={mode}",
                uri=True,
                timeout=LOCK_TIMEOUT_S,
                isolation_level=None,
            )
            with contextlib.closing(db):
                yield db
        except (sqlite3.Error, OSError) as error:
            raise self._unreachable(error) from error

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        # Looked at each time: someone may have deleted the lake under a long-lived process.
        complete = self._complete and self.path.exists()
        with self._connect("rwc") as db:
            # Takes the write lock at once: a lock asked for midway can't be waited for.
            db.execute("BEGIN IMMEDIATE")
            try:
                if not complete:
                    self._create_tables(db)
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
            self._complete = True

    def _create_tables(self, db: sqlite3.Connection) -> None:
        db.execute(_CREATE_TABLES)
        db.execute(_CREATE_PROPERTIES)
        columns = {row[1] for row in db.execute("PRAGMA table_info(iceberg_tables)")}
        if "iceberg_type" not in columns:
            db.execute(_UPGRADE)

    def _unreachable(self, error: Exception) -> SqbError:
        text = str(error)
        if "locked" in text:
            help_text = "another program holds a lock on the file; end it, then try again"
        elif "not a database" in text or "malformed" in text:
            help_text = "the file is not a SQLite database or is damaged: restore it from a backup"
        else:
            help_text = "check `[catalog] uri`, and that the file and its folder can be written"
        return SqbError(
            "L001",
            f"the catalog can't be used: {text}",
            file=str(self.path),
            help=help_text,
        )
