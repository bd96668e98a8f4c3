"""The algebra's test for as long as one likes: ``python tests/refresh/loop.py --seconds N``."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

import duckdb

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from rounds import average_round, plan_round, query_round

STRATEGIES = ("append", "group_merge", "affected_key", "bag_merge", "top_merge", "keys", "delta")


def main() -> int:
    """Run rounds until the time is up; 1 if any gave other rows than a full evaluation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    done: Counter[str] = Counter()
    rounds, mismatches, seed = 0, 0, asked.seed
    until, told = time.monotonic() + asked.seconds, time.monotonic()
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        # the tables have a few rows: thinking about a query takes longer than running it
        db.execute("PRAGMA disable_optimizer")
        while time.monotonic() < until:
            others = (query_round, average_round) if seed % 3 == 0 else ()
            for one in (plan_round, *others):
                rounds += 1
                try:
                    done += one(db, seed)
                except (AssertionError, duckdb.Error) as error:
                    mismatches += 1
                    print(f"{one.__name__} {seed}: {error!r} {error.__cause__!r}", flush=True)
            seed += 1
            if time.monotonic() > told + 60:
                told = time.monotonic()
                print(_summary(rounds, done, mismatches), file=sys.stderr, flush=True)
    print(_summary(rounds, done, mismatches))
    for name, count in sorted(done.items(), key=lambda item: -item[1]):
        print(f"{count:8} {name}")
    return 1 if mismatches else 0


def _summary(rounds: int, done: Counter[str], mismatches: int) -> str:
    refreshes = sum(done[name] for name in STRATEGIES)
    return f"{rounds} queries, {refreshes} refreshes, {mismatches} mismatches"


if __name__ == "__main__":
    sys.exit(main())
