"""Two builds at once: one publishes, the other adopts or fails; readers see whole tables."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqb.api import Project
from sqb.lake import publish, rest_publish
from sqb.spark.kinds import sibling
from sqb.state.record import Record
from sqb.state.store import StateStore
from sqb.state.tables import Fingerprint, Observation

sys.path.insert(0, str(Path(__file__).parent))
from lakes import files_below, home, leftovers, reachable

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.execution.events import BuildResult, Event, NodeResult

WAIT = 60


def twin(bench: Workbench, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Another checkout of the same project, on the same lake and schema."""
    root = tmp_path_factory.mktemp("twin")
    shutil.copytree(bench.root, root, dirs_exist_ok=True, ignore=lambda *_: [".sqb"])
    return Project(root, spark=bench.spark, environ=bench.environ)


def together(monkeypatch: pytest.MonkeyPatch, *builds: Callable[[], BuildResult]) -> list[Any]:
    """Run builds that all reach the swap before any of them swaps; their results, in order."""
    barrier = threading.Barrier(len(builds))
    passed = threading.local()

    def reached(point: str) -> None:
        if point == "publish:5a" and not getattr(passed, "once", False):
            passed.once = True
            barrier.wait(WAIT)

    for module in (publish, rest_publish):
        monkeypatch.setattr(module, "reached", reached)
    results: list[Any] = [None] * len(builds)

    def run(i: int) -> None:
        results[i] = builds[i]()

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(builds))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WAIT)
    monkeypatch.undo()
    assert None not in results
    return results


def node(result: BuildResult, name: str = "m") -> NodeResult:
    return next(n for n in result.nodes if n.name == name)


def settled(bench: Workbench, *names: str) -> None:
    """Nothing staged, no stray files, state complete, nothing to do."""
    project = bench.project()
    assert leftovers(project) == []
    for name in names:
        head = project.catalog.head(bench.schema, name)
        assert head is not None
        stray = files_below(home(project, bench.schema, name)) - reachable(head)
        if bench.settings.catalog_type == "rest":
            # of two commits at once the server's own loser leaves its metadata file
            stray = {file for file in stray if not file.endswith(".metadata.json")}
        assert stray == set() or head.kind == "view"
    assert bench.build().run_id is None


