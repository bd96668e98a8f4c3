"""The structure of a query: which conditions it asks for."""

from __future__ import annotations

import pytest

from sqb.sql.query import Select
from sqb.sql.structure import structure
from sqb.sql.tokens import split


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("a = 1 AND b = 2", 2),
        ("a = 1 OR b = 2 AND c = 3", 1),
        ("a = 1 AND b = 2 OR c = 3", 1),
        ("(a = 1 OR b = 2) AND c = 3", 2),
        ("a BETWEEN 1 AND 2 AND b = 1", 2),
        ("a BETWEEN 1 AND 2 OR b BETWEEN 1 AND 2 AND c = 1", 1),
        ("CASE WHEN a OR b THEN c ELSE d END AND e = 1", 2),
    ],
)
def test_or_binds_looser_than_and(condition: str, count: int) -> None:
    body = structure(split(f"SELECT 1 AS one FROM t WHERE {condition}")).body
    assert isinstance(body, Select)
    assert len(body.where) == count
