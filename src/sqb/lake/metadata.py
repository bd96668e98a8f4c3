"""What a table's or view's metadata file says, as one small immutable value.

Only what sqb asks about is parsed, into typed structs, so a file with thousands of snapshots is
read fast. The whole document, for writing its successor, is ``read_document``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from sqb.errors import SqbError
from sqb.hashing import digest
from sqb.lake.catalog import Kind
from sqb.lake.io import is_within, read_bytes

#: Table and view properties in which sqb keeps what it knows about a relation.
STAMP = "sqb.stamp"
DEFINITION = "sqb.definition"
MANAGED = "sqb.managed-properties"


class Column(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A column; ``type`` is Iceberg's name, or for nested types canonical JSON with field ids.

    ``default`` is JSON: what rows from before the column came have in it. Empty: NULL.
    """

    id: int
    name: str
    type: str
    required: bool
    default: str = ""


class TableFacts(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The facts of one metadata file. Fields that a view does not have are None or empty.

    ``shape`` is a hash of the columns, for a view of its SQL too: it moves when someone alters the
    relation without writing a row.
    """

    kind: Kind
    uuid: str
    location: str
    snapshot_id: int | None
    data_snapshot_id: int | None
    data_timestamp_ms: int | None
    schema_id: int
    columns: tuple[Column, ...]
    snapshot_columns: tuple[Column, ...] | None
    partitioning: tuple[str, ...]
    sort_order: tuple[str, ...]
    format_version: int
    properties: dict[str, str]
    stamp: str | None
    total_records: int | None
    sql: str | None = None
    shape: str = ""
    total_bytes: int | None = None


class _Spec(msgspec.Struct, rename="kebab"):
    fields: list[dict[str, Any]]
    spec_id: int = 0
    order_id: int = 0


class _Schema(msgspec.Struct, rename="kebab"):
    fields: list[dict[str, Any]]
    schema_id: int = 0


class Summary(msgspec.Struct, rename="kebab"):
    """What a commit says it did."""

    operation: str | None = None
    total_records: str | None = None
    total_files_size: str | None = None


class Snapshot(msgspec.Struct, rename="kebab"):
    """One version of a table."""

    snapshot_id: int
    timestamp_ms: int
    parent_snapshot_id: int | None = None
    schema_id: int | None = None
    summary: Summary | None = None


class _Ref(msgspec.Struct, rename="kebab"):
    snapshot_id: int


class _Version(msgspec.Struct, rename="kebab"):
    version_id: int
    schema_id: int
    representations: list[dict[str, str]]


class _Document(msgspec.Struct, rename="kebab"):
    """Tables of format 1 to 3 and views of format 1: the fields of all, most of them optional."""

    format_version: int
    location: str
    schemas: list[_Schema] = []
    properties: dict[str, str] = {}
    table_uuid: str | None = None
    current_schema_id: int = 0
    schema: _Schema | None = None
    partition_specs: list[_Spec] = []
    default_spec_id: int = 0
    partition_spec: list[dict[str, Any]] = []
    sort_orders: list[_Spec] = []
    default_sort_order_id: int = 0
    snapshots: list[Snapshot] | None = None
    current_snapshot_id: int | None = None
    refs: dict[str, _Ref] = {}
    view_uuid: str | None = None
    current_version_id: int = 0
    versions: list[_Version] = []


# What the code below meets in a file of another shape; msgspec's own error is a ValueError.
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError, StopIteration)
_DECODER = msgspec.json.Decoder(_Document)


def read_facts(
    location: str, *, warehouse: str | None = None, read: Callable[[str], bytes] = read_bytes
) -> TableFacts:
    """The facts of a metadata file.

    ``warehouse`` is where the project keeps its tables now; a missing file that should be
    elsewhere tells that the project was moved.
    """
    return parse_facts(_read(location, warehouse, read), location)


def read_document(
    location: str, *, warehouse: str | None = None, read: Callable[[str], bytes] = read_bytes
) -> dict[str, Any]:
    """The whole metadata document, as it stands."""
    try:
        return msgspec.json.decode(_read(location, warehouse, read), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise _unreadable(location, error) from error


def parse_facts(data: bytes, location: str) -> TableFacts:
    """The facts in the bytes of a metadata file; ``location`` is for the error message."""
    try:
        document = _DECODER.decode(data)
        return _table(document) if document.view_uuid is None else _view(document)
    except _MALFORMED as error:
        raise _unreadable(location, error) from error


def schema_hash(columns: Iterable[Column]) -> str:
    """A hash of the ordered columns: ids, names, types, nullability."""
    digest = hashlib.blake2b(digest_size=16)
    for column in columns:
        for field in (str(column.id), column.name, column.type, str(int(column.required))):
            data = field.encode()
            digest.update(len(data).to_bytes(8, "big"))
            digest.update(data)
    return digest.hexdigest()


def canonical_type(value: object) -> str:
    """One text per Iceberg type, whoever wrote it: docs and defaults left out, keys in order.

    >>> canonical_type("decimal(10,2)")
    'decimal(10, 2)'
    >>> canonical_type({"type": "list", "element-id": 2, "element": "int",
    ...                 "element-required": True})
    '{"element":"int","element-id":2,"element-required":true,"type":"list"}'
    """
    canonical = _canonical(value)
    if isinstance(canonical, str):
        return canonical
    return msgspec.json.encode(canonical, order="sorted").decode()


def _canonical(value: object) -> object:
    if isinstance(value, str):
        return re.sub(r"\s*,\s*", ", ", value.strip())
    if not isinstance(value, dict):
        raise TypeError(f"not an Iceberg type: {value!r}")
    if value["type"] == "struct":
        return {
            "type": "struct",
            "fields": [
                {
                    "id": field["id"],
                    "name": field["name"],
                    "required": bool(field["required"]),
                    "type": _canonical(field["type"]),
                }
                for field in value["fields"]
            ],
        }
    # A list or a map: ids and flags are scalars, the rest are types.
    kept = {}
    for key in _NESTED[value["type"]]:
        kept[key] = _canonical(value[key]) if key in {"element", "key", "value"} else value[key]
    return {"type": value["type"], **kept}


_NESTED = {
    "list": ("element-id", "element", "element-required"),
    "map": ("key-id", "key", "value-id", "value", "value-required"),
}


def columns_of(fields: Iterable[dict[str, Any]]) -> tuple[Column, ...]:
    """The columns of a schema's ``fields``."""
    return tuple(
        Column(f["id"], f["name"], canonical_type(f["type"]), bool(f["required"]), _default(f))
        for f in fields
    )


def _default(field: dict[str, Any]) -> str:
    value = field.get("initial-default")
    return "" if value is None else msgspec.json.encode(value).decode()


def names_by_id(fields: Iterable[dict[str, Any]], prefix: str = "") -> dict[int, str]:
    """Dotted names of the fields of a schema, structs inside structs too."""
    names: dict[int, str] = {}
    for field in fields:
        names[field["id"]] = prefix + field["name"]
        kind = field["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            names |= names_by_id(kind["fields"], f"{prefix}{field['name']}.")
    return names


def _table(document: _Document) -> TableFacts:
    schemas = {s.schema_id: s for s in document.schemas}
    if not schemas and document.schema is not None:
        schemas = {document.current_schema_id: document.schema}
    current = schemas[document.current_schema_id]
    names: dict[int, str] = {}
    for schema in (*schemas.values(), current):
        names |= names_by_id(schema.fields)
    snapshots = {s.snapshot_id: s for s in document.snapshots or ()}
    main = document.refs.get("main")
    main_id = main.snapshot_id if main is not None else document.current_snapshot_id
    head = snapshots.get(-1 if main_id is None else main_id)
    data = before_compactions(head, snapshots)
    own = None
    if head is not None and head.schema_id not in {None, document.current_schema_id}:
        own = schemas.get(head.schema_id or 0)
    specs = {s.spec_id: s.fields for s in document.partition_specs}
    orders = {s.order_id: s.fields for s in document.sort_orders}
    summary = head.summary if head is not None else None
    records = summary.total_records if summary is not None else None
    columns = columns_of(current.fields)
    return TableFacts(
        kind="table",
        uuid=document.table_uuid or "",
        location=document.location,
        snapshot_id=head.snapshot_id if head is not None else None,
        data_snapshot_id=data.snapshot_id if data is not None else None,
        data_timestamp_ms=data.timestamp_ms if data is not None else None,
        schema_id=document.current_schema_id,
        columns=columns,
        snapshot_columns=None if own is None else columns_of(own.fields),
        partitioning=tuple(
            _term(field, names)
            for field in specs.get(document.default_spec_id, document.partition_spec)
            if field["transform"] != "void"
        ),
        sort_order=tuple(
            f"{_term(field, names)} {field['direction'].upper()}"
            f" {field['null-order'].upper().replace('-', ' ')}"
            for field in orders.get(document.default_sort_order_id, ())
        ),
        format_version=document.format_version,
        properties=_plain(document.properties),
        stamp=document.properties.get(STAMP),
        total_records=None if records is None else int(records),
        shape=schema_hash(columns),
        total_bytes=_bytes(head),
    )


def _bytes(head: Snapshot | None) -> int | None:
    """The size of a table's files; a table without a snapshot has none."""
    if head is None:
        return 0
    told = head.summary.total_files_size if head.summary is not None else None
    return int(told) if told is not None else None


def _view(document: _Document) -> TableFacts:
    version = next(v for v in document.versions if v.version_id == document.current_version_id)
    schema = next(s for s in document.schemas if s.schema_id == version.schema_id)
    texts = {r.get("dialect", ""): r["sql"] for r in version.representations if "sql" in r}
    sql = texts.get("spark", next(iter(texts.values()), None))
    columns = columns_of(schema.fields)
    return TableFacts(
        kind="view",
        uuid=document.view_uuid or "",
        location=document.location,
        snapshot_id=None,
        data_snapshot_id=None,
        data_timestamp_ms=None,
        schema_id=version.schema_id,
        columns=columns,
        snapshot_columns=None,
        partitioning=(),
        sort_order=(),
        format_version=document.format_version,
        properties=_plain(document.properties),
        stamp=document.properties.get(STAMP),
        total_records=None,
        sql=sql,
        shape=digest(schema_hash(columns), sql or ""),
    )


def before_compactions(head: Snapshot | None, snapshots: dict[int, Snapshot]) -> Snapshot | None:
    """The snapshot that last changed rows; compactions on top of it change none."""
    found = head
    while found is not None and found.summary is not None and found.summary.operation == "replace":
        parent = snapshots.get(found.parent_snapshot_id or -1)
        if parent is None:
            break
        found = parent
    return found


def _term(field: dict[str, Any], names: dict[int, str]) -> str:
    ids = field.get("source-ids") or [field["source-id"]]
    source = ", ".join(names.get(i, f"#{i}") for i in ids)
    transform = str(field["transform"])
    if transform == "identity":
        return source
    if transform in {"year", "month", "day", "hour"}:
        return f"{transform}s({source})"
    width = re.fullmatch(r"(\w+)\[(\d+)\]", transform)
    return f"{width[1]}({width[2]}, {source})" if width else f"{transform}({source})"


def _plain(properties: dict[str, str]) -> dict[str, str]:
    return {k: v for k, v in properties.items() if k not in {STAMP, DEFINITION}}


def _read(location: str, warehouse: str | None, read: Callable[[str], bytes]) -> bytes:
    try:
        return read(location)
    except FileNotFoundError as error:
        if warehouse is not None and not is_within(location, warehouse):
            raise SqbError(
                "L002",
                f"the project was moved: the catalog names {location}, which is gone and lies "
                f"outside the warehouse {warehouse}",
                file=location,
                help="paths in Iceberg metadata are absolute: move the project back, or delete "
                "its lake folder, load your sources into a new one and build again",
            ) from error
        raise _unreadable(location, error) from error
    except OSError as error:
        raise _unreadable(location, error) from error


def _unreadable(location: str, error: Exception) -> SqbError:
    what = "is missing" if isinstance(error, FileNotFoundError) else f"can't be read: {error}"
    return SqbError(
        "L004",
        f"the metadata file {location} {what}",
        file=location,
        help="restore the file, or drop the relation from the catalog and build it again",
    )
