"""Column types between Spark and Iceberg, both ways, without a JVM."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from sqb.errors import SqbError

_TO_ICEBERG = {
    "boolean": "boolean",
    "byte": "int",
    "short": "int",
    "integer": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "string": "string",
    "binary": "binary",
    "variant": "variant",
}
_TO_SPARK = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "timestamptz": "TIMESTAMP",
    "timestamp": "TIMESTAMP_NTZ",
    "string": "STRING",
    "uuid": "STRING",
    "binary": "BINARY",
    "variant": "VARIANT",
}
# Between the parts of a field's path; a dot may be part of a name.
_SEP = "\0"
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(-?\d+)\s*\)")
_TEXT = re.compile(r"(var)?char\(\d+\)|string collate .*")


class _Ids:
    """Gives out field ids: a field that was there before, by its path, keeps its own."""

    def __init__(self, previous: list[dict[str, Any]]) -> None:
        self._known: dict[str, int] = {}
        for field in previous:
            self._learn(field["name"], field["id"], field["type"])
        self._last = max(self._known.values(), default=0)

    def of(self, path: str) -> int:
        if path not in self._known:
            self._last += 1
            self._known[path] = self._last
        return self._known[path]

    def _learn(self, path: str, id_: int, kind: object) -> None:
        self._known[path] = id_
        if not isinstance(kind, dict):
            return
        for field in kind.get("fields", ()):
            self._learn(f"{path}{_SEP}{field['name']}", field["id"], field["type"])
        for part in ("element", "key", "value"):
            if part in kind:
                self._learn(f"{path}{_SEP}{part}", kind[f"{part}-id"], kind[part])


def iceberg_schema(
    spark_schema_json: dict[str, Any], previous: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """The Iceberg schema of a view, from ``df.schema.jsonValue()``.

    ``previous`` are the fields of the schema it replaces: what keeps its name keeps its id. All
    fields are optional, whatever Spark says: a view promises nothing about nulls.
    """
    ids = _Ids(previous or [])
    fields = spark_schema_json["fields"]
    # Ids of the columns first, as Iceberg itself numbers them: level by level.
    for field in fields:
        ids.of(field["name"])
    return {"type": "struct", "fields": [_field(f, f["name"], f["name"], ids) for f in fields]}


def _field(field: dict[str, Any], path: str, column: str, ids: _Ids) -> dict[str, Any]:
    made = {
        "id": ids.of(path),
        "name": field["name"],
        "required": False,
        "type": _from_spark(field["type"], path, column, ids),
    }
    comment = field.get("metadata", {}).get("comment")
    return {**made, "doc": comment} if comment else made


def _from_spark(kind: object, path: str, column: str, ids: _Ids) -> object:
    if isinstance(kind, str):
        found = _TO_ICEBERG.get(kind)
        if found is not None:
            return found
        if decimal := _DECIMAL.fullmatch(kind):
            return f"decimal({decimal[1]}, {decimal[2]})"
        if _TEXT.fullmatch(kind):
            return "string"
    elif isinstance(kind, dict) and kind["type"] == "struct":
        return {
            "type": "struct",
            "fields": [_field(f, f"{path}{_SEP}{f['name']}", column, ids) for f in kind["fields"]],
        }
    elif isinstance(kind, dict) and kind["type"] == "array":
        return {
            "type": "list",
            "element-id": ids.of(f"{path}{_SEP}element"),
            "element": _from_spark(kind["elementType"], f"{path}{_SEP}element", column, ids),
            "element-required": False,
        }
    elif isinstance(kind, dict) and kind["type"] == "map":
        return {
            "type": "map",
            "key-id": ids.of(f"{path}{_SEP}key"),
            "key": _from_spark(kind["keyType"], f"{path}{_SEP}key", column, ids),
            "value-id": ids.of(f"{path}{_SEP}value"),
            "value": _from_spark(kind["valueType"], f"{path}{_SEP}value", column, ids),
            "value-required": False,
        }
    name = kind["type"] if isinstance(kind, dict) else kind
    raise SqbError(
        "X002",
        f"column `{column}` has the type {name}, which Iceberg can't hold",
        help=f"cast it to a type Iceberg knows, as in `CAST({column} AS STRING)`",
        exit_code=1,
    )


def spark_type(column_type: str) -> str:
    """The Spark SQL name of a column's type, for casts.

    >>> spark_type("decimal(10, 2)")
    'DECIMAL(10, 2)'
    >>> spark_type('{"type":"list","element-id":2,"element":"long","element-required":false}')
    'ARRAY<BIGINT>'
    """
    kind = msgspec.json.decode(column_type) if column_type.startswith("{") else column_type
    return _to_spark(kind)


def _to_spark(kind: Any) -> str:
    if isinstance(kind, str):
        if kind in _TO_SPARK:
            return _TO_SPARK[kind]
        if decimal := _DECIMAL.fullmatch(kind):
            return f"DECIMAL({decimal[1]}, {decimal[2]})"
        if kind.startswith("fixed["):
            return "BINARY"
        raise SqbError(
            "X002",
            f"Spark has no type for Iceberg's {kind}",
            help="leave the column out, or have its writer store another type",
            exit_code=1,
        )
    if kind["type"] == "struct":
        fields = (f"{_quoted(f['name'])}: {_to_spark(f['type'])}" for f in kind["fields"])
        return f"STRUCT<{', '.join(fields)}>"
    if kind["type"] == "list":
        return f"ARRAY<{_to_spark(kind['element'])}>"
    return f"MAP<{_to_spark(kind['key'])}, {_to_spark(kind['value'])}>"


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
