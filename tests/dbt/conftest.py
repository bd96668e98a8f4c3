"""The real dbt, for the tests that start it."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt_shop import NOWHERE, Shop, dbt_executable, thrift_target


@pytest.fixture(scope="session")
def dbt() -> Path:
    """A dbt with dbt-spark."""
    return dbt_executable()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """The sample project, where nothing can be built."""
    return Shop(tmp_path, {"nowhere": thrift_target(NOWHERE)})
