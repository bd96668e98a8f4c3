from __future__ import annotations

from typing import Any

import pytest

from sqb.errors import SqbError
from sqb.lake.metadata import canonical_type
from sqb.lake.types import iceberg_schema, spark_type


def field(name: str, kind: Any, comment: str | None = None) -> dict[str, Any]:
    metadata = {"comment": comment} if comment else {}
    return {"name": name, "type": kind, "nullable": False, "metadata": metadata}


def schema(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


SIMPLE = [
    ("boolean", "boolean", "BOOLEAN"),
    ("byte", "int", "INT"),
    ("short", "int", "INT"),
    ("integer", "int", "INT"),
    ("long", "long", "BIGINT"),
    ("float", "float", "FLOAT"),
    ("double", "double", "DOUBLE"),
    ("date", "date", "DATE"),
    ("timestamp", "timestamptz", "TIMESTAMP"),
    ("timestamp_ntz", "timestamp", "TIMESTAMP_NTZ"),
    ("string", "string", "STRING"),
    ("varchar(3)", "string", "STRING"),
    ("char(3)", "string", "STRING"),
    ("binary", "binary", "BINARY"),
    ("variant", "variant", "VARIANT"),
    ("decimal(10,2)", "decimal(10, 2)", "DECIMAL(10, 2)"),
]


@pytest.mark.parametrize(("spark", "iceberg", "back"), SIMPLE)
def test_simple_types_go_both_ways(spark: str, iceberg: str, back: str) -> None:
    made = iceberg_schema(schema(field("c", spark, "words")), None)
    assert made["fields"] == [
        {"id": 1, "name": "c", "required": False, "type": iceberg, "doc": "words"}
    ]
    assert spark_type(iceberg) == back


NESTED = schema(
    field("a", "integer"),
    field(
        "m",
        {
            "type": "map",
            "keyType": "string",
            "valueType": {
                "type": "array",
                "elementType": {"type": "struct", "fields": [field("x`y", "long")]},
                "containsNull": False,
            },
            "valueContainsNull": True,
        },
    ),
    field("z", "string"),
)


def test_nested_types_get_ids_after_those_of_the_columns() -> None:
    made = iceberg_schema(NESTED, None)
    assert [f["id"] for f in made["fields"]] == [1, 2, 3]
    kind = made["fields"][1]["type"]
    assert (kind["key-id"], kind["value-id"], kind["value"]["element-id"]) == (4, 5, 6)
    assert kind["value"]["element"]["fields"][0]["id"] == 7
    assert spark_type(canonical_type(kind)) == "MAP<STRING, ARRAY<STRUCT<`x``y`: BIGINT>>>"


def test_what_keeps_its_name_keeps_its_id() -> None:
    before = iceberg_schema(NESTED, None)
    after = iceberg_schema(
        schema(field("new", "integer"), *reversed(NESTED["fields"])), before["fields"]
    )
    ids = {f["name"]: f["id"] for f in after["fields"]}
    assert ids == {"new": 8, "z": 3, "m": 2, "a": 1}
    assert after["fields"][2]["type"] == before["fields"][1]["type"]


@pytest.mark.parametrize(
    "kind",
    [
        "void",
        "calendar interval",
        "interval day to second",
        "geometry(4326)",
        {"type": "udt", "class": "x", "sqlType": "string"},
        {"type": "array", "elementType": "void", "containsNull": True},
    ],
)
def test_a_type_that_iceberg_cannot_hold_names_the_column(kind: Any) -> None:
    with pytest.raises(SqbError, match="`broken`") as caught:
        iceberg_schema(schema(field("ok", "integer"), field("broken", kind)), None)
    assert caught.value.code == "X002"
    assert caught.value.help


@pytest.mark.parametrize(("iceberg", "spark"), [("uuid", "STRING"), ("fixed[16]", "BINARY")])
def test_types_only_iceberg_has_are_read_as_spark_does(iceberg: str, spark: str) -> None:
    assert spark_type(iceberg) == spark


def test_a_type_spark_does_not_have_is_an_error() -> None:
    with pytest.raises(SqbError, match="time"):
        spark_type("time")
