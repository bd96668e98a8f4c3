"""The state tables in a warehouse that only its server can write: statements, and answers read.

Pure. The tables are plain ones of whatever format the server makes by default, and only ever
appended to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqb.dbt.thrift_listing import place
from sqb.dbt.warehouse import Rows
from sqb.state.record import Record, newest
from sqb.state.tables import DBT, FINGERPRINTS, columns, record_of

#: One statement has at most so many rows, and, if it has several, so many characters.
MOST_ROWS, MOST_TEXT = 500, 1_000_000
#: Text that means itself in every mode of Spark's parser: no quotes, escapes or variables.
_PLAIN = re.compile(r"[\w .,:;/@#+=()\[\]<>|*?!%^~-]*", re.ASCII)


def create(schema: str, table: str) -> tuple[str, str]:
    """Make a state table and its schema, if they are not there."""
    kinds = (
        f"{name} {'TIMESTAMP' if instant else 'STRING'}" for name, instant in columns(table).items()
    )
    return (
        f"CREATE SCHEMA IF NOT EXISTS {place(schema)}",
        f"CREATE TABLE IF NOT EXISTS {place(schema, table)} ({', '.join(kinds)})",
    )


def insert(schema: str, table: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Append rows, in statements of bounded size."""
    kinds = columns(table)
    # one file, not one for each core of the server
    start = f"INSERT INTO {place(schema, table)} SELECT /*+ COALESCE(1) */ * FROM VALUES\n"
    batch: list[str] = []
    size = 0
    for row in rows:
        values = ", ".join(
            f"timestamp_micros({int(row[name])})" if instant else literal(str(row[name]))
            for name, instant in kinds.items()
        )
        if batch and (len(batch) == MOST_ROWS or size + len(values) > MOST_TEXT):
            yield start + ",\n".join(batch)
            batch, size = [], 0
        batch.append(f"({values})")
        size += len(values)
    if batch:
        yield start + ",\n".join(batch)


def select_newest(schema: str, version: int | None) -> str:
    """The newest record of each node; of an Iceberg table those of one version."""
    at = f" VERSION AS OF {version}" if version is not None else ""
    return (
        "SELECT max_by(metadata_json_b64, struct(ts, run_id)) "
        f"FROM {place(schema, FINGERPRINTS)}{at} "
        f"WHERE node_type = '{DBT}' GROUP BY node_name"
    )


def read_newest(rows: Rows) -> dict[str, Record]:
    """The records of ``select_newest``, by node."""
    out: dict[str, Record] = {}
    newest(out, (record for (text,) in rows if (record := record_of(text)) is not None))
    return {name: record for name, record in out.items() if record.type == DBT}


def literal(text: str) -> str:
    """A text as SQL, whatever is in it and however the server reads escapes.

    >>> literal("model.shop.orders"), literal("it's")
    ("'model.shop.orders'", "CAST(X'69742773' AS STRING)")
    """
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode('utf-8', 'surrogatepass').hex().upper()}' AS STRING)"
