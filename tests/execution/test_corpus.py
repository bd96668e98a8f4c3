"""The comparison of plans with texts tells what it is there to tell."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import corpus

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = "(VALUES (1, 2), (1, 3), (NULL, 4)) AS t(a, b)"


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        (f"SELECT a, SUM(b) AS s FROM {ROWS} GROUP BY a HAVING COUNT(*) > 1", "equal"),
        (f"SELECT a FROM {ROWS} LIMIT 1", "not understood"),
        ("SELECT 1; SELECT 2", "refused"),
        ("SELECT a FROM no_such_table", "without its tables"),
        ("SELECT current_date() AS d", "of the moment"),
        ("SELECT CAST('x' AS INT) AS i", "failing"),
    ],
)
def test_what_came_of_a_query(spark: SparkSession, sql: str, word: str) -> None:
    assert corpus.compare(spark, sql) == word


def test_other_rows_and_other_types_are_different(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = f"SELECT a, b FROM {ROWS}"
    for planned in (f"SELECT b, a FROM {ROWS}", f"SELECT a, CAST(b AS BIGINT) AS b FROM {ROWS}"):
        monkeypatch.setattr(corpus, "planned", lambda spark, _, text=planned: spark.sql(text))
        assert corpus.compare(spark, sql) == "different"


def test_statements_end_where_a_line_does() -> None:
    text = "-- one; two;\nSELECT ';'\n  AS a;\n\nSELECT 2"
    assert list(corpus.statements(text)) == ["SELECT ';'\n  AS a", "SELECT 2"]
