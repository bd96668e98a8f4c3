"""The engine loop: random lives on real tables, every refresh compared with its query.

``python tests/execution/loop.py --seconds 600`` runs until the time is over, prints what it
counted, and exits 1 at the first table that is not what its query gives, naming the seed:
``--seed S --lives 1`` then shows it again. The strategy is drawn among all that apply, so that
also those which would not be chosen prove themselves, rare ones more often.
"""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import msgspec

sys.path.insert(0, str(Path(__file__).parent))
from lives import Life
from proof import at_home, bag, differences, on_spark, way_of

from sqb.execution import rows, sizes
from sqb.refresh.strategies import choose

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.refresh.script import Script
    from sqb.refresh.strategies import Choice, Situation


class MismatchError(AssertionError):
    """A refresh that is not the rebuild."""


def live(
    bench: Workbench, seed: int, *, models: int, steps: int, end: float = math.inf
) -> Counter[str]:
    """One life: build, then change and refresh until the ``end``; counts of what was done."""
    life, counts = Life(seed, models), Counter[str]()
    draw, step = random.Random(seed), 0
    # in every other life no table is small, so that rows are looked for in all of them
    small = sizes._SMALL if seed % 2 else 0

    def in_any_order(situation: Situation, script: Script) -> Choice:
        choice = choose(situation, script)
        # models are built side by side: what is drawn must not depend on who comes first
        own = random.Random(f"{seed} {step} {situation.plan}")
        options = own.sample(choice.options, len(choice.options))
        if own.random() < 0.5:
            options.sort(key=lambda option: counts[option.name])  # the rarest so far first
        return msgspec.structs.replace(choice, options=tuple(options))

    for statement in life.beginning():
        bench.sql(on_spark(statement))
    for name, sql in life.queries.items():
        header = "MODEL (materialized view);\n" if name in life.views else ""
        header = "MODEL (row_state auto);\n" if name in life.with_state else header
        bench.model(name, header + at_home(sql).replace("lake.dev.", ""))
    with (
        mock.patch.object(rows, "choose", in_any_order),
        mock.patch.object(sizes, "_SMALL", small),
    ):
        _build(bench, life, counts, first=True)
        while step < steps and time.monotonic() < end:
            step += 1
            done = [_happen(bench, statement, draw) for statement in life.step()]
            try:
                _build(bench, life, counts)
            except MismatchError as found:
                story = "\n  ".join([*done, f"on {life.today}"])
                raise MismatchError(f"seed {seed}, step {step}: {found}\n  {story}") from None
    return counts


def _build(bench: Workbench, life: Life, counts: Counter[str], *, first: bool = False) -> None:
    bench.environ["SQB_NOW"] = f"{life.today}T10:00:00Z"
    result = bench.project().build((), refresh="rows")
    for node in result.nodes:
        if node.name.removesuffix("__s1") not in life.queries:
            continue  # it waited for one that failed
        if any(warning.code == "S313" for warning in node.warnings):
            raise MismatchError(f"{life.queries[node.name]}\n  {node.warnings}")
        if node.status == "failed":
            name = node.name.removesuffix("__s1")
            sql = _spelled(bench, life, name)
            if _works(bench, sql):
                raise MismatchError(f"{sql}\n  fails: {node.error}")
            # the query itself is at fault, such as an overflow
            for one in life.forget(name):
                (bench.root / "models" / f"{one}.sql").unlink()
                counts["queries that fail themselves"] += 1
            continue
        way = way_of(node)
        if first:
            counts["queries"] += 1
        elif way != "current":
            counts["refreshes"] += 1
            counts[way] += 1
    tables = [name for name in life.queries if name not in life.views]
    wrong = differences(bench, {name: _spelled(bench, life, name) for name in tables})
    for name, what in wrong.items():
        node = next(n for n in result.nodes if n.name == name)
        raise MismatchError(f"{life.queries[name]}\n  {way_of(node)} {node.strategy}\n  {what}")


def _spelled(bench: Workbench, life: Life, name: str) -> str:
    """A model's query as Spark is given it, but for the names of sources."""
    return life.spelled(name).replace("lake.dev.", f"lake.{bench.schema}.")


def _works(bench: Workbench, sql: str) -> bool:
    try:
        bag(bench.spark.sql(on_spark(sql).replace("{raw}", bench.raw)))
    except Exception:  # noqa: BLE001 - whatever Spark has against it
        return False
    return True


def _happen(bench: Workbench, statement: str, draw: random.Random) -> str:
    if statement.startswith("ROLLBACK"):
        table = statement.split()[1]
        history = (
            f"SELECT snapshot_id FROM lake.{bench.raw}.{table}.history WHERE is_current_ancestor"
            " ORDER BY made_current_at"
        )
        ids = list(dict.fromkeys(str(row[0]) for row in bench.sql(history)))
        if not ids:
            return f"nothing to roll back in {table}"
        chosen = draw.choice(ids)
        statement = f"CALL lake.system.set_current_snapshot('{bench.raw}.{table}', {chosen})"
    bench.sql(on_spark(statement))
    return statement


def main() -> int:
    """Run lives for as long as asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--lives", type=int, default=None)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--steps", type=int, default=6)
    options = parser.parse_args()
    os.environ.setdefault("SQB_NO_CLASS_ARCHIVE", "1")
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 30)
    end, counts, mismatches = time.monotonic() + options.seconds, Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        bench_of = _benches(Path(folder))
        done = 0
        while time.monotonic() < end and (options.lives is None or done < options.lives):
            try:
                bench, size = bench_of(), {"models": options.models, "steps": options.steps}
                counts += live(bench, seed + done, end=end, **size)
            except MismatchError as found:
                print(f"MISMATCH {found}", flush=True)
                mismatches += 1
                break
            done += 1
            counts["lives"] += 1
            print(f"{done} lives, {counts['refreshes']} refreshes", file=sys.stderr, flush=True)
        from sqb.spark.session import stop_session

        stop_session(bench_of().spark)
    print(f"engine loop, seeds {seed} to {seed + done}:")
    for name, count in sorted(counts.items()):
        print(f"  {count:6} {name}")
    print(f"  {mismatches:6} mismatches")
    return 1 if mismatches else 0


def _benches(folder: Path):  # type: ignore[no-untyped-def]
    """Projects on a Spark of this process."""
    import conftest
    from sqb.spark.session import SparkSettings, start_session

    # the tables are tiny: what pays on large ones costs most of the time here
    conf = {
        "spark.driver.memory": "4g",
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Xmn2g",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    }
    lake = folder / "lake"
    lake.mkdir()
    settings = SparkSettings(
        catalog_name="lake",
        catalog_uri=f"sqlite:///{lake / 'catalog.db'}",
        warehouse=str(lake),
        conf=conf,
        master="local[2]",
    )
    log = folder / "spark.log"
    spark = start_session(settings, log_file=log, app_name="engine loop", environ=os.environ)
    return lambda: conftest.Workbench(Path(tempfile.mkdtemp(dir=folder)), spark, settings)


if __name__ == "__main__":
    sys.exit(main())
