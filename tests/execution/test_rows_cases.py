"""Every case of ``cases/``: its table is what its query gives, by a strategy that it allows.

By default a share of the cases is refreshed once. ``SQB_TEST_PROOF=all`` takes them all through
every step, once by the first strategy that applies and once by the last.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from proof import BY_ROWS, Book, Case, read_cases, read_steps

from sqb.execution import rows
from sqb.refresh.strategies import choose

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.refresh.script import Script
    from sqb.refresh.strategies import Choice, Situation

pytestmark = pytest.mark.proof

ALL = os.environ.get("SQB_TEST_PROOF") == "all"
CASES = [case for case in read_cases() if ALL or case.turn]


def last_first(situation: Situation, script: Script) -> Choice:
    """The ways that apply in the other order."""
    choice = choose(situation, script)
    return msgspec.structs.replace(choice, options=choice.options[::-1])


@pytest.fixture(scope="module", params=["first", "last"] if ALL else ["first"])
def book(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    shared_bench: Workbench,
) -> Book:
    """All cases, built and taken through the steps."""
    bench, last = shared_bench, request.param == "last"
    if last:
        root = tmp_path_factory.mktemp("last")
        bench = type(bench)(root, bench.spark, bench.settings)
    book = Book(bench, CASES, last=last)
    book.write()
    with pytest.MonkeyPatch.context() as patch:
        if last:
            patch.setattr(rows, "choose", last_first)
        turns = {n: [case.name for case in CASES if case.turn == n] for n in (1, 2)}
        for number, statements in enumerate(read_steps().values()):
            if not ALL and number > 2:
                break
            book.happen(statements)
            book.build(number, only=None if ALL or number == 0 else turns[number])
    return book


@pytest.mark.parametrize("case", CASES, ids=[f"{c.name} {c.title}" for c in CASES])
def test_a_refresh_by_rows_is_a_rebuild(book: Book, case: Case) -> None:
    assert book.wrong[case.name] == []
    told = book.ways[case.name]
    assert len(told) == (len(read_steps()) if ALL else 2)
    for number, way in told.items():
        right = case.ways(number)
        if book.last and right & BY_ROWS:
            right |= BY_ROWS
        assert way in right, f"step {number}: {way}"


def test_every_strategy_is_among_the_cases() -> None:
    """What the default share leaves out would be proved by no one on most days."""
    seen = {way for case in CASES for ways in case.expected for way in ways}
    assert {"append", "group_merge", "affected_key"} <= seen
    assert len({way for way in seen if way.startswith("full:")}) > 3
