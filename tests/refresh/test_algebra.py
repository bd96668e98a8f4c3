"""The algebra of row-level refresh against full evaluation, on random plans and changes."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import pytest
from plans import Data, Judge, Plans, Row, names, relation

from sqb.refresh.derive import Derivation, NotDerivable, candidates
from sqb.refresh.ir import Node, column, output
from sqb.refresh.restrict import restrict
from sqb.refresh.script import Script, member


@pytest.fixture(scope="module")
def db() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(":memory:", config={"threads": 1})


def check(db: duckdb.DuckDBPyConnection, seed: int) -> Counter[str]:
    """One random plan under one random change; counts of what was checked."""
    rng = random.Random(seed)
    plan, data = Plans(rng).plan(rng.randrange(1, 4)), Data(rng)
    data.load(db)
    script = Script(relation)
    judge = Judge(db, script)
    old = frozenset(data.old) if rng.random() < 0.8 else frozenset()
    derivation = Derivation(script, data.changed, old)
    shown = names(plan)
    before = judge.rows(script.state(plan, "old"), shown)
    after = judge.rows(script.state(plan, "new"), shown)
    done: Counter[str] = Counter()
    for key in keys_to_try(plan, rng):
        try:
            found = derivation.keys(plan, key)
        except NotDerivable as error:
            done[error.code] += 1
            continue
        if found is None:
            assert before == after, seed
            continue
        kept = judge.outside(script.state(plan, "old"), shown, key, found)
        inner = judge.rows(restrict(script, plan, key, found, "new"), shown)
        assert kept + inner == after, (seed, key)
        top = judge.rows(script.state(plan, "new"), shown, member(key, found))
        assert inner == top, (seed, key)
        done["keys"] += 1
    try:
        change = derivation.delta(plan)
    except NotDerivable as error:
        done[error.code] += 1
        return done
    assert applied(before, judge, change, shown) == after, seed
    done["delta"] += 1
    return done


def applied(before: Counter[Row], judge: Judge, change: str | None, shown: str) -> Counter[Row]:
    out = Counter(before)
    if change is not None:
        for row, times in judge.rows(change, f"{shown}, __w").items():
            out[row[:-1]] += int(str(row[-1])) * times
    assert all(weight >= 0 for weight in out.values())
    return +out


def keys_to_try(plan: Node, rng: random.Random) -> list[tuple]:
    singles = [(expr,) for expr in candidates(plan)]
    pair = tuple(column(col) for col in rng.sample(output(plan), min(2, len(output(plan)))))
    return [*singles, pair]


@pytest.mark.parametrize("part", range(4))
def test_replacing_changed_keys_and_applying_the_change_are_a_rebuild(
    db: duckdb.DuckDBPyConnection, part: int
) -> None:
    done: Counter[str] = Counter()
    for seed in range(part * 100, part * 100 + 100):
        done += check(db, seed)
    assert done["keys"] > 100
    assert done["delta"] > 50
