"""The tour behind ``sqb demo``: a small project, built and changed before the reader's eyes.

Every command it shows is really run. Those that need no Spark run as processes of their own, so
that their time is the whole truth; those that do share one session, to spare the reader its start.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqb.cli.call import Call
from sqb.cli.commands.build import run_build

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ORDERS = [
    (1, "ada", "espresso", 2, "2026-03-01"),
    (2, "ben", "flat_white", 1, "2026-03-01"),
    (3, "ada", "cold_brew", 1, "2026-03-02"),
    (4, "cleo", "espresso", 0, "2026-03-02"),
    (5, "ben", "espresso", 3, "2026-03-02"),
]
_VISITS = [("ada", "2026-03-01"), ("ben", "2026-03-01"), ("ada", "2026-03-02")]


class Tour:
    """The folder, the session once there is one, and what is said about each step."""

    def __init__(self, call: Call, root: Path) -> None:
        self.call, self.out, self.root = call, call.out, root
        self.session: SparkSession | None = None
        self._step = 0

    def say(self, text: str) -> None:
        """Announce the next step."""
        self._step += 1
        self.out.line("")
        self.out.line(self.out.style(f"{self._step}. {text}", bold=True))

    def plan(self) -> int:
        """``sqb plan`` as a process of its own."""
        return self._process("plan")

    def build_process(self) -> int:
        """``sqb build`` as a process of its own: for builds that need no Spark."""
        return self._process("build")

    def _process(self, command: str) -> int:
        self._prompt(f"sqb {command}")
        sys.stdout.flush()
        colour = ["--no-color"] if not self.out.colour else []
        return subprocess.run(
            [sys.executable, "-m", "sqb", command, *colour], cwd=self.root, check=False
        ).returncode

    def build(self) -> int:
        """``sqb build`` on the tour's session."""
        from sqb.api import Project

        self._prompt("sqb build")
        project = Project(self.root, spark=self.session)
        code = run_build(
            self.call.again(),
            project,
            force=False,
            full_refresh=False,
            fail_fast=False,
            concurrency=None,
        )
        self.session = project.session()
        return code

    def edit(self, path: str, change: Callable[[str], str]) -> None:
        """Change a file, and show which."""
        file = self.root / path
        before = file.read_text()
        after = change(before)
        if before == after:
            raise AssertionError(f"the tour's edit of {path} changes nothing")
        file.write_text(after)
        self._prompt(f"$EDITOR {path}")

    def load(self, table: str, columns: tuple[tuple[str, str], ...], rows: list[Any]) -> None:
        """Another team's pipeline: writes rows with pyiceberg, knows nothing of sqb."""
        import pyarrow as pa
        from pyiceberg.catalog.sql import SqlCatalog

        lake = self.root / "lake"
        lake.mkdir(exist_ok=True)
        catalog = SqlCatalog("lake", uri=f"sqlite:///{lake / 'catalog.db'}", warehouse=str(lake))
        catalog.create_namespace_if_not_exists("raw")
        kinds = {"int": pa.int32(), "text": pa.string(), "date": pa.date32()}
        schema = pa.schema([(name, kinds[kind]) for name, kind in columns])
        texts = [pa.array([str(row[i]) for row in rows]) for i in range(len(columns))]
        data = pa.table(
            [column.cast(field.type) for column, field in zip(texts, schema, strict=True)],
            schema=schema,
        )
        catalog.create_table_if_not_exists(("raw", table), schema=schema).append(data)

    def _prompt(self, command: str) -> None:
        self.out.line(self.out.style(f"$ {command}", dim=True))


ORDERS = (
    ("id", "int"),
    ("customer", "text"),
    ("drink", "text"),
    ("quantity", "int"),
    ("ordered_on", "date"),
)
VISITS = (("visitor", "text"), ("seen_on", "date"))


def run(call: Call) -> int:
    """Show the whole tour; the exit code of the first command that failed, else 0."""
    root = Path(tempfile.mkdtemp(prefix="sqb-demo-")) / "coffee_bar"
    with as_file(files("sqb") / "templates" / "demo") as template:
        shutil.copytree(template, root)
    tour = Tour(call, root)
    out = call.out
    out.line(f"A small project: six models, a seed, two source tables, in\n{root}")
    tour.load("orders", ORDERS, _ORDERS)
    tour.load("visits", VISITS, _VISITS)
    try:
        code = _steps(tour)
    finally:
        if tour.session is not None:
            from sqb.spark.session import stop_session

            stop_session(tour.session)
    out.line("")
    out.line(f"The project stays there: cd {root} && sqb plan")
    return code


def _steps(tour: Tour) -> int:
    tour.say("The first build runs everything, on Spark.")
    if code := tour.build():
        return code
    tour.say("The second build has nothing to do, and says so before a JVM could start.")
    if code := tour.build_process():
        return code
    tour.say("A comment and some formatting change nothing.")
    tour.edit("models/revenue.sql", lambda sql: "-- money per day\n" + sql.replace("\n", "\n  "))
    if code := tour.plan():
        return code
    tour.say("An edit runs the model and, if its rows change, what is below.")
    tour.edit("models/orders.sql", lambda sql: sql.replace("* d.cents AS", "* d.cents + 10 AS"))
    if code := tour.plan() or tour.build():
        return code
    tour.say("New rows in one source run its branch and nothing else.")
    tour.load("visits", VISITS, [("dora", "2026-03-02")])
    if code := tour.plan() or tour.build():
        return code
    tour.say("An edit that gives the same rows stops there: below it nothing runs.")
    tour.edit("models/orders.sql", lambda sql: sql.replace("* d.cents + 10", "* d.cents + 5 + 5"))
    if code := tour.build():
        return code
    tour.say("And now everything is current again.")
    return tour.build_process()
