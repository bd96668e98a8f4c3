"""What becomes of a table that is not rebuilt when its query gives other columns."""

from __future__ import annotations

import pytest

from sqb.refresh.evolution import Misfit, evolve, holds, widens

TABLE = [("id", "INT"), ("v", "DECIMAL(8,2)")]


def test_new_columns_come_last_and_missing_ones_stay() -> None:
    found = evolve("append_new_columns", TABLE, [("n", "STRING"), ("ID", "INT")])
    assert found.columns == (("id", "INT"), ("v", "DECIMAL(8,2)"), ("n", "STRING"))
    assert found.given == ("ID", None, "n")
    assert (found.add, found.drop) == ((("n", "STRING"),), ())


def test_all_columns_in_step() -> None:
    found = evolve("sync_all_columns", TABLE, [("n", "STRING"), ("id", "BIGINT")])
    assert (found.add, found.drop, found.widen) == (
        (("n", "STRING"),),
        ("v",),
        (("id", "BIGINT"),),
    )
    assert found.columns == (("id", "BIGINT"), ("n", "STRING"))


def test_ignored_columns() -> None:
    found = evolve("ignore", TABLE, [*TABLE, ("n", "STRING")])
    assert not found.alters
    with pytest.raises(Misfit, match="`v`"):
        evolve("ignore", TABLE, [("id", "INT")])


@pytest.mark.parametrize("query", [[("id", "INT")], [*TABLE, ("n", "STRING")]])
def test_columns_that_must_not_change(query: list[tuple[str, str]]) -> None:
    with pytest.raises(Misfit):
        evolve("fail", TABLE, query)
    assert not evolve("fail", TABLE, TABLE[::-1]).alters


def test_types() -> None:
    assert not evolve("fail", TABLE, [("id", "SMALLINT"), ("v", "DECIMAL(6,2)")]).alters
    with pytest.raises(Misfit, match="STRING"):
        evolve("sync_all_columns", TABLE, [("id", "STRING"), ("v", "DECIMAL(8,2)")])
    with pytest.raises(Misfit, match="BIGINT"):
        evolve("ignore", TABLE, [("id", "BIGINT"), ("v", "DECIMAL(8,2)")])
    assert holds("double", "float")
    assert not holds("float", "double")
    assert not holds("decimal(8,2)", "decimal(8,3)")
    assert widens("decimal(8,2)", "decimal(9,2)")
    assert not widens("bigint", "int")
