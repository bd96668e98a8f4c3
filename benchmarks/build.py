"""What sqb adds to Spark's own time: 50 tiny tables built by sqb, and by a plain PySpark script.

Both send the same queries in one session with the same settings and four at a time; sqb also
plans, hashes the rows, publishes by swap and records state. The order of the two alternates from
round to round, the first round is a warm-up, and the answer is the median of the rounds' ratios.

    python benchmarks/build.py [--tables 50] [--rounds 5] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from sqb.api import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REACH = 1.3
CONCURRENCY = 4
_SOURCE = "raw.events"


def query(number: int, source: str) -> str:
    """The query of one table: a filter and an aggregate over two hundred rows."""
    return f"""\
WITH chosen AS (
  SELECT account, kind, amount
  FROM {source} AS e
  WHERE account % {number % 7 + 2} = 0
)
SELECT
  kind,
  account % 10 AS bucket,
  count(*) AS events,
  sum(amount) + {number} AS total
FROM chosen
GROUP BY kind, account % 10
"""


class Race:
    """One lake, one session, and a new schema for each build."""

    def __init__(self, folder: Path, tables: int) -> None:
        self.folder, self.tables = folder, tables
        for number in range(tables):
            file = folder / "models" / f"t{number:03d}.sql"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(query(number, _SOURCE), encoding="utf-8")
        self._configure("warm")
        self.owner = Project(folder)
        self.owner.catalog.ensure_namespace("raw")
        self.session: SparkSession = self.owner.session(folder / "spark.log")
        self.session.sql(
            f"CREATE TABLE lake.{_SOURCE} USING iceberg AS SELECT id AS account, "
            "concat('k', id % 3) AS kind, id * 2 AS amount FROM range(200)"
        )

    def _configure(self, schema: str) -> None:
        (self.folder / "sqlbuild_project.toml").write_text(
            f'name = "race"\n[targets.dev]\nschema = "{schema}"\n'
            f'[defaults]\nmaterialized = "table"\n'
            f"[settings]\nconcurrency = {CONCURRENCY}\n"
            '[spark]\nmaster = "local[*]"\n[spark.conf]\n"spark.sql.shuffle.partitions" = "2"\n',
            encoding="utf-8",
        )

    def by_sqb(self, schema: str) -> float:
        """Seconds of a first build through ``Project.build``."""
        self._configure(schema)
        started = time.perf_counter()
        result = Project(self.folder, spark=self.session).build()
        seconds = time.perf_counter() - started
        wrong = [node for node in result.nodes if node.status != "success"]
        if wrong:
            raise SystemExit(f"{wrong[0].name}: {wrong[0].status}: {wrong[0].error}")
        return seconds

    def by_hand(self, schema: str) -> float:
        """Seconds of the same queries as CREATE TABLE AS SELECT from four threads."""

        def create(number: int) -> None:
            self.session.sql(
                f"CREATE TABLE lake.{schema}.t{number:03d} USING iceberg AS "
                + query(number, f"lake.{_SOURCE}")
            )

        started = time.perf_counter()
        self.session.sql(f"CREATE NAMESPACE lake.{schema}")
        with ThreadPoolExecutor(CONCURRENCY) as pool:
            list(pool.map(create, range(self.tables)))
        return time.perf_counter() - started

    def round(self, number: int) -> tuple[float, float]:
        """Seconds of sqb and of the plain script, in an order that alternates."""
        ways: list[tuple[str, Callable[[str], float]]] = [
            ("sqb", self.by_sqb),
            ("hand", self.by_hand),
        ]
        if number % 2:
            ways.reverse()
        seconds = {name: way(f"{name}{number}") for name, way in ways}
        return seconds["sqb"], seconds["hand"]

    def check(self, number: int) -> None:
        """Both must have made the same rows."""
        for i in range(0, self.tables, max(1, self.tables // 5)):
            one = self.session.table(f"lake.sqb{number}.t{i:03d}")
            other = self.session.table(f"lake.hand{number}.t{i:03d}")
            if one.exceptAll(other).count() or other.exceptAll(one).count():
                raise SystemExit(f"t{i:03d} differs between sqb and the plain script")


def main() -> None:
    """Run the rounds and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--tables", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--check", action="store_true", help="exit 1 if the reach is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sqb-bench-") as temporary:
        race = Race(Path(temporary), options.tables)
        try:
            race.round(0)
            race.check(0)
            rounds = []
            for number in range(1, options.rounds + 1):
                rounds.append(race.round(number))
                ours, plain = rounds[-1]
                print(
                    f"round {number}: sqb {ours:.2f} s, plain {plain:.2f} s, {ours / plain:.2f}x",
                    flush=True,
                )
        finally:
            race.owner.close()
    ratio = statistics.median(ours / plain for ours, plain in rounds)
    print(
        f"{options.tables} tables, {CONCURRENCY} at a time, {os.cpu_count()} cores: "
        f"median ratio {ratio:.2f} (reach: at most {REACH})"
    )
    if options.json:
        document = {
            "schema_version": 1,
            "tables": options.tables,
            "rounds": [{"sqb_s": a, "plain_s": b} for a, b in rounds],
            "median_ratio": ratio,
            "reach": REACH,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    if options.check and ratio > REACH:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
