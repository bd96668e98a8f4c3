"""Projects to call commands on, and a way to call them as a user does."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest

from sqb.cli import main as entry

SOURCE = Path(__file__).parents[2] / "src"
SCHEMAS = Path(__file__).parents[2] / "docs" / "json"

FILES = {
    "sqlbuild_project.toml": '[defaults]\nmaterialized = "table"\n',
    "seeds/raw_orders.csv": "id,amount\n1,2.50\n2,3.00\n",
    "models/staging/stg_orders.sql": "MODEL (materialized view, tags [daily]);\n"
    "SELECT id, amount FROM raw_orders\n",
    "models/fct_orders.sql": "SELECT id, amount * 2 AS amount\nFROM stg_orders\n",
    "models/mart.sql": "SELECT sum(amount) AS total FROM fct_orders\n",
}


class Result(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self, schema: str) -> Any:
        """Standard output, checked against one of ``docs/json``."""
        document = json.loads(self.out)
        rules = json.loads((SCHEMAS / f"{schema}.schema.json").read_text())
        jsonschema.Draft202012Validator(rules).validate(document)
        return document


def write(root: Path, files: dict[str, str]) -> Path:
    """Write files below a folder."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A seed, a view and two tables; nothing is built."""
    return write(tmp_path / "shop", FILES)


@pytest.fixture
def sqb(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Result]:
    """Call a command in this process."""
    for name in [name for name in os.environ if name.startswith("SQB_")]:
        monkeypatch.delenv(name)

    def call(*arguments: str, cwd: Path | None = None) -> Result:
        if cwd is not None:
            monkeypatch.chdir(cwd)
        code = entry.run(list(arguments))
        printed = capsys.readouterr()
        return Result(code, printed.out, printed.err)

    return call


@pytest.fixture
def process() -> Callable[..., Result]:
    """Call a command in a process of its own."""

    def call(*arguments: str, cwd: Path, python: tuple[str, ...] = ("-m", "sqb")) -> Result:
        environ = {k: v for k, v in os.environ.items() if not k.startswith("SQB_")}
        environ["PYTHONPATH"] = str(SOURCE)
        done = subprocess.run(
            [sys.executable, *python, *arguments],
            cwd=cwd,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    return call


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    """Commands switch logging off for their process; the tests share one."""
    before = logging.root.manager.disable
    yield
    logging.disable(before)
