"""Two bags of rows against each other: by their content hash, and row by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqb.execution import content_hash
from sqb.execution.content_hash import quote
from sqb.lake.metadata import Column
from sqb.lake.types import spark_type
from sqb.refresh.strategies import groupable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Content = tuple[int, int, int]


def as_stored(frame: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The rows of a query with the names and types that its table has."""
    named = frame.toDF(*(column.name for column in columns))
    items = (f"CAST({quote(c.name)} AS {spark_type(c.type)}) AS {quote(c.name)}" for c in columns)
    return named.selectExpr(*items)


def content_of(frame: DataFrame) -> Content | None:
    """How many rows there are and the two sums of their hashes; None: they can't be hashed."""
    hashes = content_hash.row_hashes(frame.schema.jsonValue())
    if hashes is None:
        return None
    aggregates = content_hash.sums(hashes).items()
    row = frame.selectExpr(*(f"{sql} AS {key}" for key, sql in aggregates)).first()
    return content_hash.combine(row.asDict()) if row is not None else None


def comparable(frame: DataFrame) -> bool:
    """Can its rows be compared with others?"""
    return all(groupable(field.dataType.simpleString()) for field in frame.schema.fields)


def difference(wanted: DataFrame, found: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The rows that are missing and those that are too many, copy by copy."""
    return wanted.exceptAll(found), found.exceptAll(wanted)