@pytest.mark.parametrize("kind", ["table", "view"])
def test_the_loser_of_equal_builds_adopts_the_winners_result(
    bench: Workbench,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    for step in ("first", "again"):
        bench.model("m", f"MODEL (materialized {kind});\nSELECT '{step}' AS a")
        one, other = bench.project(), twin(bench, tmp_path_factory)
        results = together(monkeypatch, one.build, other.build)
        both = sorted(node(r).status for r in results)
        # a REST server compares nothing when a view is replaced: the same one twice is no harm
        twice = kind == "view" and bench.settings.catalog_type == "rest"
        told = (step, [node(r).error for r in results])
        assert both == ["current", "success"] or (twice and both == ["success"] * 2), told
        assert results[0].run_id != results[1].run_id
        assert bench.rows("m") == [(step,)]
        settled(bench, "m")
        winners = [r.run_id for r in results if node(r).status == "success"]
        assert bench.project().observe().rows["m"].run in winners


CHANGES = {
    "append": "INSERT INTO lake.{raw}.t VALUES (3, 3), (3, 3)",
    "affected_key": "UPDATE lake.{raw}.t SET v = v + 10 WHERE id = 1",
}


@pytest.mark.parametrize("strategy", CHANGES)
def test_of_two_refreshes_by_rows_one_is_published(
    bench: Workbench,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    strategy: str,
) -> None:
    """Added twice, the rows would be there twice, and no store would refuse them."""
    bench.sql("CREATE TABLE lake.{raw}.t (id INT, v INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1, 1), (1, 1), (2, 2)")
    bench.model("m", "SELECT id, v FROM {raw}.t")
    bench.told()
    bench.sql(CHANGES[strategy])
    one, other = bench.project(), twin(bench, tmp_path_factory)
    builds = [lambda p=p: p.build(refresh="rows") for p in (one, other)]
    results = together(monkeypatch, *builds)
    both = {node(r).status: node(r) for r in results}
    assert set(both) == {"current", "success"}, [node(r) for r in results]
    done = both["success"].strategy
    assert done is not None
    assert done.name == strategy, (done, both["success"].warnings)
    assert bench.rows("m") == sorted(bench.sql("SELECT id, v FROM lake.{raw}.t"))
    settled(bench, "m")
    # the loser of a race with other inputs begins anew from what the winner left
    bench.sql(CHANGES[strategy])
    winners: list[BuildResult] = []

    def overtake(event: Event) -> None:
        if event.kind == "node_started" and not winners:
            bench.sql("INSERT INTO lake.{raw}.t VALUES (9, 9)")
            winners.append(other.build(refresh="rows"))

    lost = node(bench.build(refresh="rows", listener=overtake))
    assert (node(winners[0]).status, lost.status) == ("success", "failed")
    assert bench.rows("m") == sorted(bench.sql("SELECT id, v FROM lake.{raw}.t"))
    settled(bench, "m")


def test_two_builds_of_a_log_add_a_row_once(
    bench: Workbench, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1)")
    bench.model("m", "MODEL (materialized append);\nSELECT id FROM {raw}.t")
    bench.told()
    bench.sql("INSERT INTO lake.{raw}.t VALUES (2)")
    one, other = bench.project(), twin(bench, tmp_path_factory)
    results = together(monkeypatch, one.build, other.build)
    assert sorted(node(r).status for r in results) == ["current", "success"]
    assert bench.rows("m") == [(1,), (2,)]
    settled(bench, "m")


def test_the_loser_of_different_builds_fails_and_names_the_winner(
    bench: Workbench, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.model("m", "SELECT 0 AS a")
    bench.told()
    bench.model("m", "SELECT 1 AS a")
    other = twin(bench, tmp_path_factory)
    (other.root / "models" / "m.sql").write_text("SELECT 2 AS a")
    results = together(monkeypatch, bench.project().build, other.build)
    (lost,) = [r for r in results if node(r).status == "failed"]
    (won,) = [r for r in results if node(r).status == "success"]
    error = node(lost).error
    assert error is not None
    assert error["code"] == "L003"
    assert won.run_id in str(error["message"])
    assert error["file"] == "models/m.sql"
    assert bench.rows("m") == [(1 if won is results[0] else 2,)]
    assert leftovers(bench.project()) == []
    bench.told()
    assert bench.rows("m") == [(1,)]
    settled(bench, "m")


def test_a_property_that_two_builds_set_at_once_is_set_once(
    bench: Workbench, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.model("m", "SELECT 0 AS a")
    bench.told()
    codec = '"write.parquet.compression-codec" zstd'
    bench.model("m", f"MODEL (table_properties ({codec}));\nSELECT 0 AS a")
    one, other = bench.project(), twin(bench, tmp_path_factory)
    results = together(monkeypatch, one.build, other.build)
    assert {node(r).status for r in results} <= {"unchanged", "current"}
    settled(bench, "m")


SAME, OTHER = "SELECT count(*) AS n FROM {raw}.t", "SELECT count(*) * 10 AS n FROM {raw}.t"
MEANWHILE = [
    ("table", "the same definition and inputs", None, SAME, "current"),
    ("table", "other inputs", "INSERT INTO lake.{raw}.t VALUES (2)", SAME, "failed"),
    ("table", "another definition", None, OTHER, "failed"),
    ("view", "the same definition and inputs", None, SAME, "current"),
    ("view", "another definition", None, OTHER, "failed"),
]


@pytest.mark.parametrize(("kind", "title", "insert", "query", "status"), MEANWHILE)
def test_a_build_that_published_after_our_plan_is_never_overwritten(
    bench: Workbench,
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    title: str,
    insert: str | None,
    query: str,
    status: str,
) -> None:
    """The winner starts and ends while the loser, its plan made, has not staged anything yet."""
    header = f"MODEL (materialized {kind});\n"
    bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1)")
    bench.model("m", header + "SELECT 1 - 1 AS n")
    bench.told()
    bench.model("m", header + "SELECT count(*) AS n FROM {raw}.t")
    other = twin(bench, tmp_path_factory)
    (other.root / "models" / "m.sql").write_text(header + query.replace("{raw}", bench.raw))
    winners: list[BuildResult] = []

    def overtake(event: Event) -> None:
        if event.kind == "node_started" and not winners:
            if insert:
                bench.sql(insert)
            winners.append(other.build())

    lost = node(bench.build(listener=overtake))
    assert node(winners[0]).status == "success", title
    theirs = bench.rows("m")
    assert lost.status == status, (title, lost)
    if lost.error is not None:
        assert lost.error["code"] == "L003"
        assert str(winners[0].run_id) in str(lost.error["message"])
    assert theirs == [(10 if query == OTHER else 2 if insert else 1,)]
    assert leftovers(bench.project()) == []


def test_a_reader_never_sees_the_table_missing_or_half_written(bench: Workbench) -> None:
    rows = 1000

    def version(k: int) -> str:
        return f"SELECT id, {k} AS version FROM range({rows}) AS r(id)"

    bench.model("m", version(0))
    bench.told()
    table, session = f"lake.{bench.schema}.m", sibling(bench.spark)
    stop, seen, trouble = threading.Event(), [], []

    def read() -> None:
        while not stop.is_set():
            try:
                got = session.table(table).selectExpr(
                    "count(*)", "count(DISTINCT version)", "max(version)"
                )
                seen.append(tuple(got.collect()[0]))
            except Exception as error:  # noqa: BLE001, PERF203 - whatever a reader gets is trouble
                trouble.append(str(error)[:300])

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for k in range(1, 12):
            bench.model("m", version(k))
            assert bench.told() == {"m": ("success", "query_changed")}
    finally:
        stop.set()
        reader.join()
    assert trouble == []
    assert {row[:2] for row in seen} == {(rows, 1)}
    versions = [row[2] for row in seen]
    assert versions == sorted(versions)
    assert len(set(versions)) > 3


def test_builds_that_append_state_at_the_same_moment_lose_no_row(bench: Workbench) -> None:
    writers, turns = 4, 3
    settings = bench.settings
    barrier = threading.Barrier(writers)
    trouble: list[BaseException] = []
    stores = [
        StateStore(
            "lake", settings.catalog_uri, settings.warehouse, None, kind=settings.catalog_type
        )
        for _ in range(writers)
    ]

    def write(writer: int) -> None:
        store = stores[writer]
        try:
            store.open()
            for turn in range(turns):
                barrier.wait(WAIT)
                name = f"m{writer}_{turn}"
                row = Fingerprint(_record(name), "lake", bench.schema, name, "SELECT 1")
                seen = Observation(
                    f"raw.{name}", "lake", bench.raw, name, "run", "v", "hash", writer
                )
                store.append([row], [seen], {seen.source: [bench.schema]})
        except BaseException as error:  # noqa: BLE001 - shown by the test
            trouble.append(error)
            barrier.abort()

    threads = [threading.Thread(target=write, args=(i,)) for i in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trouble == []
    wanted = sorted((f"m{w}_{t}",) for w in range(writers) for t in range(turns))
    assert bench.rows("_sqlbuild_fingerprints", "node_name") == wanted
    assert bench.rows("_sqlbuild_source_freshness", "target_name") == wanted
    # also the writer whose rows came last, which need not read what it appended itself
    heads = bench.project().catalog.heads([bench.schema])
    for store in stores:
        assert len(store.latest(heads, [bench.schema])) == writers * turns


def _record(name: str) -> Record:
    return Record(
        node=name,
        type="model",
        materialized="table",
        scheme="1",
        query="q",
        config="c",
        local="l",
        version="v",
        data="d",
        schema="s",
        table="t",
        uuid="u",
        snapshot=1,
        run="r",
        ts=1,
    )
