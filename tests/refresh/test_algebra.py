"""The algebra of row-level refresh against full evaluation, on random plans and changes."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
from plans import Data, Plans, checked


@pytest.fixture(scope="module")
def db() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def check(db: duckdb.DuckDBPyConnection, seed: int) -> Counter[str]:
    """One random plan under one random change."""
    rng = random.Random(seed)
    plan, data = Plans(rng).plan(rng.randrange(1, 4)), Data(rng)
    try:
        return checked(db, plan, data, rng)
    except AssertionError as error:
        raise AssertionError(f"seed {seed}") from error


def test_replacing_changed_keys_and_applying_the_change_are_a_rebuild(
    db: duckdb.DuckDBPyConnection,
) -> None:
    done: Counter[str] = Counter()
    for seed in range(120):
        done += check(db, seed)
    assert done["keys"] > 250
    assert done["delta"] > 100
