"""A long life of a project: data arrives, a build runs, over and over; what does it grow to?

Fifty models: four live from a source that gets new rows before every build, the others rest on one
that stays as it is. All builds share one Spark session through the Python API. Every so often the
benchmark measures what a plan without changes costs in a process of its own, and what lies on disk.
The reader grace is set to its least, a minute, because here a build follows the other without a
pause; all else is as a user finds it.

    python benchmarks/life.py [--builds 1000] [--every 50] [--no-upkeep] [--json FILE] [--svg FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from show import Panel, picture, table

from sqb.api import Project
from sqb.lake.metadata import read_document
from sqb.state.tables import FINGERPRINTS

_MODELS = {
    "stg_events": "MODEL (materialized view);\nSELECT id, account, amount FROM raw.events",
    "latest": "SELECT id, account, amount FROM stg_events WHERE id > 900",
    "by_account": "SELECT account, sum(amount) AS total FROM stg_events GROUP BY account",
    "top": "SELECT account, total FROM by_account WHERE total > 500",
} | {
    f"calm_{number:02}": f"SELECT id + {number} AS id, name FROM raw.names WHERE id > {number % 7}"
    for number in range(46)
}


class Life:
    """A project in a folder, and the one session that builds it."""

    def __init__(self, folder: Path, *, upkeep: bool) -> None:
        self.folder = folder
        for name, text in _MODELS.items():
            file = folder / "models" / f"{name}.sql"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        (folder / "sqlbuild_project.toml").write_text(
            'name = "life"\n[defaults]\nmaterialized = "table"\n'
            f'[janitor]\nreader_grace = "1m"\nautomatic = {str(upkeep).lower()}\n'
            '[spark]\nmaster = "local[2]"\n[spark.conf]\n"spark.sql.shuffle.partitions" = "2"\n'
            '"spark.ui.enabled" = "false"\n',
            encoding="utf-8",
        )
        self.owner = Project(folder)
        self.session = self.owner.session(folder / "spark.log")
        self.owner.catalog.ensure_namespace("raw")
        self.session.sql("CREATE TABLE lake.raw.events (id INT, account INT, amount INT)")
        self.session.sql("CREATE TABLE lake.raw.names AS SELECT 1 AS id, 'one' AS name")
        self.built = 0

    def build(self) -> float:
        """New rows, then a build; the seconds of the build."""
        first = self.built * 5
        rows = ", ".join(f"({first + i}, {(first + i) % 7}, {i})" for i in range(5))
        self.session.sql(f"INSERT INTO lake.raw.events VALUES {rows}")
        started = time.perf_counter()
        result = Project(self.folder, spark=self.session).build()
        self.built += 1
        if result.failed:
            raise SystemExit(f"{result.failed[0].name}: {result.failed[0].error}")
        return time.perf_counter() - started

    def measure(self, seconds: float) -> dict[str, Any]:
        """What there is now."""
        plans = [self._plan() for _ in range(3)]
        head = self.owner.catalog.head("dev", FINGERPRINTS)
        summary = read_document(head.location)["snapshots"][-1]["summary"] if head else {}
        # what others write grows with their data: only what sqb keeps counts here
        files = [f for f in (self.folder / "lake" / "dev").rglob("*") if f.is_file()]
        snapshots = [
            len(read_document(h.location).get("snapshots") or [])
            for h in self.owner.catalog.heads(["dev"]).values()
            if h.kind == "table"
        ]
        return {
            "builds": self.built,
            "plan_seconds": min(wall for wall, _ in plans),
            "plan_cpu_seconds": min(cpu for _, cpu in plans),
            "build_seconds": seconds,
            "state_rows": int(summary.get("total-records", 0)),
            "state_files": int(summary.get("total-data-files", 0)),
            "snapshots": max(snapshots),
            "metadata_files": sum(f.name.endswith(".metadata.json") for f in files),
            "files": len(files),
            "bytes": sum(f.stat().st_size for f in files),
        }

    def _plan(self) -> tuple[float, float]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "sqb", "plan", "--project-dir", str(self.folder)],
            check=True,
            capture_output=True,
            env={k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        )
        wall = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


_PANELS = (
    ("plan_cpu_seconds", "a plan without changes, CPU seconds"),
    ("build_seconds", "a build, seconds"),
    ("files", "files of the target"),
    ("bytes", "bytes of the target"),
    ("snapshots", "snapshots of the longest table"),
    ("state_files", "files of the state table"),
)


def drawn(points: list[dict[str, Any]]) -> str:
    """Six small line charts over the number of builds, as SVG."""
    return picture(
        [
            Panel(title, "builds", {title: [(p["builds"], p[key]) for p in points]})
            for key, title in _PANELS
        ]
    )


def listed(points: list[dict[str, Any]]) -> str:
    """The same as a Markdown table."""
    names = "Builds|Plan, CPU s|Build, s|State rows|State files|Snapshots|Metadata files|Files|MB"
    rows = [
        [
            f"{p['builds']:,}",
            f"{p['plan_cpu_seconds']:.2f}",
            f"{p['build_seconds']:.2f}",
            f"{p['state_rows']:,}",
            str(p["state_files"]),
            str(p["snapshots"]),
            str(p["metadata_files"]),
            f"{p['files']:,}",
            f"{p['bytes'] / 1e6:.1f}",
        ]
        for p in points
    ]
    return table(names.split("|"), rows, 0, markdown=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--builds", type=int, default=1000)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--no-upkeep", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--folder", type=Path, help="where to work; default: a temporary folder")
    options = parser.parse_args()
    points: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        life = Life(Path(folder), upkeep=not options.no_upkeep)
        with life.owner:
            recent: list[float] = []
            for number in range(1, options.builds + 1):
                recent.append(life.build())
                if number == 1 or number % options.every == 0:
                    points.append(life.measure(sum(recent) / len(recent)))
                    recent = []
                    print(json.dumps(points[-1]), flush=True)
                    if options.json:
                        options.json.write_text(json.dumps(points, indent=2) + "\n")
    print(listed(points))
    if options.svg:
        options.svg.write_text(drawn(points), encoding="utf-8")


if __name__ == "__main__":
    main()
