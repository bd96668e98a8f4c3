"""PostgreSQL under a SQL catalog, through psycopg 3.

Every statement of a commit names the row it expects, so the default isolation suffices: of two
commits on one row the second waits, looks again, and finds another location. What the database
gives up by itself (deadlocks, serialisation failures) is done again.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqb.errors import SqbError
from sqb.lake.engines import (
    CREATE_PROPERTIES,
    CREATE_TABLES,
    UPGRADE,
    MissingColumn,
    MissingTable,
    Transaction,
)

if TYPE_CHECKING:
    import psycopg

#: How long to wait for the server, unless the address has a ``connect_timeout`` of its own.
CONNECT_TIMEOUT_S = 10

_ATTEMPTS = 8
#: Serialisation failure, deadlock; and what two that create the tables at once can get.
_AGAIN = frozenset({"40001", "40P01", "23505", "42P07", "42701"})
_UNDEFINED_TABLE, _UNDEFINED_COLUMN = "42P01", "42703"
#: One number for "the catalog's tables are being created".
_CREATING = 7203391


class PostgresDatabase:
    """One database of a PostgreSQL server. The first write creates the tables."""

    values_of_json = "SELECT json_array_elements_text(?::json)"
    path: Path | None = None

    def __init__(self, uri: str) -> None:
        self._address = plain_address(uri)
        self.place = without_login(self._address)
        self._complete = False

    def read(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of one query."""
        driver = _driver()
        try:
            with self._connect(driver) as db:
                return db.execute(_with_percent(sql), values).fetchall()
        except driver.Error as error:
            if error.sqlstate == _UNDEFINED_TABLE:
                raise MissingTable from error
            if error.sqlstate == _UNDEFINED_COLUMN:
                raise MissingColumn from error
            raise self._unreachable(error) from error

    def write(self, work: Callable[[Transaction], object]) -> None:
        """Do ``work`` in one transaction, all of it or nothing; again if the server asks."""
        driver = _driver()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with self._connect(driver) as db, db.transaction():
                    if not self._complete:
                        _create_tables(db)
                    work(_Session(db))
            except driver.Error as error:  # noqa: PERF203 - each turn may fail by itself
                if error.sqlstate == _UNDEFINED_TABLE and self._complete:
                    # Someone dropped the tables under a long-lived process.
                    self._complete = False
                elif error.sqlstate not in _AGAIN or attempt == _ATTEMPTS:
                    raise self._unreachable(error) from error
                time.sleep(random.uniform(0, 0.02 * 2**attempt))
            else:
                self._complete = True
                return
        raise AssertionError("unreachable")

    def _connect(self, driver: Any) -> psycopg.Connection[tuple[Any, ...]]:
        options: dict[str, Any] = {}
        if "connect_timeout" not in self._address:
            options["connect_timeout"] = CONNECT_TIMEOUT_S
        connection: psycopg.Connection[tuple[Any, ...]] = driver.connect(
            self._address, autocommit=True, application_name="sqb", **options
        )
        return connection

    def _unreachable(self, error: psycopg.Error) -> SqbError:
        text = " ".join(str(error).split())
        state = error.sqlstate or ""
        if state.startswith("28") or "authentication failed" in text or "no password" in text:
            help_text = "check user and password in `[catalog] uri`"
        elif state == "3D000" or "does not exist" in text:
            help_text = "create the database, or name another one in `[catalog] uri`"
        elif state == "42501":
            help_text = "the user of `[catalog] uri` needs the right to create and write tables"
        else:
            help_text = "is the server up, and are host and port in `[catalog] uri` right?"
        return SqbError(
            "L001", f"the catalog at {self.place} can't be used: {text}", help=help_text
        )


class _Session:
    """A connection that takes question marks."""

    def __init__(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._db = db

    def execute(self, sql: str, values: Sequence[str]) -> Any:
        return self._db.execute(_with_percent(sql), values)


def plain_address(uri: str) -> str:
    """The address as libpq reads it: without the name of a Python driver.

    >>> plain_address("postgresql+psycopg2://me@db/lake")
    'postgresql://me@db/lake'
    """
    return "postgresql:" + uri.partition(":")[2]


def without_login(address: str) -> str:
    """The address as it may be shown.

    >>> without_login("postgresql://me:pw@db:5432/lake?password=x")
    'postgresql://db:5432/lake'
    """
    from urllib.parse import urlsplit

    parts = urlsplit(address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise SqbError(
            "C007",
            "a catalog on PostgreSQL needs the package psycopg, which is not installed",
            help="pip install 'sqb[postgres]'",
        ) from error
    return psycopg


def _with_percent(sql: str) -> Any:
    return sql.replace("?", "%s")


def _create_tables(db: psycopg.Connection[tuple[Any, ...]]) -> None:
    # "IF NOT EXISTS" alone fails when two sessions create a table at the same moment.
    db.execute("SELECT pg_advisory_xact_lock(%s)", [_CREATING])
    db.execute(CREATE_TABLES)
    db.execute(CREATE_PROPERTIES)
    db.execute(UPGRADE.replace("ADD COLUMN", "ADD COLUMN IF NOT EXISTS"))
