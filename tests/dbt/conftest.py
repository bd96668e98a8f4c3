"""The real dbt, for the tests that start it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt_shop import NOWHERE, Shop, dbt_executable, thrift_target
from thrift_servers import ThriftServer


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
