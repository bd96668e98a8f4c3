from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sqb.errors import SqbError
from sqb.lake.catalog import CommitConflict, Drop, Head, Point, SqlCatalog
from sqb.lake.iceberg import open_iceberg


def file_of(lake: SqlCatalog) -> Path:
    """The file of a catalog on SQLite; elsewhere the test has no object."""
    if lake.path is None:
        pytest.skip("about the file of SQLite")
    return lake.path


def new(name: str, location: str = "/m/0", kind: Any = "table") -> Point:
    return Point("db", name, kind, location, expected=None)


def test_reading_a_catalog_that_is_not_there_creates_nothing(lake: SqlCatalog) -> None:
    assert lake.heads() == {}
    assert lake.head("db", "t") is None
    assert lake.namespaces() == []
    assert lake.namespace_properties("db") == {}
    assert not file_of(lake).parent.exists()


def test_an_empty_file_is_an_empty_catalog(lake: SqlCatalog) -> None:
    file_of(lake).parent.mkdir()
    file_of(lake).touch()
    assert lake.heads() == {}


def test_point_swap_and_drop(lake: SqlCatalog) -> None:
    lake.commit([new("a"), new("v", "/m/v", "view")])
    a = Head("db", "a", "table", "/m/0")
    assert lake.heads() == {("db", "a"): a, ("db", "v"): Head("db", "v", "view", "/m/v")}
    assert lake.heads(["other"]) == {}
    assert set(lake.heads(["db", "other"])) == {("db", "a"), ("db", "v")}
    lake.commit([Point("db", "a", "view", "/m/1", expected=a)])
    now = Head("db", "a", "view", "/m/1")
    assert lake.head("db", "a") == now
    with sqlite3.connect(file_of(lake)) as db:
        sql = "SELECT previous_metadata_location FROM iceberg_tables WHERE table_name = 'a'"
        assert db.execute(sql).fetchone() == ("/m/0",)
    db.close()
    lake.commit([Drop("db", "a", now)])
    assert lake.head("db", "a") is None


HEAD = Head("db", "a", "table", "/m/0")


@pytest.mark.parametrize(
    "change",
    [
        new("a"),
        Point("db", "a", "table", "/m/2", expected=Head("db", "a", "table", "/m/1")),
        Point("db", "a", "table", "/m/2", expected=Head("db", "a", "view", "/m/0")),
        Point("db", "b", "table", "/m/2", expected=HEAD),
        Drop("db", "a", Head("db", "a", "table", "/m/1")),
        Drop("db", "a", Head("db", "a", "view", "/m/0")),
    ],
)
def test_one_miss_undoes_the_whole_commit(lake: SqlCatalog, change: Point | Drop) -> None:
    lake.commit([new("a")])
    with pytest.raises(CommitConflict) as caught:
        lake.commit([new("other"), change])
    assert caught.value.change == change
    assert lake.heads() == {("db", "a"): HEAD}


def test_names_with_quotes_are_names(lake: SqlCatalog) -> None:
    lake.commit([new("it's; DROP")])
    assert lake.head("db", "it's; DROP") is not None


def test_paths_with_uri_signs_are_paths(tmp_path: Path) -> None:
    catalog = SqlCatalog("lake", f"sqlite:///{tmp_path}/a?b#c%20/catalog.db", str(tmp_path))
    catalog.ensure_namespace("db")
    assert (tmp_path / "a?b#c%20" / "catalog.db").exists()
    assert catalog.namespaces() == ["db"]


def test_namespace_properties_are_set_replaced_and_removed(lake: SqlCatalog) -> None:
    lake.ensure_namespace("db")
    lake.ensure_namespace("db")
    lake.set_namespace_property("db", "k", "1")
    lake.set_namespace_property("db", "k", "2")
    assert lake.namespace_properties("db") == {"exists": "true", "k": "2"}
    lake.remove_namespace_property("db", "k")
    lake.remove_namespace_property("db", "k")
    assert lake.namespace_properties("db") == {"exists": "true"}
    lake.commit([Point("other", "t", "table", "/m", expected=None)])
    assert lake.namespaces() == ["db", "other"]


def test_pyiceberg_works_on_a_catalog_that_sqb_made(
    lake: SqlCatalog, ice: Any, target: Head
) -> None:
    assert ice.list_namespaces() == [("db",)]
    assert ice.list_tables("db") == [("db", "t")]
    assert ice.load_table("db.t").metadata_location == target.location
    lake.commit([new("v", "/m/v", "view")])
    assert ice.list_tables("db") == [("db", "t")]


