"""What a SQL catalog asks of its database, and which module opens which address.

The two engines (``sqlite``, ``postgres``) answer with the same exceptions, so that the catalog
itself knows no driver. Placeholders are question marks everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from sqb.errors import SqbError

# Word for word what JdbcCatalog would create, with the column that its V1 schema adds.
CREATE_TABLES = (
    "CREATE TABLE IF NOT EXISTS iceberg_tables("
    "catalog_name VARCHAR(255) NOT NULL,table_namespace VARCHAR(255) NOT NULL,"
    "table_name VARCHAR(255) NOT NULL,metadata_location VARCHAR(1000),"
    "previous_metadata_location VARCHAR(1000),iceberg_type VARCHAR(5),"
    "PRIMARY KEY (catalog_name, table_namespace, table_name))"
)
CREATE_PROPERTIES = (
    "CREATE TABLE IF NOT EXISTS iceberg_namespace_properties("
    "catalog_name VARCHAR(255) NOT NULL,namespace VARCHAR(255) NOT NULL,"
    "property_key VARCHAR(255),property_value VARCHAR(1000),"
    "PRIMARY KEY (catalog_name, namespace, property_key))"
)
UPGRADE = "ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"


class MissingTable(Exception):  # noqa: N818 - an outcome, not a failure
    """The catalog's tables are not there yet."""


class MissingColumn(Exception):  # noqa: N818 - an outcome, not a failure
    """The catalog's tables are of an older schema version."""


class Counted(Protocol):
    """What a statement answers with."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""


class Transaction(Protocol):
    """A transaction in progress."""

    def execute(self, sql: str, values: Sequence[str], /) -> Counted:
        """Run one statement."""


class Database(Protocol):
    """One database that may hold a catalog."""

    #: A sub-select of the texts in one JSON parameter.
    values_of_json: str
    #: The address as it may be shown.
    place: str

    @property
    def path(self) -> Path | None:
        """The file, where the database is one."""

    def read(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of one query."""

    def write(self, work: Callable[[Transaction], object]) -> None:
        """Do ``work`` in one transaction, all of it or nothing.

        It may be called again when the database asks for a retry.
        """


def open_database(uri: str) -> Database:
    """The database at an address; nothing is connected yet."""
    dialect = uri.partition(":")[0].partition("+")[0]
    if dialect == "sqlite":
        from sqb.lake.sqlite import SqliteDatabase

        return SqliteDatabase(uri)
    if dialect in {"postgresql", "postgres"}:
        from sqb.lake.postgres import PostgresDatabase

        return PostgresDatabase(uri)
    raise SqbError(
        "C007",
        f"a SQL catalog can't be opened at an address of the form `{dialect}:…`",
        help='use uri = "sqlite:///lake/catalog.db" or "postgresql://host/database"',
    )
