"""The engine loop's share of every test run: lives that follow from fixed seeds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from loop import live

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof


@pytest.mark.parametrize("seed", [5, 2])
def test_a_random_life_is_that_of_its_queries(bench: Workbench, seed: int) -> None:
    counts = live(bench, seed, models=5, steps=2)
    assert counts["refreshes"] >= 5, counts
