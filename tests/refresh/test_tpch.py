"""The 22 queries of TPC-H: all are understood, and what may refresh each does not shrink."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import msgspec
import pytest
import tpch
from plans import checked_strategies, relation

from sqb.refresh.changes import TableChange
from sqb.refresh.ir import Col
from sqb.refresh.prune import pruned
from sqb.refresh.script import Script
from sqb.refresh.strategies import Situation, choose

MERGED = ["group_merge", "affected_key", "bag_merge"]
BY_KEY = ["affected_key", "bag_merge"]
ONE_ROW = ["group_merge"]
#: Neither orders nor lineitem are read.
NOTHING: list[str] = []
#: A single row computed from aggregates that the table does not hold.
FULL: list[str] = []

#: What applies where rows of orders and lineitem were added; and where rows went.
EXPECTED = {
    "q01": (BY_KEY, BY_KEY),
    "q02": (NOTHING, NOTHING),
    "q03": (MERGED, BY_KEY),
    "q04": (BY_KEY, BY_KEY),
    "q05": (MERGED, BY_KEY),
    "q06": (ONE_ROW, ONE_ROW),
    "q07": (MERGED, BY_KEY),
    "q08": (BY_KEY, BY_KEY),
    "q09": (MERGED, BY_KEY),
    "q10": (MERGED, BY_KEY),
    "q11": (NOTHING, NOTHING),
    "q12": (MERGED, BY_KEY),
    "q13": (BY_KEY, BY_KEY),
    "q14": (FULL, FULL),
    "q15": (BY_KEY, BY_KEY),
    "q16": (NOTHING, NOTHING),
    "q17": (FULL, FULL),
    "q18": (BY_KEY, BY_KEY),
    "q19": (ONE_ROW, ONE_ROW),
    "q20": (BY_KEY, BY_KEY),
    "q21": (BY_KEY, BY_KEY),
    "q22": (BY_KEY, BY_KEY),
}


def test_there_are_22_queries() -> None:
    assert list(tpch.QUERIES) == list(EXPECTED)


def options(name: str, way: TableChange, *tables: str) -> list[str]:
    plan = tpch.plan_of(tpch.QUERIES[name])
    plan = msgspec.structs.replace(plan, root=pruned(plan.root))
    types = {Col(f"c{number}"): "decimal(38,4)" for number in range(2000)}
    changes = dict.fromkeys(tables, way)
    situation = Situation(plan, changes, types, frozenset(changes))
    return [option.name for option in choose(situation, Script(relation, str)).options]


@pytest.mark.parametrize("name", EXPECTED)
def test_what_applies_when_orders_come_and_go(name: str) -> None:
    added, gone = TableChange("append", 1, 2), TableChange("changelog", 1, 2)
    assert options(name, added, "orders", "lineitem") == EXPECTED[name][0]
    assert options(name, gone, "orders", "lineitem") == EXPECTED[name][1]


@pytest.mark.parametrize(
    ("name", "table"), [("q02", "partsupp"), ("q11", "partsupp"), ("q16", "supplier")]
)
def test_what_applies_when_parts_and_suppliers_change(name: str, table: str) -> None:
    assert options(name, TableChange("changelog", 1, 2), table) == BY_KEY


@pytest.mark.proof
@pytest.mark.parametrize("name", EXPECTED)
def test_a_refresh_is_a_rebuild(name: str) -> None:
    done: Counter[str] = Counter()
    plan = tpch.plan_of(tpch.QUERIES[name])
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        for seed in range(2):
            rng = random.Random(f"{name} {seed}")
            data = tpch.data(rng, "append" if seed == 0 else "mixed")
            done += checked_strategies(db, plan, data, rng, translate=True)
    assert sum(done.values()) > 0
