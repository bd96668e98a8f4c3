"""One real Spark for the whole run, on an embedded lake in a temporary folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqb.spark.jars import resolve_jars
from sqb.spark.session import SparkSettings, start_session, stop_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
