"""What a thrift server shows of a schema: statements that ask for it, and its answers read.

Pure. Spark describes each table of a schema in a text of its own, which for Iceberg tables names
the current snapshot: one statement tells which of a hundred tables moved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from sqb.dbt.warehouse import Rows
from sqb.execution.content_hash import quote
from sqb.hashing import digest
from sqb.lake.catalog import Kind
from sqb.lake.metadata import Snapshot, Summary, TableFacts, before_compactions

#: So many names are asked for one by one; with more, all of the schema is.
_NAMED = 60
_PLAIN = re.compile(r"\w+", re.ASCII)
_SNAPSHOT = re.compile(r"[\[, ]current-snapshot-id=(\d+|none)(?=[,\]])")
_UUID = re.compile(r"[\[, ]uuid=([0-9a-fA-F-]{36})(?=[,\]])")
_NO_SCHEMA = re.compile(r"\[SCHEMA_NOT_FOUND\]|Namespace does not exist")
_NO_VIEWS = re.compile(r"\[MISSING_CATALOG_ABILITY\.VIEWS\]|initialized without view support")


class Listed(msgspec.Struct, frozen=True):
    """One relation as a listing shows it.

    ``session``: it stands in Spark's own catalog, which folds names. ``snapshot`` is that of an
    Iceberg table, ``"none"`` for one without any, empty where it is not told.
    """

    name: str
    kind: Kind
    catalog: str = ""
    session: bool = False
    location: str = ""
    shape: str = ""
    snapshot: str = ""
    uuid: str = ""

    @property
    def head(self) -> int | None:
        """The current snapshot, if one is told."""
        return int(self.snapshot) if self.snapshot.isdigit() else None

    @property
    def version(self) -> str:
        """Names the rows of an Iceberg table, whoever asks; empty where nothing does."""
        return f"{self.location}@{self.snapshot}" if self.head is not None else ""


class Rowset(msgspec.Struct, frozen=True, array_like=True):
    """What a snapshot holds: the one that last changed rows, when that was, how much it is."""

    snapshot: int
    committed_ms: int
    records: int | None = None
    bytes: int | None = None


def list_tables(schema: str, names: Collection[str]) -> str:
    """All tables of a schema with what Spark knows of them; of its own catalog views too.

    >>> list_tables("shop", ["orders"])
    "SHOW TABLE EXTENDED IN `shop` LIKE 'orders'"
    """
    return f"SHOW TABLE EXTENDED IN {place(schema)} LIKE '{_pattern(names)}'"


def list_views(schema: str, names: Collection[str]) -> str:
    """The views of a schema."""
    return f"SHOW VIEWS IN {place(schema)} LIKE '{_pattern(names)}'"


def place(*parts: str) -> str:
    """A name for Spark; a schema may be written with its catalog.

    >>> place("lake.shop", "orders")
    '`lake`.`shop`.`orders`'
    """
    schema, *rest = parts
    return ".".join(quote(part) for part in (*schema.split("."), *rest))


def is_missing_schema(error: str) -> bool:
    """Does an error say that there is no such schema?"""
    return _NO_SCHEMA.search(error) is not None


def is_without_views(error: str) -> bool:
    """Does an error say that the catalog knows no views?"""
    return _NO_VIEWS.search(error) is not None


def read_tables(rows: Rows) -> list[Listed]:
    """The relations of a listing, temporary ones left out."""
    return [
        _listed(str(name), information or "")
        for _, name, temporary, information in rows
        if temporary != "true"
    ]


def read_views(rows: Rows, schema: str) -> list[Listed]:
    """The views of a listing.

    Nothing tells one definition from another, so the name stands for it.
    """
    return [
        Listed(str(name), "view", uuid=digest("view", schema, str(name)))
        for _, name, temporary, *_ in rows
        if temporary != "true"
    ]


def find(listed: Sequence[Listed]) -> dict[str, Listed]:
    """Relations by the names that Spark would find them by; see ``named``."""
    return {item.name.lower() if item.session else f"={item.name}": item for item in listed}


def named(found: Mapping[str, Listed], name: str) -> Listed | None:
    """The relation of a name: Spark's own catalog does not heed upper and lower case.

    >>> shown = find([Listed("orders", "table", session=True), Listed("Cities", "table")])
    >>> [named(shown, name) is not None for name in ("Orders", "Cities", "cities")]
    [True, True, False]
    """
    return found.get(f"={name}") or found.get(name.lower())


def ask_snapshots(tables: Mapping[str, Listed], *, all_of_them: bool = False) -> str:
    """The current snapshot of each table, or all its snapshots; tables by their SQL name.

    The first column is the table's number.
    """
    return "\nUNION ALL\n".join(
        f"SELECT '{number}' AS t, CAST(snapshot_id AS STRING), CAST(parent_id AS STRING), "
        "operation, CAST(unix_millis(committed_at) AS STRING), summary['total-records'], "
        f"summary['total-files-size'] FROM {name}.`snapshots`"
        + ("" if all_of_them else f" WHERE snapshot_id = {item.head}")
        for number, (name, item) in enumerate(tables.items())
    )


def read_snapshots(rows: Rows, tables: Mapping[str, Listed]) -> dict[str, dict[int, Snapshot]]:
    """The snapshots of each table of ``ask_snapshots``, by its SQL name."""
    names = list(tables)
    out: dict[str, dict[int, Snapshot]] = {name: {} for name in names}
    for number, snapshot, parent, operation, committed, records, size in rows:
        found = Snapshot(
            snapshot_id=int(snapshot or 0),
            timestamp_ms=int(committed or 0),
            parent_snapshot_id=int(parent) if parent is not None else None,
            summary=Summary(operation, records, size),
        )
        out[names[int(number or 0)]][found.snapshot_id] = found
    return out


def rowset(item: Listed, snapshots: Mapping[int, Snapshot]) -> Rowset | None:
    """What the current snapshot holds; None if more of the history has to be known for that."""
    head = snapshots.get(item.head or -1)
    if head is None or head.summary is None:
        return None
    data = before_compactions(head, dict(snapshots))
    if data is None:
        return None
    return Rowset(
        data.snapshot_id,
        data.timestamp_ms,
        _number(head.summary.total_records),
        _number(head.summary.total_files_size),
    )


def is_compaction(item: Listed, snapshots: Mapping[int, Snapshot]) -> bool:
    """Did the last commit change no row, so that an earlier one tells when rows changed?"""
    head = snapshots.get(item.head or -1)
    return head is not None and head.summary is not None and head.summary.operation == "replace"


def facts_of(item: Listed, held: Rowset | None) -> TableFacts:
    """A relation's facts; without a ``uuid`` where nothing tells its rows from others."""
    exact = item.kind == "view" or item.snapshot == "none" or held is not None
    return TableFacts(
        kind=item.kind,
        uuid=item.uuid if exact else "",
        location=item.location,
        snapshot_id=item.head,
        data_snapshot_id=held.snapshot if held is not None else None,
        data_timestamp_ms=held.committed_ms if held is not None else None,
        schema_id=0,
        columns=(),
        snapshot_columns=None,
        partitioning=(),
        sort_order=(),
        format_version=0,
        properties={},
        stamp=None,
        total_records=held.records if held is not None else None,
        shape=item.shape,
        total_bytes=held.bytes if held is not None else None,
    )


