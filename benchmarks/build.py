"""What sqb adds to Spark's own time: 50 tiny tables built by sqb, and by a plain PySpark script.

Both send the same queries in one session with the same settings and four at a time; sqb also
plans, hashes the rows, publishes by swap and records state. The order of the two alternates from
round to round, the first round is a warm-up, and the answer is the median of the rounds' ratios.
Beside the wall time stands the CPU time of Python and the JVM, which other work on the machine
disturbs less.

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
from typing import TYPE_CHECKING, NamedTuple

from sqb.api import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REACH = 1.3
CONCURRENCY = 4
_SOURCE = "raw.events"


class Cost(NamedTuple):
    """What one build took: seconds of wall time, and of CPU in this process and in the JVM."""

    wall: float
    cpu: float


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

    def _cpu(self) -> float:
        """CPU seconds so far; nought where the JVM's can't be read."""
        gateway = self.session.sparkContext._gateway
        stat = Path(f"/proc/{gateway.proc.pid}/stat") if gateway is not None else Path("/proc/none")
        if not stat.exists():
            return 0.0
        fields = stat.read_text().rpartition(")")[2].split()
        return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _costs(self, work: Callable[[], None]) -> Cost:
        started, cpu = time.perf_counter(), self._cpu()
        work()
        return Cost(time.perf_counter() - started, self._cpu() - cpu)

    def by_sqb(self, schema: str) -> Cost:
        """A first build through ``Project.build``."""
        self._configure(schema)
        return self._costs(self._build)

    def _build(self) -> None:
        result = Project(self.folder, spark=self.session).build()
        wrong = [node for node in result.nodes if node.status != "success"]
        if wrong:
            raise SystemExit(f"{wrong[0].name}: {wrong[0].status}: {wrong[0].error}")

    def by_hand(self, schema: str) -> Cost:
        """The same queries as CREATE TABLE AS SELECT from four threads."""

        def create(number: int) -> None:
            self.session.sql(
                f"CREATE TABLE lake.{schema}.t{number:03d} USING iceberg AS "
                + query(number, f"lake.{_SOURCE}")
            )

        def create_all() -> None:
            self.session.sql(f"CREATE NAMESPACE lake.{schema}")
            with ThreadPoolExecutor(CONCURRENCY) as pool:
                list(pool.map(create, range(self.tables)))

        return self._costs(create_all)

    def round(self, number: int) -> tuple[Cost, Cost]:
        """What sqb and the plain script took, in an order that alternates."""
        ways: list[tuple[str, Callable[[str], Cost]]] = [
            ("sqb", self.by_sqb),
            ("hand", self.by_hand),
        ]
        if number % 2:
            ways.reverse()
        costs = {name: way(f"{name}{number}") for name, way in ways}
        return costs["sqb"], costs["hand"]

    def check(self, number: int) -> None:
        """Both must have made the same rows."""
        for i in range(0, self.tables, max(1, self.tables // 5)):
            one = self.session.table(f"lake.sqb{number}.t{i:03d}")
            other = self.session.table(f"lake.hand{number}.t{i:03d}")
            if one.exceptAll(other).count() or other.exceptAll(one).count():
                raise SystemExit(f"t{i:03d} differs between sqb and the plain script")


def _told(ours: Cost, plain: Cost) -> str:
    text = f"sqb {ours.wall:.2f} s, plain {plain.wall:.2f} s, {ours.wall / plain.wall:.2f}x"
    if plain.cpu:
        text += f"; CPU {ours.cpu:.1f} s and {plain.cpu:.1f} s, {ours.cpu / plain.cpu:.2f}x"
    return text


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
                print(f"round {number}: {_told(ours, plain)}", flush=True)
        finally:
            race.owner.close()
    ratio = statistics.median(ours.wall / plain.wall for ours, plain in rounds)
    cpu = statistics.median(ours.cpu / plain.cpu for ours, plain in rounds if plain.cpu)
    print(
        f"{options.tables} tables, {CONCURRENCY} at a time, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}: median ratio {ratio:.2f} of wall time "
        f"(reach: at most {REACH}), {cpu:.2f} of CPU time"
    )
    if options.json:
        document = {
            "schema_version": 1,
            "tables": options.tables,
            "rounds": [{"sqb": a._asdict(), "plain": b._asdict()} for a, b in rounds],
            "median_ratio": ratio,
            "median_cpu_ratio": cpu,
            "reach": REACH,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    if options.check and ratio > REACH:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
