"""Every case of ``cases/``: its table is what its query gives, by a strategy that it allows.

By default a share of the cases is refreshed once. ``SQB_TEST_PROOF=all`` takes them all through
every step, which takes some minutes.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from proof import Book, Case, read_cases, read_steps

if TYPE_CHECKING:
    from conftest import Workbench

ALL = os.environ.get("SQB_TEST_PROOF") == "all"
CASES = [case for case in read_cases() if ALL or case.always]


@pytest.fixture(scope="module")
def book(shared_bench: Workbench) -> Book:
    """All cases, built and taken through the steps."""
    book = Book(shared_bench, CASES)
    book.write()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SQB_ROW_ERRORS", "raise")
        for number, statements in enumerate(read_steps().values()):
            if not ALL and number > 2:
                break
            book.happen(statements)
            book.build(number, only=None if ALL or number == 0 else _turn(number))
    return book


def _turn(number: int) -> list[str]:
    """The cases of which a step is told most: rows that come, where they can be added as such."""
    return [case.name for case in CASES if ("append" in case.ways(1)) == (number == 1)]


@pytest.mark.parametrize("case", CASES, ids=[f"{c.name} {c.title}" for c in CASES])
def test_a_refresh_by_rows_is_a_rebuild(book: Book, case: Case) -> None:
    assert book.wrong[case.name] == []
    told = book.ways[case.name]
    assert len(told) == (len(read_steps()) if ALL else 2)
    for number, way in told.items():
        assert way in case.ways(number), f"step {number}: {way}"


def test_every_strategy_is_among_the_cases() -> None:
    """What the default share leaves out would be proved by no one on most days."""
    seen = {way for case in CASES for ways in case.expected for way in ways}
    assert {"append", "group_merge", "affected_key", "bag_merge"} <= seen
    assert len({way for way in seen if way.startswith("full:")}) > 3
