"""One real Spark for the whole run, on an embedded lake in a temporary folder.

``SQB_TEST_SPARK`` says which: ``local`` (the default), ``connect`` (a Spark Connect server of its
own) or ``cluster`` (a standalone master with two workers on this machine).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from clusters import Cluster

from sqb.spark.jars import resolve_jars
from sqb.spark.server import ConnectServer
from sqb.spark.session import SparkSettings, start_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Builds of the tests leave no work behind, and find none that another run left.
os.environ["SQB_NO_CLASS_ARCHIVE"] = "1"


def other_catalogs(folder: Path) -> dict[str, str]:
    """Two catalogs beside the lake: ``other`` is Iceberg too, ``app`` a database of someone."""
    other, app = "spark.sql.catalog.other", "spark.sql.catalog.app"
    return {
        other: "org.apache.iceberg.spark.SparkCatalog",
        f"{other}.type": "jdbc",
        f"{other}.uri": f"jdbc:sqlite:{folder / 'other.db'}",
        f"{other}.jdbc.schema-version": "V1",
        f"{other}.warehouse": str(folder / "other"),
        app: "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
        f"{app}.url": f"jdbc:sqlite:{folder / 'app.db'}",
        f"{app}.driver": "org.sqlite.JDBC",
    }


@pytest.fixture(scope="session")
def jars() -> list[Path]:
    """The default jars, fetched into the user's cache if they are not there."""
    return resolve_jars((), (), environ=os.environ, progress=sys.stderr)


@pytest.fixture(scope="session")
def spark_settings(tmp_path_factory: pytest.TempPathFactory, jars: list[Path]) -> SparkSettings:
    """The lake that ``spark`` opens; its catalog can be opened without a JVM too."""
    lake = tmp_path_factory.mktemp("lake")
    return SparkSettings(
        catalog_name="lake",
        catalog_uri=f"sqlite:///{lake / 'catalog.db'}",
        warehouse=str(lake),
        master="local[2]",
        jars=tuple(str(jar) for jar in jars),
        conf={"spark.sql.shuffle.partitions": "2", **other_catalogs(lake)},
    )


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the output of the shared session's JVM goes."""
    return tmp_path_factory.mktemp("log") / "spark.log"


@pytest.fixture(scope="session")
def spark_kind() -> str:
    """Which Spark the tests run on."""
    kind = os.environ.get("SQB_TEST_SPARK", "local")
    assert kind in {"local", "connect", "cluster"}, f"SQB_TEST_SPARK={kind}"
    return kind


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A standalone master and two workers."""
    with Cluster(tmp_path_factory.mktemp("cluster"), os.environ) as running:
        yield running


@pytest.fixture(scope="session")
def spark(
    spark_kind: str,
    spark_settings: SparkSettings,
    spark_log: Path,
    request: pytest.FixtureRequest,
) -> Iterator[SparkSession]:
    """The session that all tests share. Use a schema of your own, and leave its settings alone."""
    settings, server = spark_settings, None
    if spark_kind == "cluster":
        master = request.getfixturevalue("cluster").master
        settings = msgspec.structs.replace(settings, master=master)
    elif spark_kind == "connect":
        server = ConnectServer(
            settings, log_file=spark_log, app_name="sqb tests", environ=os.environ
        )
        server.wait()
        settings = msgspec.structs.replace(settings, remote=server.remote)
        # for processes that the tests start
        os.environ["SQB_TEST_REMOTE"] = server.remote
    session = start_session(settings, log_file=spark_log, app_name="sqb tests", environ=os.environ)
    gateway = None if server else session.sparkContext._gateway
    yield session
    stop_session(session)
    if server is not None:
        server.stop()
    if gateway is not None:
        assert gateway.proc.poll() is not None, "the JVM outlived its session"