def _listed(name: str, information: str) -> Listed:
    session = "\nDatabase: " in f"\n{information}"
    text, _, columns = information.rpartition("\nSchema: ")
    # a comment may look like any line; of Spark's own catalog it stands behind the provider, else
    # before it
    provider = _field(text, "Provider", first=session)
    kind: Kind = "view" if _field(text, "Type", first=True) == "VIEW" else "table"
    if kind == "view":
        shape = digest(columns.strip(), text.partition("\nView Text: ")[2])
        return Listed(name, kind, _field(text, "Catalog", first=True), session, shape=shape)
    location = _field(text, "Location")
    properties = _properties(text)
    snapshot = _SNAPSHOT.search(properties) if provider.lower() == "iceberg" else None
    uuid = _UUID.search(properties)
    return Listed(
        name,
        kind,
        catalog=_field(text, "Catalog", first=True),
        session=session,
        location=location,
        shape=digest(columns.strip()),
        snapshot=snapshot[1] if snapshot is not None else "",
        uuid=(uuid[1] if uuid is not None else digest("table", location)) if snapshot else "",
    )


def _properties(text: str) -> str:
    """The properties of a table: ``[key=value,…]``."""
    found = text.rpartition("\nTable Properties: ")[2]
    # Spark 4.1 writes each character of them as if it were one: [[, k, e, y, =, …, ]]
    return found[1::3] if found.startswith("[[, ") else found


def _field(text: str, key: str, *, first: bool = False) -> str:
    found = re.findall(rf"^{key}: (.*)$", text, re.MULTILINE)
    return str(found[0 if first else -1]) if found else ""


def _pattern(names: Collection[str]) -> str:
    """Names as ``SHOW … LIKE`` takes them; everything where they are many or would be read so."""
    if len(names) > _NAMED or not all(map(_PLAIN.fullmatch, names)):
        return "*"
    return "|".join(sorted(names))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
