"""Constants that moved, such as today's date: their rows are part of the change, or it is told."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
from plans import Data, checked, checked_strategies, plan_of

from sqb.refresh.block import Plan
from sqb.refresh.constants import paired
from sqb.sql.fragments import Unsupported


def moved(sql: str) -> Plan:
    """The plan of a query in which ``@`` was 1 and is 3."""
    then, now = (plan_of(sql.replace("@", value)) for value in ("1", "3"))
    return Plan(paired(then.root, now.root), now.names)


FOLLOWED = [
    "SELECT a, b FROM t0 WHERE b >= @",
    "SELECT a, COUNT(*) AS n, SUM(c) AS s FROM t0 WHERE b >= @ GROUP BY a",
    "SELECT a, b + @ AS later FROM t0",
    "SELECT k, COUNT(*) n FROM (SELECT CASE WHEN b < @ THEN 0 ELSE a END AS k FROM t0) GROUP BY k",
    "SELECT x.a, y.b FROM t0 x JOIN t1 y ON x.a = y.a AND x.b + y.b > @",
    "SELECT x.a FROM t0 x JOIN t1 y ON x.a < y.a + @ AND x.b <> y.b",
    "SELECT a, b FROM t0 WHERE a IN (SELECT a FROM t1 WHERE b < @)",
    "SELECT x.a, d.k FROM t0 x LEFT JOIN (SELECT a, b - @ AS k FROM t1) d ON x.a = d.k",
]


@pytest.mark.parametrize("sql", FOLLOWED)
def test_rows_that_a_moved_constant_treats_otherwise_are_part_of_the_change(sql: str) -> None:
    done: Counter[str] = Counter()
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        for seed in range(3):
            rng = random.Random(f"{seed} {sql}")
            data = Data(rng, "none" if seed == 0 else None)
            done += checked(db, moved(sql).root, data, rng)
            done += checked_strategies(db, moved(sql), data, rng, translate=True)
    assert done["affected_key"] > 0
    assert done["append"] == 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a, SUM(b + @) AS s FROM t0 GROUP BY a",
        "SELECT a + @ AS k, COUNT(*) AS n FROM t0 GROUP BY a + @",
        "SELECT x.a, y.b FROM t0 x LEFT JOIN t1 y ON x.a = y.a AND y.b > @",
        "SELECT x.a, y.b FROM t0 x JOIN t1 y ON x.a = y.a + @",
        "SELECT a, SUM(b) OVER (PARTITION BY a + @) AS s FROM t0",
    ],
)
def test_any_other_use_of_a_moved_constant_is_told(sql: str) -> None:
    with pytest.raises(Unsupported) as found:
        moved(sql)
    assert found.value.code == "CONSTANT_MOVED"
