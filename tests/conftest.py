"""One real Spark for the whole process, on a lake in a temporary folder.

``SQB_TEST_SPARK`` says which: ``local`` (the default), ``connect`` (a Spark Connect server of its
own) or ``cluster`` (a standalone master with two workers on this machine). ``SQB_TEST_CATALOG``
says which catalog the lake has: sqlite (the default), postgres or rest, and ``SQB_TEST_PUBLISH``
what the REST server allows: alias (the default), branch or replace.
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
from proxy import no_branches, no_second_name, proxy
from servers import Postgres, free_port, postgres, rest_catalog

from sqb.spark.jars import drivers_of, resolve_jars
from sqb.spark.server import ConnectServer
from sqb.spark.session import SparkSettings, spark_conf, start_session, stop_session

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


#: Beside ``lake`` the shared session knows these catalogs; their servers start when a test asks.
OTHERS = ("pglake", "restlake", "branchlake", "replacelake")


@pytest.fixture(scope="session")
def jars() -> list[Path]:
    """The jars of all catalogs, fetched into the user's cache if they are not there."""
    drivers = drivers_of("postgresql://")
    return resolve_jars((), (), environ=os.environ, progress=sys.stderr, drivers=drivers)


@pytest.fixture(scope="session")
def ports() -> dict[str, int]:
    """Known before the servers run, for Spark is told its catalogs when it starts."""
    return {name: free_port() for name in OTHERS}


@pytest.fixture(scope="session")
def catalog_kind() -> str:
    """The catalog that this run of the suite works on."""
    return os.environ.get("SQB_TEST_CATALOG", "sqlite")


@pytest.fixture(scope="session")
def postgres_server(ports: dict[str, int]) -> Iterator[Postgres]:
    """A real PostgreSQL, started for the first test that asks."""
    with postgres(ports["pglake"]) as server:
        server.uri("pglake")
        yield server


@pytest.fixture(scope="session")
def rest_server(tmp_path_factory: pytest.TempPathFactory, ports: dict[str, int]) -> Iterator[str]:
    """The address of a real REST catalog, started for the first test that asks."""
    with rest_catalog(tmp_path_factory.mktemp("rest"), ports["restlake"]) as address:
        yield address


@pytest.fixture(scope="session")
def branch_server(rest_server: str, ports: dict[str, int]) -> Iterator[str]:
    """The same server as one that allows one table at a location."""
    with proxy(rest_server, no_second_name, ports["branchlake"]) as address:
        yield address


@pytest.fixture(scope="session")
def replace_server(rest_server: str, ports: dict[str, int]) -> Iterator[str]:
    """The same server as one that allows no branches either."""
    with proxy(rest_server, no_branches, ports["replacelake"]) as address:
        yield address


@pytest.fixture(scope="session")
def settings_of_others(
    tmp_path_factory: pytest.TempPathFactory, ports: dict[str, int]
) -> dict[str, SparkSettings]:
    """How to open each of ``OTHERS``."""
    host = "127.0.0.1"
    out = {
        name: SparkSettings(name, f"http://{host}:{ports[name]}", "", catalog_type="rest")
        for name in OTHERS[1:]
    }
    address = f"postgresql://sqb:hunter2@{host}:{ports['pglake']}/pglake"
    out["pglake"] = SparkSettings("pglake", address, str(tmp_path_factory.mktemp("pglake")))
    return out


@pytest.fixture(scope="session")
def spark_settings(
    tmp_path_factory: pytest.TempPathFactory,
    jars: list[Path],
    catalog_kind: str,
    settings_of_others: dict[str, SparkSettings],
    request: pytest.FixtureRequest,
) -> SparkSettings:
    """The lake that ``spark`` opens; its catalog can be opened without a JVM too."""
    lake = tmp_path_factory.mktemp("lake")
    kind, uri, warehouse = "sql", f"sqlite:///{lake / 'catalog.db'}", str(lake)
    if catalog_kind == "postgres":
        uri = request.getfixturevalue("postgres_server").uri("lake")
    elif catalog_kind == "rest":
        allowed = os.environ.get("SQB_TEST_PUBLISH", "alias")
        server = {"alias": "rest_server"}.get(allowed, f"{allowed}_server")
        kind, uri, warehouse = "rest", request.getfixturevalue(server), ""
    conf = {"spark.sql.shuffle.partitions": "2"}
    for name, other in settings_of_others.items():
        prefix = f"spark.sql.catalog.{name}"
        conf |= {k: v for k, v in spark_conf(other, ()).items() if k.startswith(prefix)}
    return SparkSettings(
        catalog_name="lake",
        catalog_type=kind,
        catalog_uri=uri,
        warehouse=warehouse,
        master="local[2]",
        jars=tuple(str(jar) for jar in jars),
        conf=conf | other_catalogs(lake),
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
