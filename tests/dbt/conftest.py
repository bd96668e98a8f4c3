"""The real dbt, for the tests that start it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt_lives import Life
from dbt_shop import NOWHERE, Shop, dbt_executable, session_target, thrift_target
from thrift_servers import ThriftServer

from sqb.spark.settings import SparkSettings

#: The targets of the profile, with their schemas.
_SCHEMAS = {"dev": "shop", "prod": "{{ env_var('SHOP_SCHEMA', 'prod') }}"}


@pytest.fixture(scope="session", autouse=True)
def _hears_signals() -> None:
    """What a shell starts in the background ignores Ctrl-C, what nohup starts the end of the
    terminal; and so would what those start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def dbt() -> Path:
    """A dbt with dbt-spark."""
    return dbt_executable()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """The sample project, where nothing can be built."""
    return Shop(tmp_path, {"nowhere": thrift_target(NOWHERE)})


@pytest.fixture(scope="session", params=["plain", "iceberg"])
def thrift_server(
    request: pytest.FixtureRequest,
    dbt: Path,  # noqa: ARG001 - without one nobody can speak to the server
    tmp_path_factory: pytest.TempPathFactory,
    jars: list[Path],
) -> Iterator[ThriftServer]:
    """A Spark thrift server of each kind in turn; a test that wants one kind names it.

    ``@pytest.mark.parametrize("thrift_server", ["plain"], indirect=True)``
    """
    folder = tmp_path_factory.mktemp(f"thrift-{request.param}")
    with ThriftServer(request.param, folder, jars) as server:
        yield server


@pytest.fixture(scope="module")
def iceberg_life(
    dbt: Path, tmp_path_factory: pytest.TempPathFactory, jars: list[Path]
) -> Iterator[Life]:
    """The sample project on an Iceberg catalog that sqb reads by itself.

    ``SQB_TEST_DBT_METHOD`` says how dbt connects: ``thrift`` (default) or ``session``.
    """
    folder = tmp_path_factory.mktemp("life")
    if os.environ.get("SQB_TEST_DBT_METHOD", "thrift") == "session":
        lake = folder / "lake"
        lake.mkdir()
        uri = f"sqlite:///{lake / 'catalog.db'}"
        settings = SparkSettings("lake", uri, str(lake), jars=tuple(map(str, jars)))
        targets = {name: session_target(settings, schema) for name, schema in _SCHEMAS.items()}
        yield Life(Shop(folder, targets), dbt, uri, str(lake))
        return
    with ThriftServer("iceberg", folder / "server", jars) as server:
        shop = Shop(folder, {name: server.target(schema) for name, schema in _SCHEMAS.items()})
        # the settings of the server are those of this machine's Spark
        shop.environ["SPARK_CONF_DIR"] = str(server.conf_folder)
        yield Life(shop, dbt, server.uri, str(server.warehouse))
