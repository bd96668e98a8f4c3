"""One real Spark for the whole run, on a lake in a temporary folder.

``SQB_TEST_CATALOG`` says which catalog the lake has: sqlite (the default), postgres or rest, and
``SQB_TEST_PUBLISH`` what the REST server allows: alias (the default), branch or replace.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from proxy import RULES, proxy
from servers import Postgres, postgres, rest_catalog

from sqb.spark.jars import drivers_of, resolve_jars
from sqb.spark.session import SparkSettings, start_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def jars() -> list[Path]:
    """The default jars, fetched into the user's cache if they are not there."""
    return resolve_jars((), (), environ=os.environ, progress=sys.stderr)


@pytest.fixture(scope="session")
def catalog_kind() -> str:
    """The catalog that this run of the suite works on."""
    return os.environ.get("SQB_TEST_CATALOG", "sqlite")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    """A real PostgreSQL, started for the first test that asks."""
    with postgres() as server:
        yield server


@pytest.fixture(scope="session")
def rest_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tables of ``rest_server`` lie."""
    return tmp_path_factory.mktemp("rest")


@pytest.fixture(scope="session")
def rest_server(rest_folder: Path) -> Iterator[str]:
    """The address of a real REST catalog, started for the first test that asks."""
    with rest_catalog(rest_folder) as address:
        yield address


@pytest.fixture(scope="session")
def rest_address(rest_server: str) -> Iterator[str]:
    """The REST catalog as ``SQB_TEST_PUBLISH`` wants it."""
    rule = RULES[os.environ.get("SQB_TEST_PUBLISH", "alias")]
    if rule is None:
        yield rest_server
        return
    with proxy(rest_server, rule) as address:
        yield address


@pytest.fixture(scope="session")
def spark_settings(
    tmp_path_factory: pytest.TempPathFactory,
    jars: list[Path],
    catalog_kind: str,
    request: pytest.FixtureRequest,
) -> SparkSettings:
    """The lake that ``spark`` opens; its catalog can be opened without a JVM too."""
    lake = tmp_path_factory.mktemp("lake")
    kind, uri, warehouse = "sql", f"sqlite:///{lake / 'catalog.db'}", str(lake)
    if catalog_kind == "postgres":
        uri = request.getfixturevalue("postgres_server").uri("lake")
        jars = resolve_jars(
            (), (), environ=os.environ, progress=sys.stderr, drivers=drivers_of(uri)
        )
    elif catalog_kind == "rest":
        kind, uri, warehouse = "rest", request.getfixturevalue("rest_address"), ""
    return SparkSettings(
        catalog_name="lake",
        catalog_type=kind,
        catalog_uri=uri,
        warehouse=warehouse,
        master="local[2]",
        jars=tuple(str(jar) for jar in jars),
        conf={"spark.sql.shuffle.partitions": "2"},
    )


@pytest.fixture(scope="session")
def spark_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the output of the shared session's JVM goes."""
    return tmp_path_factory.mktemp("log") / "spark.log"


@pytest.fixture(scope="session")
def spark(spark_settings: SparkSettings, spark_log: Path) -> Iterator[SparkSession]:
    """The session that all tests share. Use a schema of your own, and leave its settings alone."""
    session = start_session(
        spark_settings, log_file=spark_log, app_name="sqb tests", environ=os.environ
    )
    gateway = session.sparkContext._gateway
    assert gateway is not None
    yield session
    stop_session(session)
    assert gateway.proc.poll() is not None, "the JVM outlived its session"
