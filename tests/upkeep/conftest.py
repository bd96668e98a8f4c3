"""A small lake for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from small_lakes import SmallLake


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[SmallLake]:
    made = SmallLake(tmp_path)
    yield made
    made.close()
