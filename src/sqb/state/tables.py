"""The state tables of the contract: their columns, and rows made of records."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.state.record import Record, decode, encode

if TYPE_CHECKING:
    import pyarrow as pa

FINGERPRINTS = "_sqlbuild_fingerprints"
FRESHNESS = "_sqlbuild_source_freshness"
#: The ``node_type`` of every row that speaks of a dbt project.
DBT = "dbt"

_COLUMNS: dict[str, tuple[str, ...]] = {
    FINGERPRINTS: (
        "node_type",
        "node_name",
        "target_database",
        "target_schema",
        "target_name",
        "run_id",
        "definition_hash",
        "version_hash",
        "schema_fingerprint",
        "definition_b64",
        "metadata_json_b64",
        "ts",
    ),
    FRESHNESS: (
        "source_name",
        "target_database",
        "target_schema",
        "target_name",
        "run_id",
        "strategy",
        "value_kind",
        "data_version",
        "data_version_hash",
        "observed_at",
    ),
}
_TIMES = frozenset({"ts", "observed_at"})


class Fingerprint(msgspec.Struct, frozen=True):
    """A record on its way into the state table, with the relation it speaks of.

    ``home`` is the schema that keeps it, if that is not the relation's own.
    """

    record: Record
    database: str
    schema: str
    relation: str
    definition: str
    home: str = ""


class Observation(msgspec.Struct, frozen=True):
    """A source's data version as the models of a successful build consumed it."""

    source: str
    database: str
    schema: str
    table: str
    run: str
    data_version: str
    data_version_hash: str
    ts: int
    strategy: str = "adapter"
    value_kind: str = "snapshot"


def columns(table: str) -> dict[str, bool]:
    """The columns of a state table, in order, and whether each is an instant; else it is text."""
    return {name: name in _TIMES for name in _COLUMNS[table]}


def arrow_schema(table: str) -> pa.Schema:
    """The columns of a state table: text, and one instant."""
    import pyarrow as pa

    return pa.schema(
        [
            pa.field(name, pa.timestamp("us", tz="UTC") if instant else pa.string())
            for name, instant in columns(table).items()
        ]
    )


def fingerprint_rows(items: Iterable[Fingerprint]) -> list[dict[str, Any]]:
    """Rows of ``_sqlbuild_fingerprints``."""
    return [
        {
            "node_type": item.record.type,
            "node_name": item.record.node,
            "target_database": item.database,
            "target_schema": item.schema,
            "target_name": item.relation,
            "run_id": item.record.run,
            "definition_hash": item.record.query,
            "version_hash": item.record.version,
            "schema_fingerprint": item.record.schema,
            "definition_b64": _b64(item.definition),
            "metadata_json_b64": _b64(encode(item.record)),
            "ts": item.record.ts,
        }
        for item in items
    ]


def observation_rows(items: Iterable[Observation]) -> list[dict[str, Any]]:
    """Rows of ``_sqlbuild_source_freshness``."""
    return [
        {
            "source_name": item.source,
            "target_database": item.database,
            "target_schema": item.schema,
            "target_name": item.table,
            "run_id": item.run,
            "strategy": item.strategy,
            "value_kind": item.value_kind,
            "data_version": item.data_version,
            "data_version_hash": item.data_version_hash,
            "observed_at": item.ts,
        }
        for item in items
    ]


def record_of(metadata_json_b64: str | None) -> Record | None:
    """The record inside a row; rows of other tools or versions hold none."""
    try:
        return decode(base64.b64decode(metadata_json_b64 or "", validate=True))
    except ValueError:
        return None


def text_of(b64: str | None) -> str:
    """The text inside a ``…_b64`` column."""
    return base64.b64decode(b64 or "").decode("utf-8", "replace")


def _b64(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")
