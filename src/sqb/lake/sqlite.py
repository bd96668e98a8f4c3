"""SQLite under a SQL catalog: a file beside the tables, the embedded default."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from sqb.errors import SqbError
from sqb.lake.engines import (
    CREATE_PROPERTIES,
    CREATE_TABLES,
    UPGRADE,
    MissingColumn,
    MissingTable,
    Transaction,
)

#: How long to wait for another process's lock.
LOCK_TIMEOUT_S = 60.0

_PREFIX = "sqlite:///"


class SqliteDatabase:
    """One SQLite file. The first write creates folder, file and tables."""

    values_of_json = "SELECT value FROM json_each(?)"

    def __init__(self, uri: str) -> None:
        if not uri.startswith(_PREFIX) or uri == _PREFIX:
            raise SqbError(
                "C007",
                "a SQLite catalog needs the path of a file",
                help='use uri = "sqlite:///lake/catalog.db"',
            )
        self.path = Path(uri[len(_PREFIX) :]).absolute()
        self.place = uri
        self._complete = False

    def read(self, sql: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        """The rows of one query."""
        if not self._is_there():
            raise MissingTable
        with self._connect("rw") as db:
            try:
                return db.execute(sql, values).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    raise MissingTable from error
                if "no such column" in str(error):
                    raise MissingColumn from error
                raise

    def write(self, work: Callable[[Transaction], object]) -> None:
        """Do ``work`` in one transaction, all of it or nothing."""
        # Looked at each time: someone may have deleted the lake under a long-lived process.
        complete = self._complete and self._is_there()
        with self._connect("rwc") as db:
            # Takes the write lock at once: a lock asked for midway can't be waited for.
            db.execute("BEGIN IMMEDIATE")
            try:
                if not complete:
                    _create_tables(db)
                work(db)
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
            self._complete = True

    def _is_there(self) -> bool:
        """Is there a file? A place where none can be is an error, not an empty lake."""
        try:
            self.path.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unreachable(error) from error
        return True

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

    def _unreachable(self, error: Exception) -> SqbError:
        text = str(error)
        if isinstance(error, OSError):
            text = f"{error.filename}: {error.strerror}"
        if "locked" in text:
            help_text = "another program holds a lock on the file; end it, then try again"
        elif "not a database" in text or "malformed" in text:
            help_text = "the file is not a SQLite database or is damaged: restore it from a backup"
        else:
            help_text = "check `[catalog] uri`, and that the file and its folder can be written"
        return SqbError(
            "L001", f"the catalog can't be used: {text}", file=str(self.path), help=help_text
        )


def _create_tables(db: sqlite3.Connection) -> None:
    db.execute(CREATE_TABLES)
    db.execute(CREATE_PROPERTIES)
    columns = {row[1] for row in db.execute("PRAGMA table_info(iceberg_tables)")}
    if "iceberg_type" not in columns:
        db.execute(UPGRADE)


def _uri_path(path: Path) -> str:
    escapes = (("%", "%25"), ("?", "%3f"), ("#", "%23"))
    text = str(path)
    for plain, escaped in escapes:
        text = text.replace(plain, escaped)
    return text
