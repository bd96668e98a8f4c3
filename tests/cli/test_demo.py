"""The demo, for real; and the README's first screen, which shows parts of it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_COUNTER = re.compile(r"^\s+\d+/\d+\s+")
_SECONDS = re.compile(r"\(?\b\d+(?:\.\d+)?s\b\)?|\b\d+m \d+s\b")


def normal(line: str) -> str:
    """A line without what differs from run to run."""
    return " ".join(_SECONDS.sub("#", _COUNTER.sub("", line)).split())


def test_the_demo_shows_what_the_readme_shows() -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("SQB_TARGET")}
    done = subprocess.run(
        [sys.executable, "-m", "sqb", "demo"],
        capture_output=True,
        text=True,
        check=False,
        env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    shown = {normal(line) for line in done.stdout.splitlines()}
    assert {
        "Nothing to do: 7 models and seeds are current #",
        "table orders ok 4 rows # query changed",
        "table regulars unchanged 2 rows # upstream changed",
        "table footfall ok 2 rows # upstream changed",
        "table orders unchanged 4 rows # query changed",
        "table revenue current (upstream unchanged)",
        "done: 1 built, 6 current in #",
    } <= shown
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"```console demo\n(.*?)```", readme, re.DOTALL)
    assert block is not None
    told = [normal(line) for line in block.group(1).splitlines() if line.strip()]
    assert [line for line in told if line not in shown] == []
