"""SQL that reads a version of a table with the columns that the table has now."""

from __future__ import annotations

import pytest

from sqb.errors import SqbError
from sqb.execution.statement import projected
from sqb.lake.metadata import Column

STORED = (Column(1, "a", "int", False), Column(2, "b", "string", True))


@pytest.mark.parametrize(
    ("column", "item"),
    [
        (Column(1, "a", "int", False), "`a`"),
        (Column(1, "x", "int", True), "`a`"),
        (Column(1, "a", "long", False), "CAST(`a` AS BIGINT)"),
        # another column of the same name
        (Column(3, "a", "int", False), "CAST(NULL AS INT)"),
        (Column(3, "c", "int", False, "5"), "CAST('5' AS INT)"),
        (Column(3, "c", "boolean", False, "true"), "CAST('true' AS BOOLEAN)"),
        (Column(3, "c", "double", False, "-0.25"), "CAST('-0.25' AS DOUBLE)"),
        (Column(3, "c", "string", True, '"it\'s"'), r"CAST('it\'s' AS STRING)"),
        (Column(3, "c", "decimal(9, 2)", True, '"1.50"'), "CAST('1.50' AS DECIMAL(9, 2))"),
        (Column(3, "c", "date", False, '"2026-01-31"'), "CAST('2026-01-31' AS DATE)"),
        (Column(3, "c", "binary", False, '"00ff"'), "unhex('00ff')"),
    ],
)
def test_a_column_is_what_rows_of_an_older_version_have_in_it(column: Column, item: str) -> None:
    sql = projected("t VERSION AS OF 1", (column,), STORED)
    assert sql == f"SELECT {item} AS `{column.name}` FROM t VERSION AS OF 1"


def test_a_default_that_is_no_plain_value_is_refused() -> None:
    kind = '{"type":"list","element-id":4,"element":"int","element-required":false}'
    with pytest.raises(SqbError) as raised:
        projected("t", (Column(3, "c", kind, False, "[1]"),), STORED)
    assert raised.value.code == "X002"
