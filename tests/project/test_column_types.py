"""Type names."""

from __future__ import annotations

import pytest

from sqb.project.column_types import column_type, simple_type


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("int", "INT"),
        ("Integer", "INT"),
        ("long", "BIGINT"),
        ("decimal", "DECIMAL(10,0)"),
        ("NUMERIC( 12 , 3 )", "DECIMAL(12,3)"),
        ("decimal(39,0)", None),
        ("decimal(3,4)", None),
        ("varchar(10)", "VARCHAR(10)"),
        ("varchar", None),
        ("int(4)", None),
        ("timestamp_ntz", "TIMESTAMP_NTZ"),
        ("text", None),
        ("array<int>", None),
        ("", None),
        ("int; drop", None),
    ],
)
def test_seed_types_have_one_spelling(written: str, normal: str | None) -> None:
    assert simple_type(written) == normal


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("array<integer>", "ARRAY<INT>"),
        ("map<string, array<long>>", "MAP<STRING, ARRAY<BIGINT>>"),
        ("struct<a: int, b: decimal(4,2)>", "STRUCT<a: INT, b: DECIMAL(4,2)>"),
        ("struct<>", None),
        ("array<>", None),
        ("map<int>", None),
        ("array<" * 40 + "int" + ">" * 40, None),
    ],
)
def test_nested_types_have_one_spelling(written: str, normal: str | None) -> None:
    assert column_type(written) == normal
