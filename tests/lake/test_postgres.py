"""What is PostgreSQL's own; ``SQB_TEST_CATALOG=postgres`` runs the lake's whole suite on it."""

from __future__ import annotations

import builtins
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from servers import Postgres

from sqb.errors import SqbError
from sqb.lake.catalog import CommitConflict, Drop, Head, Point, SqlCatalog
from sqb.lake.facts import FactsCache
from sqb.lake.iceberg import open_iceberg
from sqb.lake.publish import Overtaken
from sqb.lake.shape import Shape
from sqb.lake.sql_lake import SqlLake


@pytest.fixture
def lake(postgres_server: Postgres, tmp_path: Path, request: pytest.FixtureRequest) -> SqlLake:
    database = f"own{abs(hash(request.node.nodeid)):x}"
    return SqlLake("lake", postgres_server.uri(database), str(tmp_path))


def new(name: str, location: str = "/m/0") -> Point:
    return Point("db", name, "table", location, expected=None)


def test_rows_are_those_of_every_sql_catalog(lake: SqlLake) -> None:
    assert (lake.heads(), lake.namespaces(), lake.head("db", "a")) == ({}, [], None)
    lake.ensure_namespace("db")
    lake.ensure_namespace("db")
    for value in ("1", "2"):
        lake.set_namespace_property("db", "k", value)
    assert lake.namespace_properties("db") == {"exists": "true", "k": "2"}
    lake.remove_namespace_property("db", "k")
    lake.commit([new("a"), Point("db", "v", "view", "/m/v", expected=None)])
    a = Head("db", "a", "table", "/m/0")
    assert lake.heads(["db", "it's"]) == {("db", "a"): a, ("db", "v"): lake.head("db", "v")}
    assert lake.heads([]) == {}
    # All of a commit or nothing: the second change does not hold, so the first is not done.
    with pytest.raises(CommitConflict) as caught:
        lake.commit([Point("db", "a", "table", "/m/1", expected=a), new("v")])
    assert caught.value.change == new("v")
    assert lake.head("db", "a") == a
    lake.commit([Drop("db", "a", a)])
    assert lake.head("db", "a") is None
    assert "hunter2" not in repr(lake)


def test_no_connection_is_held_between_statements(lake: SqlLake) -> None:
    """A build mostly waits for Spark, and a server has a hundred connections for all."""
    import psycopg

    opened = open_iceberg("lake", lake.uri, lake.warehouse)
    opened.create_namespace("db")
    assert lake.namespaces() == ["db"]
    there = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    with psycopg.connect(lake.uri, autocommit=True) as db:
        # the server may still be at ending one
        counted = (db.execute(there).fetchone() for _ in range(2000))
        assert any(row == (1,) for row in counted)


def test_of_many_threads_exactly_one_wins_each_swap(lake: SqlLake) -> None:
    """Also the first moment, in which all of them find no tables and create them."""
    wins: list[str] = []
    trouble: list[BaseException] = []
    gate = threading.Barrier(4)

    def race(me: int) -> None:
        try:
            gate.wait()
            lake = SqlCatalog("lake", uri, "/w")
            lake.ensure_namespace("db")
            for _ in range(10):
                head = lake.head("db", "a")
                location = f"{head.location if head else ''}|{me}"
                try:
                    lake.commit([Point("db", "a", "table", location, expected=head)])
                except CommitConflict:
                    continue
                wins.append(location)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            trouble.append(error)

    uri = lake.uri
    threads = [threading.Thread(target=race, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert trouble == []
    last = lake.head("db", "a")
    assert last is not None
    # Each win extends the text of the one before it: a lost update would leave one out.
    assert last.location.count("|") == len(wins)


def test_commits_that_wait_for_each_other_are_done_one_after_the_other(lake: SqlLake) -> None:
    """Two commits on the same rows in opposite order: the database breaks the deadlock."""
    lake.commit([new("a"), new("b")])
    gate = threading.Barrier(2)
    results: list[object] = []

    def swap(names: tuple[str, str]) -> None:
        for turn in range(8):
            gate.wait()
            heads = [lake.head("db", name) for name in names]
            changes = [Point(h.namespace, h.name, "table", f"{h.location}{turn}", h)
                       for h in heads if h is not None]  # fmt: skip
            try:
                lake.commit(changes)
                results.append("done")
            except CommitConflict:
                results.append("lost")
            except BaseException as error:  # noqa: BLE001 - shown by the test
                results.append(error)

    threads = [threading.Thread(target=swap, args=[n]) for n in (("a", "b"), ("b", "a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results) <= {"done", "lost"}
    a, b = lake.head("db", "a"), lake.head("db", "b")
    assert a is not None
    assert b is not None
    assert a.location == b.location
    assert len(a.location) - len("/m/0") == results.count("done")


def test_staged_work_is_published_by_one_transaction(lake: SqlLake) -> None:
    import pyarrow as pa

    ice: Any = open_iceberg("lake", lake.uri, lake.warehouse)
    lake.ensure_namespace("db")
    facts = FactsCache(None, lake.warehouse)
    rows = pa.table({"id": pa.array([1], pa.int64())})
    for run in ("r0", "r1"):
        staged = lake.stage("db", "t", run, Shape())
        if staged.creates:
            name = f"{staged.namespace}.{staged.name}"
            ice.create_table(name, rows.schema, location=staged.location)
        ice.load_table((staged.namespace, staged.name)).append(rows)
        head = lake.publish_table(
            namespace="db", table="t", staged=staged, properties={},
            make_stamp=lambda found: json.dumps({"snapshot": found.snapshot_id}),
        )  # fmt: skip
        assert lake.heads() == {("db", "t"): head}
    assert len(ice.load_table("db.t").scan().to_arrow()) == 2
    staged = lake.stage("db", "t", "r2", Shape())
    ice.load_table("db.t").append(rows)
    with pytest.raises(Overtaken):
        lake.publish_table(
            namespace="db", table="t", staged=staged, properties={}, make_stamp=lambda _: "s"
        )
    lake.discard(staged, facts)
    assert lake.heads(["db__sqb_stage"]) == {}
    ice.close()


def test_what_is_wrong_with_the_address_is_said_without_the_password(
    postgres_server: Postgres,
) -> None:
    good = postgres_server.uri("good")
    cases = {
        good.replace("hunter2", "hunter3"): "password",
        f"{good}_missing": "create the database",
        good.replace(str(postgres_server.port), "9"): "server up",
    }
    for uri, said in cases.items():
        with pytest.raises(SqbError) as caught:
            SqlCatalog("lake", uri, "/w").heads()
        error = caught.value
        assert error.code == "L001"
        assert said in str(error.help)
        assert "hunter" not in f"{error.message}{error.help}"


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
def test_every_spelling_of_the_address_opens_the_same(
    postgres_server: Postgres, scheme: str
) -> None:
    uri = scheme + postgres_server.uri("spelled").removeprefix("postgresql")
    lake = SqlCatalog("lake", uri, "/w")
    lake.ensure_namespace(f"db_{len(scheme)}")
    ice: Any = open_iceberg("lake", uri, "/w")
    assert (f"db_{len(scheme)}",) in ice.list_namespaces()
    ice.close()


def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "psycopg":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(SqbError, match="psycopg") as caught:
        SqlCatalog("lake", "postgresql://h/d", "/w").heads()
    assert "sqb[postgres]" in str(caught.value.help)
