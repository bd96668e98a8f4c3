"""The algebra of row-level refresh against full evaluation, on random plans and changes."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
from rounds import average_round, plan_round, query_round

pytestmark = pytest.mark.proof


@pytest.fixture(scope="module")
def db() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def test_replacing_changed_keys_and_applying_the_change_are_a_rebuild(
    db: duckdb.DuckDBPyConnection,
) -> None:
    done: Counter[str] = Counter()
    for seed in range(120):
        done += plan_round(db, seed)
    assert done["keys"] > 250
    assert done["delta"] > 100


def test_random_queries_give_their_rows_and_every_strategy_leads_to_them(
    db: duckdb.DuckDBPyConnection,
) -> None:
    done: Counter[str] = Counter()
    for seed in range(50):
        done += query_round(db, seed)
    assert done["affected_key"] > 15
    assert done["bag_merge"] > 15
    assert done["top_merge"] > 3


def test_averages_follow_from_sums_and_counts(db: duckdb.DuckDBPyConnection) -> None:
    done: Counter[str] = Counter()
    for seed in range(40):
        done += average_round(db, seed)
    assert done["group_merge"] > 15
