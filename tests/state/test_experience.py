"""What the runs of a table have shown: ways, what was foreseen, whether the choice was right."""

from __future__ import annotations

import pytest
from records import STAMP, of

from sqb.state.experience import Way, experience, runs_of
from sqb.state.record import Spent, decode, encode, remembered

FULL = Spent("r1", "full", 60.0, bytes=100)
ROWS = Spent("r2", "append", 5.0, plain=1.0, guess=4.0, full=50.0, bytes=100)
CHEAPER = Spent("r3", "full", 2.0, guess=2.0, full=2.0, bytes=100, code="CHEAPER_TO_REBUILD")


@pytest.mark.parametrize(
    ("runs", "known", "right", "regret"),
    [
        ([FULL], 0, 0, 0.0),
        ([FULL, ROWS], 1, 1, 0.0),
        # the rows were thought to be cheaper and were not
        ([Spent("r1", "full", 3.0, bytes=100), ROWS], 1, 0, 2.0),
        # the inputs have doubled since the rebuild
        ([Spent("r1", "full", 3.0, bytes=50), ROWS], 1, 1, 0.0),
        # a rebuild that was chosen is judged by the nearest refresh
        ([ROWS, CHEAPER], 2, 1, 3.0),
        ([Spent("r0", "append", 1.0, guess=1.5, full=2.0, bytes=100), CHEAPER], 2, 1, 1.0),
        # one that was forced or had to be is no choice; neither is doing nothing
        ([FULL, Spent("r2", "skip", 0.1)], 0, 0, 0.0),
        # what was given up on the way to a rebuild is regretted
        ([ROWS, Spent("r3", "full", 9.0, bytes=100, code="TOO_MANY_KEYS", lost=4.0)], 2, 1, 8.0),
    ],
)
def test_whether_choices_were_right(
    runs: list[Spent], known: int, right: int, regret: float
) -> None:
    found = experience("m", runs)
    assert (found.known, found.right, found.regret) == (known, right, regret)


def test_ways_are_told_by_their_medians() -> None:
    runs = [FULL, *(Spent(f"r{i}", "append", float(i), guess=2.0 * i) for i in (1, 3, 8))]
    assert experience("m", runs).ways == (Way("append", 3, 3.0, 6.0), Way("full", 1, 60.0, None))


def test_a_record_that_was_only_amended_is_no_run() -> None:
    first = of(STAMP, spent=(FULL,))
    amended = of(STAMP, run="r9", ts=300, spent=(FULL,))
    assert runs_of([first, amended]) == {"m": [FULL]}


def test_a_record_remembers_the_last_runs_of_each_way() -> None:
    runs: tuple[Spent, ...] = ()
    for number in range(20):
        runs = remembered(runs, Spent(f"r{number}", "append" if number else "full", 1.0))
    assert [run.run for run in runs] == ["r0", *(f"r{number}" for number in range(14, 20))]


def test_runs_survive_the_stamp() -> None:
    record = of(STAMP, spent=(FULL, ROWS), refreshes=1)
    assert decode(encode(record)) == record
