"""From the command to Spark's first answer: plain PySpark, sqb cold, with its archive, and warm.

Every run is a fresh process from the shell's point of view; CPU counts Python and the JVM, also
where they were there before. All cases take turns, so that a disturbance hits all alike.

    python benchmarks/start.py [--repeat 5] [--json FILE] [--markdown] [--check]
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import measure
from measure import Sample, Series
from show import table

from sqb.api import Project
from sqb.spark.archive import Request, archive_path, make
from sqb.spark.jars import cache_dir, resolve_jars
from sqb.spark.java import find_java, java_home_for_spark
from sqb.spark.settings import settings_of, spark_conf

QUERY = "SELECT count(*) AS n FROM a"
#: case -> (what it is compared with, the largest ratio of CPU time).
REACH = {"sqb query, cold, archive": ("plain PySpark", 0.5)}
#: Seconds of wall time from the shell.
REACH_WALL = {"sqb build, warm": 1.5}

PLAIN = """
import json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder
for name, value in json.loads(sys.argv[1]).items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
print(spark.sql("SELECT count(*) AS n FROM dev.a").collect())
gateway = spark.sparkContext._gateway
spark.stop()
gateway.shutdown()
gateway.proc.stdin.close()
gateway.proc.wait()
"""


class Bench:
    """A project with one small table, the ways to ask it, and what they took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "models").mkdir()
        (folder / "sqlbuild_project.toml").write_text('[defaults]\nmaterialized = "table"\n')
        self._number = 0
        self.edit()
        # jars are shared, archives are this run's own
        self.cache = folder / "cache"
        self.cache.mkdir()
        (self.cache / "jars").symlink_to(cache_dir(os.environ) / "jars")
        self.project = Project(folder)
        self.settings = settings_of(self.project.config)
        self.jars = resolve_jars((), (), environ=os.environ, progress=sys.stderr)
        os.environ["JAVA_HOME"] = java_home_for_spark(find_java(os.environ), cache_dir(os.environ))
        self.series: dict[str, Series] = {}

    def edit(self) -> None:
        """Change the model, so that a build has one small table to make."""
        self._number += 1
        text = f"SELECT id, id % 3 AS k, {self._number} AS turn FROM range(100)\n"
        (self.folder / "models" / "a.sql").write_text(text)

    def sqb(self, *arguments: str, archive: bool = False, warm: bool = False) -> Sample:
        """One command."""
        switches = {
            "SQB_CACHE_DIR": str(self.cache),
            "SQB_NO_CLASS_ARCHIVE": "" if archive else "1",
            "SQB_NO_WARM": "" if warm else "1",
        }
        command = ["env", *(f"{k}={v}" for k, v in switches.items())]
        return measure.run([*command, sys.executable, "-m", "sqb", *arguments], self.folder)

    def plain(self) -> Sample:
        """A PySpark script with the same jars and settings."""
        conf = spark_conf(self.settings, self.jars)
        command = [sys.executable, "-c", PLAIN, json.dumps(conf)]
        return measure.run(command, self.folder, says="Row(n=100)")

    def warm(self, *arguments: str) -> Sample:
        """One command in the warm Spark, with the CPU that the processes behind it took."""
        before = self._behind()
        sample = self.sqb(*arguments, warm=True)
        return Sample(sample.wall, sample.cpu + self._behind() - before, sample.peak_bytes)

    def _behind(self) -> float:
        state = json.loads((self.folder / ".sqb" / "spark" / "warm.json").read_text())
        (server,) = _children(state["pid"])
        (jvm,) = _children(server)
        return _cpu(state["pid"], of_children=True) + _cpu(jvm)

    def record(self, case: str, run: Callable[[], Sample]) -> None:
        """Run a case once more."""
        series = self.series.setdefault(case, Series("", case, 1))
        series.samples.append(run())
        last = series.samples[-1]
        print(f"{case}: {last.wall:.2f} s, CPU {last.cpu:.2f} s", flush=True)

    def make_archive(self) -> None:
        """What a build leaves to a process in the background, done now."""
        environ = {**os.environ, "SQB_CACHE_DIR": str(self.cache)}
        jars = resolve_jars((), (), environ=environ, progress=None)
        target = archive_path(self.settings, find_java(environ), jars, environ)
        if not make(Request(tuple(map(str, jars)), "", str(target)), environ):
            raise SystemExit("this Java makes no class archive")


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def _cpu(pid: int, *, of_children: bool = False) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    first = 13 if of_children else 11
    return (int(fields[first]) + int(fields[first + 1])) / os.sysconf("SC_CLK_TCK")


def run(bench: Bench, repeat: int) -> None:
    """All cases, in turns."""
    bench.sqb("build")
    bench.make_archive()
    bench.sqb("spark", "start", archive=True, warm=True)
    try:
        for _ in range(repeat):
            bench.record("plain PySpark", bench.plain)
            bench.record("sqb query, cold", lambda: bench.sqb("query", QUERY))
            bench.record(
                "sqb query, cold, archive", lambda: bench.sqb("query", QUERY, archive=True)
            )
            bench.record("sqb query, warm", lambda: bench.warm("query", QUERY))
            bench.edit()
            bench.record("sqb build, cold, archive", lambda: bench.sqb("build", archive=True))
            for _ in range(2):
                bench.edit()
                bench.record("sqb build, warm", lambda: bench.warm("build"))
            bench.record("sqb build, nothing to do, cold", lambda: bench.sqb("build"))
            bench.record("sqb build, nothing to do, warm", lambda: bench.warm("build"))
    finally:
        bench.sqb("spark", "stop")


def missed(series: dict[str, Series]) -> list[str]:
    """Every reach that was not met."""
    out = []
    for case, (other, most) in REACH.items():
        ratio = series[case].cpu_min / series[other].cpu_min
        if ratio > most:
            out.append(f"{case}: {ratio:.2f} of the CPU of {other}, reach {most}")
    for case, seconds in REACH_WALL.items():
        if series[case].wall_min > seconds:
            out.append(f"{case}: {series[case].wall_min:.2f} s, reach {seconds} s")
    return out


def report(series: dict[str, Series], *, markdown: bool) -> str:
    """The cases side by side, with ratios to the first."""
    plain = series["plain PySpark"]
    head = ["case", "wall min s", "median", "CPU min s", "median", "CPU of plain", "wall of plain"]
    rows: list[Sequence[str]] = [
        [
            case,
            f"{s.wall_min:.2f}",
            f"{s.wall_median:.2f}",
            f"{s.cpu_min:.2f}",
            f"{s.cpu_median:.2f}",
            f"{s.cpu_min / plain.cpu_min:.2f}x",
            f"{s.wall_min / plain.wall_min:.2f}x",
        ]
        for case, s in series.items()
    ]
    about = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {len(plain.samples)} turns"
    return f"{about}\n\n{table(head, rows, 1, markdown=markdown)}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--check", action="store_true", help="exit 1 if a reach is missed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sqb-bench-") as temporary:
        bench = Bench(Path(temporary))
        run(bench, options.repeat)
    print("\n" + report(bench.series, markdown=options.markdown))
    failed = missed(bench.series)
    print("\n" + ("\n".join(["Missed:", *failed]) if failed else "Every reach was met."))
    if options.json:
        document = {
            "schema_version": 1,
            "series": [series.to_json() for series in bench.series.values()],
            "missed": failed,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    if options.check and failed:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
