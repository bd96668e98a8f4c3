"""Every strategy's signed change, applied to the table as it stands, is a full rebuild."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
from plans import Data, checked_strategies, plan_of
from queries import UNDERSTOOD

pytestmark = pytest.mark.proof

GROUPED = [
    "SELECT a, SUM(b) AS s, COUNT(*) AS n FROM t0 GROUP BY a",
    "SELECT a, SUM(b) AS s, COUNT(b) AS cb, COUNT(*) AS n FROM t0 WHERE c > 0 GROUP BY a",
    "SELECT COUNT(*) AS n, b AS k, a AS j FROM t0 GROUP BY a, b",
    "SELECT a, MAX(b) AS hi, MIN(c) AS lo, SUM(b) AS s FROM t0 GROUP BY a",
    "SELECT y.b, SUM(c) s, COUNT(c) n, COUNT(*) AS m FROM t0 JOIN t1 y USING (a) GROUP BY y.b",
    "SELECT k, COUNT(*) AS n FROM (SELECT a AS k FROM t0 UNION ALL SELECT b FROM t1) u GROUP BY k",
    "SELECT a, COUNT(*) FILTER (WHERE b > 1) AS n FROM t0 GROUP BY a",
    "SELECT SUM(b) AS s FROM t0",
    "SELECT SUM(b) AS s, SUM(c) AS t, COUNT(b) AS n FROM t0 WHERE a > 0",
    "SELECT COUNT(*) AS n, SUM(t0.b) AS s FROM t0 JOIN t1 ON t0.a = t1.a",
]


@pytest.mark.parametrize("sql", list(dict.fromkeys([*GROUPED, *UNDERSTOOD])))
def test_the_signed_change_is_a_rebuild(sql: str) -> None:
    done: Counter[str] = Counter()
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        for seed in range(6 if sql in GROUPED else 2):
            rng = random.Random(f"signed {seed} {sql}")
            data = Data(rng, only="append" if seed == 0 else None)
            done += checked_strategies(db, plan_of(sql), data, rng, translate=True)
    assert done, "no seed changed anything"
    if sql in GROUPED:
        assert done["group_merge"] > 0
