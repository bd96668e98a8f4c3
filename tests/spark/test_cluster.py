"""A standalone cluster: an executor that dies in the middle of a build costs time, not the build.

Started by ``make test-cluster``.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from clusters import Cluster

from sqb.api import Project
from sqb.execution.events import Event
from sqb.spark.session import SparkSettings

pytestmark = pytest.mark.skipif(
    os.environ.get("SQB_TEST_SPARK") != "cluster", reason="make test-cluster starts a cluster"
)

#: Two tasks of some seconds each, with a shuffle behind them.
LONG = (
    "SELECT a.id % 10 AS k, sum(a.id * b.id % 7) AS s\n"
    "FROM range(0, 20000, 1, 4) AS a(id) CROSS JOIN range(0, 20000, 1, 1) AS b(id)\n"
    "GROUP BY 1"
)


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


def test_a_killed_executor_does_not_fail_the_build(
    tmp_path: Path, cluster: Cluster, spark: object, spark_settings: SparkSettings
) -> None:
    assert spark is not None
    settings = msgspec.structs.replace(spark_settings, master=cluster.master)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "long.sql").write_text(LONG)
    (tmp_path / "models" / "below.sql").write_text("SELECT count(*) AS n, sum(s) AS s FROM long")
    (tmp_path / "sqlbuild_project.toml").write_text(
        '[targets.dev]\nschema = "killed"\n[defaults]\nmaterialized = "table"\n[catalog]\n'
        f'uri = "{settings.catalog_uri}"\nwarehouse = "{settings.warehouse}"\n'
    )
    started = threading.Event()

    def listener(event: Event) -> None:
        if event.kind == "node_started" and event.node == "long":
            started.set()

    killed: list[int] = []

    def kill() -> None:
        assert started.wait(120)
        tracker = spark.sparkContext.statusTracker()  # type: ignore[attr-defined]
        until(lambda: bool(tracker.getActiveStageIds()), "a running stage")
        time.sleep(1)
        killed.append(cluster.executors()[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with Project(tmp_path, spark=spark, environ=dict(os.environ)) as project:  # type: ignore[arg-type]
        result = project.build(listener=listener)
    killer.join()
    assert [node.error for node in result.nodes] == [None, None]
    assert killed
    rows = spark.sql("SELECT n, s FROM lake.killed.below").collect()  # type: ignore[attr-defined]
    residues = Counter(number % 7 for number in range(20000))
    total = sum(n * m * (i * j % 7) for i, n in residues.items() for j, m in residues.items())
    assert [tuple(row) for row in rows] == [(10, total)]
