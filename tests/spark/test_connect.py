"""Spark Connect: addresses, servers that are not there or do not fit, sessions on one that is."""

from __future__ import annotations

import atexit
import gc
import os
import socket
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from sqb.errors import SqbError
from sqb.spark.connect import open_remote, parse_address
from sqb.spark.kinds import forget, is_connect, keep, release, sibling
from sqb.spark.session import (
    SessionPool,
    SparkSettings,
    add_tag,
    interrupt,
    name_jobs,
    start_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("remote", "host", "port", "parameters"),
    [
        ("sc://h", "h", 15002, {}),
        ("sc://h:7/", "h", 7, {}),
        ("sc://h/;use_ssl=true;token=a%3Db", "h", 15002, {"use_ssl": "true", "token": "a=b"}),
    ],
)
def test_an_address_has_host_port_and_parameters(
    remote: str, host: str, port: int, parameters: dict[str, str]
) -> None:
    address = parse_address(remote)
    assert (address.host, address.port, address.parameters) == (host, port, parameters)


@pytest.mark.parametrize("remote", ["spark://h:7077", "sc://", "sc://h:no", "sc://h/x", "h:15002"])
def test_another_address_is_refused_without_showing_it(remote: str) -> None:
    with pytest.raises(SqbError) as caught:
        parse_address(f"{remote}/;token=hunter2" if remote != "sc://h/x" else remote)
    assert caught.value.code == "C004"
    assert "hunter2" not in str(caught.value.to_json())


def test_a_server_that_is_not_there_is_told_at_once_and_without_its_token() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(SqbError, match="can't be reached") as caught:
        open_remote(f"sc://127.0.0.1:{port}/;token=hunter2")
    assert (caught.value.code, caught.value.exit_code) == ("J005", 1)
    assert "hunter2" not in str(caught.value.to_json())


on_connect = pytest.mark.skipif(
    os.environ.get("SQB_TEST_SPARK") != "connect", reason="make test-cluster starts a server"
)


@on_connect
@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"catalog_name": "elsewhere"}, "spark.sql.catalog.elsewhere.cache-enabled=false"),
        ({"catalog_uri": "sqlite:////else/where.db"}, "uri=jdbc:sqlite:/else/where.db"),
    ],
)
def test_a_server_without_the_lakes_settings_is_refused_and_told_what_it_lacks(
    spark: SparkSession,
    spark_settings: SparkSettings,
    tmp_path: Path,
    change: dict[str, str],
    missing: str,
) -> None:
    assert is_connect(spark)
    remote = os.environ["SQB_TEST_REMOTE"]
    settings = msgspec.structs.replace(spark_settings, remote=remote, **change)
    with pytest.raises(SqbError) as caught:
        start_session(settings, log_file=tmp_path / "log", app_name="x", environ=os.environ)
    assert caught.value.code == "J004"
    assert caught.value.message.startswith("the Spark Connect server lacks settings: ")
    assert missing in caught.value.message


@on_connect
def test_a_wrong_token_is_refused_and_not_shown(spark: SparkSession) -> None:
    assert is_connect(spark)
    address = os.environ["SQB_TEST_REMOTE"].partition("token=")[0]
    with pytest.raises(SqbError, match="token") as caught:
        open_remote(f"{address}token=hunter2")
    assert caught.value.code == "J005"
    assert "hunter2" not in str(caught.value.to_json())


@on_connect
def test_a_sibling_leaves_nothing_to_do_when_python_ends(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: set[Any] = set()
    monkeypatch.setattr(atexit, "register", left.add)
    monkeypatch.setattr(atexit, "unregister", left.discard)
    beside = sibling(spark)
    assert left == set()
    release(beside)


@on_connect
def test_rows_are_kept_by_the_session_that_computed_them(spark: SparkSession) -> None:
    beside = sibling(spark)
    try:
        rows = keep(beside.sql("SELECT uuid() AS id FROM range(3)"))
        found = rows.where("id IS NOT NULL").collect()
        assert len(found) == 3
        assert rows.collect() == found, "they are not computed again"
        del rows
        gc.collect()
        rows = keep(beside.sql("SELECT 1 AS one"))
        forget(rows)
        with pytest.raises(Exception, match="No DataFrame with id"):
            rows.collect()
    finally:
        release(beside)


@on_connect
def test_siblings_on_a_server_are_private_and_can_be_interrupted(spark: SparkSession) -> None:
    pool = SessionPool(spark, 2, {"spark.sql.session.timeZone": "Asia/Tokyo"})
    outcome: list[str] = []
    begun = threading.Event()
    sessions: list[SparkSession] = []

    def work() -> None:
        with pool.acquire() as session:
            name_jobs(session, "the long, one")
            add_tag(session, "long")
            sessions.append(session)
            begun.set()
            try:
                session.sql(
                    "SELECT sum(hash(a.id, b.id)) FROM range(99999999) a CROSS JOIN range(99999) b"
                ).collect()
            except Exception as error:  # noqa: BLE001 - whatever Spark raises is the outcome
                outcome.append(str(error))

    with pool.acquire() as one:
        one.sql("SELECT 2 AS x").createOrReplaceTempView("mine")
        thread = threading.Thread(target=work)
        thread.start()
        assert begun.wait(60)
        assert not sessions[0].catalog.tableExists("mine")
        assert one.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        interrupt(one, "long")
        thread.join(2)
        assert thread.is_alive(), "another session's jobs were interrupted"
        while thread.is_alive():
            interrupt(sessions[0], "long")
            thread.join(0.5)
    assert "CANCEL" in outcome[0].upper()
    with pool.acquire() as again:
        assert again.getTags() == set()
    pool.close()
    assert spark.sql("SELECT 1").collect()[0][0] == 1


@on_connect
@pytest.mark.parametrize("ended", [True, False])
def test_the_garbage_collector_waits_for_no_call_of_another_session(
    spark: SparkSession, ended: bool
) -> None:
    """It runs in any thread, also in one that holds what those calls wait for."""
    from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator

    made = [open_remote(os.environ["SQB_TEST_REMOTE"]), sibling(spark)]
    for session in made:
        assert session.sql("SELECT 1").collect()[0][0] == 1
        if ended:
            release(session)
            assert cast("Any", session).is_stopped
    pool = ExecutePlanResponseReattachableIterator._get_or_create_release_thread_pool()
    answered = threading.Event()
    pool.submit(answered.wait)

    def collect() -> None:
        del made[:]
        gc.collect()

    collector = threading.Thread(target=collect)
    del session
    collector.start()
    collector.join(60)
    waits = collector.is_alive()
    answered.set()
    collector.join()
    assert not waits
