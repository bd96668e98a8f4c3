"""Ctrl-C: Spark's jobs are cancelled, finished nodes recorded, tables whole, exit 130."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqb.execution.events import NodeResult
from sqb.execution.scheduler import run_all
from sqb.spark.kinds import is_connect

sys.path.insert(0, str(Path(__file__).parent))
from children import Children
from lakes import leftovers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Workbench

SLOW = (
    "SELECT sum(a.id * b.id % 7) AS s\n"
    "FROM range(0, 40000000, 1, 1) AS a(id) CROSS JOIN range(0, 40000000, 1, 1) AS b(id)"
)


@pytest.fixture
def children(spark: SparkSession) -> Iterator[Children]:
    server = Children(spark)
    yield server
    server.close()


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def runs_a_job(spark: SparkSession) -> bool | None:
    """Does Spark run a job? A Connect server does not tell."""
    if is_connect(spark):
        return None
    return bool(spark.sparkContext.statusTracker().getActiveJobsIds())


def test_an_interrupted_build_leaves_everything_whole(bench: Workbench, children: Children) -> None:
    bench.model("slow", "SELECT 0L AS s")
    bench.told()
    bench.model("slow", SLOW)
    bench.model("fast", "SELECT 1 AS a")
    bench.model("below", "SELECT s FROM slow")
    catalog = bench.project().catalog
    child = children.start(bench.root, cli=["build", "--concurrency", "2"])
    until(lambda: catalog.head(bench.schema, "fast") is not None, "the fast model")
    until(lambda: runs_a_job(bench.spark) is not False, "the slow model's job")
    time.sleep(0.5)
    os.kill(child.pid, signal.SIGINT)
    began = time.monotonic()
    assert child.wait()["status"] == 130
    assert time.monotonic() - began < 30
    until(lambda: not runs_a_job(bench.spark), "the end of the cancelled job")
    project = bench.project()
    assert bench.rows("slow") == [(0,)]
    assert bench.rows("fast") == [(1,)]
    assert catalog.head(bench.schema, "below") is None
    assert leftovers(project) == []
    observed = project.observe()
    assert set(observed.rows) == {"slow", "fast"}
    assert observed.repairs == {}
    assert {node.name for node in bench.plan().work} == {"slow", "below"}


def test_ctrl_c_blocks_what_has_not_begun_and_cancels_until_nothing_runs() -> None:
    """A signal at any moment is noted, never raised inside the loop, so no result is lost."""
    release = threading.Event()
    stops: list[float] = []
    before = signal.getsignal(signal.SIGINT)

    def work(name: str) -> NodeResult:
        if name == "first":
            return NodeResult(name, "success", "first_run")
        os.kill(os.getpid(), signal.SIGINT)
        assert release.wait(30)
        return NodeResult(name, "failed", "first_run")

    def cancel() -> None:
        stops.append(time.monotonic())
        # the first cancellation comes too early for the job that is about to start
        if len(stops) > 1:
            release.set()

    results, interrupted = run_all(
        ["first", "second", "third"],
        {"first": [], "second": ["first"], "third": ["second"]},
        work,
        concurrency=2,
        fail_fast=False,
        on_result=lambda _: None,
        on_stop=cancel,
    )
    assert interrupted
    ends = {name: result.status for name, result in results.items()}
    assert ends == {"first": "success", "second": "failed", "third": "blocked"}
    assert len(stops) > 1
    assert signal.getsignal(signal.SIGINT) is before


def test_results_that_come_in_a_storm_of_signals_are_all_settled() -> None:
    stop = threading.Event()
    begun = threading.Event()

    def storm() -> None:
        begun.wait(30)
        while not stop.is_set():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.0005)

    def work(name: str) -> NodeResult:
        begun.set()
        time.sleep(0.02)
        return NodeResult(name, "success", "first_run")

    names = [f"n{i}" for i in range(40)]
    settled: list[str] = []
    thread = threading.Thread(target=storm)

    def ended(result: NodeResult) -> None:
        settled.append(result.name)
        if len(settled) == len(names):
            stop.set()
            thread.join()

    thread.start()
    try:
        results, interrupted = run_all(
            names,
            {name: [] for name in names},
            work,
            concurrency=40,
            fail_fast=False,
            on_result=ended,
            on_stop=lambda: None,
        )
    finally:
        stop.set()
    assert interrupted
    assert sorted(settled) == sorted(names)
    assert set(results) == set(names)
