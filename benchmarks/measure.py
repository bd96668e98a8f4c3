"""Measures fresh child processes: wall time, CPU time, peak memory, modules imported.

Uses only the standard library and stays small: on Linux the peak of a child also counts what its
parent held when it started the child.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

#: ``ru_maxrss`` counts kilobytes, on macOS bytes.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Sample:
    """One child process from its start to its end; CPU is user and system time of all threads."""

    wall: float
    cpu: float
    peak_bytes: int


@dataclass
class Series:
    """Repeated samples of one case."""

    tool: str
    case: str
    models: int
    samples: list[Sample] = field(default_factory=list)

    @property
    def wall_min(self) -> float:
        """The run that others disturbed least."""
        return min(s.wall for s in self.samples)

    @property
    def wall_median(self) -> float:
        return statistics.median(s.wall for s in self.samples)

    @property
    def cpu_min(self) -> float:
        return min(s.cpu for s in self.samples)

    @property
    def cpu_median(self) -> float:
        return statistics.median(s.cpu for s in self.samples)

    @property
    def peak_mb(self) -> float:
        """The largest peak, in megabytes of 10^6 bytes."""
        return max(s.peak_bytes for s in self.samples) / 1e6

    def to_json(self) -> dict[str, object]:
        return {
            "tool": self.tool,
            "case": self.case,
            "models": self.models,
            "runs": len(self.samples),
            "wall_min_s": round(self.wall_min, 4),
            "wall_median_s": round(self.wall_median, 4),
            "cpu_min_s": round(self.cpu_min, 4),
            "cpu_median_s": round(self.cpu_median, 4),
            "peak_mb": round(self.peak_mb, 1),
        }


def environment() -> dict[str, str]:
    """The children's environment: bytecode may be written, and nothing sets sqb's options."""
    dropped = ("PYTHONDONTWRITEBYTECODE", "PYTHONPROFILEIMPORTTIME")
    kept = {k: v for k, v in os.environ.items() if k not in dropped and not k.startswith("SQB_")}
    return {**kept, "NO_COLOR": "1"}


def run(
    command: Sequence[str], folder: Path, *, exit_code: int = 0, says: str | None = None
) -> Sample:
    """Run a command to its end and measure it; an unexpected end is an error.

    ``says`` is a text that its output must hold.
    """
    with tempfile.TemporaryFile() as output:
        started = time.perf_counter()
        child = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode(errors="replace")
        if child.returncode != exit_code or (says is not None and says not in text):
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}:\n{text[-2000:]}")
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * _RSS_UNIT)


def imported(module: str, arguments: Sequence[str], folder: Path) -> set[str]:
    """The top-level packages that ``python -m module`` imports, by ``-X importtime``."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", module, *arguments],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