def test_a_catalog_of_the_first_schema_version_is_read_and_upgraded(lake: SqlCatalog) -> None:
    file_of(lake).parent.mkdir()
    with sqlite3.connect(file_of(lake)) as db:
        db.execute(
            "CREATE TABLE iceberg_tables(catalog_name VARCHAR(255) NOT NULL,table_namespace"
            " VARCHAR(255) NOT NULL,table_name VARCHAR(255) NOT NULL,metadata_location"
            " VARCHAR(1000),previous_metadata_location VARCHAR(1000),"
            "PRIMARY KEY (catalog_name, table_namespace, table_name))"
        )
        db.execute("INSERT INTO iceberg_tables VALUES ('lake', 'db', 'a', '/m/0', NULL)")
    db.close()
    assert lake.heads() == {("db", "a"): HEAD}
    lake.commit([Point("db", "a", "table", "/m/1", expected=HEAD)])
    assert lake.head("db", "a") == Head("db", "a", "table", "/m/1")


def test_a_lake_that_was_deleted_meanwhile_is_made_anew(lake: SqlCatalog) -> None:
    lake.ensure_namespace("db")
    file_of(lake).unlink()
    lake.ensure_namespace("db")
    assert lake.namespaces() == ["db"]


@pytest.mark.parametrize("content", [b"not a database at all" * 100, None])
def test_a_file_that_is_no_database_is_an_error_with_help(
    lake: SqlCatalog, content: bytes | None
) -> None:
    file_of(lake).parent.mkdir()
    if content is None:
        file_of(lake).mkdir()
    else:
        file_of(lake).write_bytes(content)
    for call in (lake.heads, lambda: lake.ensure_namespace("db")):
        with pytest.raises(SqbError) as caught:
            call()
        assert caught.value.code == "L001"
        assert caught.value.help


@pytest.mark.parametrize("folder", ["a_file", "a_file/below", "x" * 300])
def test_a_place_that_no_file_can_have_is_an_error_and_no_empty_lake(
    tmp_path: Path, folder: str
) -> None:
    (tmp_path / "a_file").touch()
    lake = SqlCatalog("lake", f"sqlite:///{tmp_path}/{folder}/catalog.db", str(tmp_path))
    for call in (lake.heads, lambda: lake.ensure_namespace("db")):
        with pytest.raises(SqbError) as caught:
            call()
        assert caught.value.code == "L001"


@pytest.mark.parametrize("uri", ["mysql://h/db", "sqlite:///", "http://h"])
def test_other_catalogs_are_refused(uri: str) -> None:
    with pytest.raises(SqbError) as caught:
        SqlCatalog("lake", uri, "/w")
    assert caught.value.code == "C007"


def test_of_many_threads_exactly_one_wins_each_swap(lake: SqlCatalog) -> None:
    lake.commit([new("a")])
    wins: list[str] = []

    def race(me: int) -> None:
        for _ in range(10):
            head = lake.head("db", "a")
            assert head is not None
            location = f"{head.location}|{me}"
            try:
                lake.commit([Point("db", "a", "table", location, expected=head)])
            except CommitConflict:
                continue
            wins.append(location)

    threads = [threading.Thread(target=race, args=[i]) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = lake.head("db", "a")
    assert last is not None
    # Each win extends the text of the one before it: a lost update would leave one out.
    assert last.location.count("|") == len(wins)


def test_of_two_processes_exactly_one_wins(lake: SqlCatalog) -> None:
    lake.commit([new("a")])
    script = (
        "import sys; from sqb.lake.catalog import *\n"
        "lake = SqlCatalog('lake', sys.argv[1], '/w'); wins = 0\n"
        "for i in range(20):\n"
        "    head = lake.head('db', 'a')\n"
        "    try:\n"
        "        lake.commit([Point('db', 'a', 'table', head.location + '|', expected=head)])\n"
        "        wins += 1\n"
        "    except CommitConflict: pass\n"
        "print(wins)"
    )
    command = [sys.executable, "-c", script, lake.uri]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    wins = sum(int(run.communicate(timeout=60)[0]) for run in runs)
    last = lake.head("db", "a")
    assert last is not None
    assert last.location == "/m/0" + "|" * wins


def test_any_number_of_heads_is_one_select(
    lake: SqlCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.commit([new(f"t{i}", f"/warehouse/db/t{i}/metadata/0.json") for i in range(2000)])
    asked: list[str] = []
    read = lake._database.read

    def counted(sql: str, values: Sequence[str]) -> list[tuple[object, ...]]:
        asked.append(sql)
        return read(sql, values)

    monkeypatch.setattr(lake._database, "read", counted)
    assert len(lake.heads(["db"])) == 2000
    assert len(asked) == 1


def test_a_catalog_that_many_open_for_the_first_time_is_opened_by_all(tmp_path: Path) -> None:
    """pyiceberg makes the tables where they are missing, and of two that do so one is late."""
    for turn in range(5):
        uri, ready = f"sqlite:///{tmp_path / f'{turn}.db'}", threading.Barrier(8)

        def opened(uri: str = uri, ready: threading.Barrier = ready) -> list[Any]:
            ready.wait()
            return open_iceberg("lake", uri, str(tmp_path)).list_namespaces()

        with ThreadPoolExecutor(8) as pool:
            assert [found.result() for found in [pool.submit(opened) for _ in range(8)]] == [[]] * 8
