"""A long life of a small project: data arrives, a build runs, over and over; what does it grow to?

Seven models over a source that gets new rows before every build. All builds share one Spark
session through the Python API. Every so often the benchmark measures what a plan without changes
costs in a process of its own, and what lies on disk. The reader grace is set to its least, a
minute, because here a build follows the other without a pause; all else is as a user finds it.

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

from sqb.api import Project
from sqb.lake.metadata import read_document
from sqb.state.tables import FINGERPRINTS

_MODELS = {
    "stg_events": "MODEL (materialized view);\nSELECT id, account, amount FROM raw.events",
    "latest": "SELECT id, account, amount FROM stg_events WHERE id > 900",
    "by_account": "SELECT account, sum(amount) AS total FROM stg_events GROUP BY account",
    "counted": "SELECT count(*) AS n FROM stg_events",
    "top": "SELECT account, total FROM by_account WHERE total > 500",
    "summary": "SELECT max(t.total) AS most, max(c.n) AS n FROM top AS t CROSS JOIN counted AS c",
    "calm": "SELECT DISTINCT account FROM stg_events",
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


def picture(points: list[dict[str, Any]]) -> str:
    """Six small line charts over the number of builds, as SVG."""
    width, height, margin = 300, 130, 24
    parts = []
    for place, (key, title) in enumerate(_PANELS):
        left, top = (place % 2) * (width + margin) + margin, (place // 2) * (height + 50) + 30
        most = max((p[key] for p in points), default=0) or 1
        last = max(p["builds"] for p in points)
        line = " ".join(
            f"{left + p['builds'] / last * width:.1f},{top + height - p[key] / most * height:.1f}"
            for p in points
        )
        top_value = f"{most:,.2f}" if most < 100 else f"{most:,.0f}"
        parts.append(
            f'<text x="{left}" y="{top - 8}">{title} (top: {top_value})</text>'
            f'<rect x="{left}" y="{top}" width="{width}" height="{height}" class="frame"/>'
            f'<polyline points="{line}"/>'
            f'<text x="{left + width}" y="{top + height + 14}" class="end">{last:,} builds</text>'
        )
    style = (
        "text{font:11px sans-serif;fill:#444}.end{text-anchor:end;fill:#888}"
        ".frame{fill:none;stroke:#ccc}polyline{fill:none;stroke:#2563eb;stroke-width:1.5}"
    )
    size = f'width="{2 * width + 3 * margin}" height="{3 * (height + 50) + 20}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}><style>{style}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


def table(points: list[dict[str, Any]]) -> str:
    """The same as a Markdown table."""
    names = "Builds|Plan, CPU s|Build, s|State rows|State files|Snapshots|Metadata files|Files|MB"
    titles = names.split("|")
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    lines += [
        f"| {p['builds']:,} | {p['plan_cpu_seconds']:.2f} | {p['build_seconds']:.2f} "
        f"| {p['state_rows']:,} | {p['state_files']} | {p['snapshots']} | {p['metadata_files']} "
        f"| {p['files']:,} | {p['bytes'] / 1e6:.1f} |"
        for p in points
    ]
    return "\n".join(lines)


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
    print(table(points))
    if options.svg:
        options.svg.write_text(picture(points), encoding="utf-8")


if __name__ == "__main__":
    main()
