"""What ``plan.py`` found, as plain text, Markdown and JSON; and what it should have found."""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import metadata
from itertools import pairwise
from pathlib import Path

from measure import Series
from show import table

Edit = Callable[[str], str]

CASES = (
    "first compile",
    "first plan",
    "no-change plan",
    "no-change build",
    "plan after one edit",
    "plan after a comment edit",
)
#: (case, models) -> seconds of wall time, megabytes.
REACH: dict[tuple[str, int], tuple[float, float | None]] = {
    ("no-change plan", 50): (0.3, None),
    ("no-change build", 50): (0.3, None),
    ("no-change plan", 5000): (0.6, 150),
    ("no-change build", 5000): (0.6, 150),
    ("plan after one edit", 5000): (1.2, None),
    ("first compile", 5000): (6.0, None),
}
SQLMESH_APPLY = ("plan", "--auto-apply", "--no-prompts", "--skip-tests", "--empty-backfill")
SQLMESH_PLAN = ("plan", "--no-prompts", "--skip-tests")

_NOTES = """\
- Every run is a fresh process; its wall time includes starting Python. min and median are over the
  runs; CPU is user and system time of the process; peak is resident memory.
- The lake's first build was recorded by benchmarks/record.py, not run on Spark: real Iceberg
  metadata, stamps and state rows through sqb's own code, tables without rows.
- first compile: `sqb compile` without .sqb; first plan: `sqb plan` without .sqb on the built lake,
  so it also reads every metadata file and the state tables.
- growth: the exponent k of time ~ models^k between two sizes; 1 is linear."""
_MESH_NOTE = """\
- SQLMesh: `sqlmesh {plan}` on the same queries, DuckDB as engine and as state,
  after `sqlmesh {apply}`;
  its own caches are warm; it ends with "No changes to plan"."""


@dataclass
class Findings:
    """All series of one run of the benchmark, and which packages the no-change runs imported."""

    about: dict[str, str]
    series: list[Series] = field(default_factory=list)
    imports: dict[int, dict[str, set[str]]] = field(default_factory=dict)

    def of(self, tool: str, case: str) -> list[Series]:
        """The series of one case, smallest project first."""
        found = [s for s in self.series if (s.tool, s.case) == (tool, case)]
        return sorted(found, key=lambda s: s.models)

    def missed(self) -> list[str]:
        """Every reach that was not met, by the fastest run."""
        out = []
        for series in self.series:
            wall, memory = REACH.get((series.case, series.models), (math.inf, None))
            if series.tool != "sqb":
                continue
            what = f"{series.case}, {series.models} models"
            if series.wall_min > wall:
                out.append(f"{what}: {series.wall_min:.2f} s, reach {wall} s")
            if memory is not None and series.peak_mb > memory:
                out.append(f"{what}: {series.peak_mb:.0f} MB, reach {memory:.0f} MB")
        return out

    def to_json(self) -> dict[str, object]:
        return {
            "schema_version": 1,
            "about": self.about,
            "recorded_without_spark": True,
            "series": [s.to_json() for s in self.series],
            "imports": {
                str(models): {command: sorted(found) for command, found in commands.items()}
                for models, commands in self.imports.items()
            },
            "missed": self.missed(),
        }


def about_this_run(sqlmesh: Path | None) -> dict[str, str]:
    """The machine and the versions behind the numbers."""
    import sqb

    about = {
        "sqb": sqb.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        "load at start": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "sqlglot": metadata.version("sqlglot"),
    }
    if sqlmesh is not None:
        about["sqlmesh"] = _version_beside(sqlmesh)
    return about


def _version_beside(command: Path) -> str:
    places = [str(p) for p in command.parent.parent.glob("lib/python*/site-packages")]
    found = metadata.distributions(name="sqlmesh", path=places or sys.path)
    return next((d.version for d in found), "unknown")


def text(findings: Findings, *, markdown: bool) -> str:
    """The whole report."""
    paragraphs = [" · ".join(f"{k} {v}" for k, v in findings.about.items())]
    rows = [
        [
            s.tool,
            s.case,
            f"{s.models:,}",
            f"{s.wall_min:.2f}",
            f"{s.wall_median:.2f}",
            f"{s.cpu_min:.2f}",
            f"{s.cpu_median:.2f}",
            f"{s.peak_mb:.0f}",
            _reach(s),
        ]
        for tool in ("sqb", "SQLMesh")
        for case in CASES
        for s in findings.of(tool, case)
    ]
    head = ["", "case", "models", "wall min s", "median", "CPU min s", "median", "peak MB", "reach"]
    paragraphs.append(table(head, rows, left=2, markdown=markdown))
    growth = _growth(findings)
    if growth:
        paragraphs.append(table(["growth of CPU", "models", "k"], growth, 1, markdown=markdown))
    beside = _beside(findings)
    if beside:
        head = ["no-change plan, side by side", "models", "sqb s", "SQLMesh s", "ratio"]
        paragraphs.append(table(head, beside, 1, markdown=markdown))
    heavy = "none of pyspark, pyiceberg, pyarrow, sqlglot, no JVM"
    for models, commands in findings.imports.items():
        told = ", ".join(f"{command} {len(found)}" for command, found in commands.items())
        paragraphs.append(f"{models:,} models: top-level modules imported: {told}; {heavy}.")
    notes = [_NOTES]
    if any(s.tool == "SQLMesh" for s in findings.series):
        notes.append(_MESH_NOTE.format(plan=" ".join(SQLMESH_PLAN), apply=" ".join(SQLMESH_APPLY)))
    paragraphs.append("\n".join(notes))
    missed = findings.missed()
    paragraphs.append("\n".join(["Missed:", *missed]) if missed else "Every reach was met.")
    return "\n\n".join(paragraphs)


def _reach(series: Series) -> str:
    if series.tool != "sqb" or (series.case, series.models) not in REACH:
        return ""
    wall, memory = REACH[(series.case, series.models)]
    return f"{wall} s" + (f", {memory:.0f} MB" if memory else "")


def _growth(findings: Findings) -> list[list[str]]:
    rows = []
    for tool in ("sqb", "SQLMesh"):
        for case in CASES:
            found = findings.of(tool, case)
            for small, large in pairwise(found):
                k = math.log(large.cpu_min / small.cpu_min) / math.log(large.models / small.models)
                sizes = f"{small.models:,} to {large.models:,}"
                rows.append([f"{tool}, {case}", sizes, f"{k:.2f}"])
    return rows


def _beside(findings: Findings) -> list[list[str]]:
    rows = []
    ours = {s.models: s for s in findings.of("sqb", "no-change plan")}
    for theirs in findings.of("SQLMesh", "no-change plan"):
        own = ours[theirs.models]
        pairs = (
            ("wall, median", own.wall_median, theirs.wall_median),
            ("CPU, minimum", own.cpu_min, theirs.cpu_min),
        )
        for what, a, b in pairs:
            rows.append([what, f"{theirs.models:,}", f"{a:.2f}", f"{b:.2f}", f"{b / a:.0f}x"])
    return rows
