"""What the runs of a table have shown: which ways were taken, what they took, what was foreseen.

Whether a choice was right is known only where the other way was run too; its seconds are those of
the nearest such run, a rebuild's scaled by the bytes of its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from sqb.state.record import Record, Spent

#: Rebuilds that were chosen because they were thought to be cheaper.
_CHOSEN = frozenset({"CHEAPER_TO_REBUILD", "CHANGE_TOO_LARGE", "TOO_MANY_KEYS"})


class Way(msgspec.Struct, frozen=True):
    """All runs of one way: how many, and the medians of what they took and were thought to."""

    name: str
    runs: int
    seconds: float
    predicted: float | None


class Experience(msgspec.Struct, frozen=True):
    """One table. ``known`` runs can be judged, in ``right`` of them the cheaper way was foreseen;
    ``regret`` are the seconds that the cheaper way would have saved in all."""

    name: str
    ways: tuple[Way, ...]
    known: int
    right: int
    regret: float

    @property
    def accuracy(self) -> float | None:
        """The share of right choices; None where nothing can be judged."""
        return round(self.right / self.known, 3) if self.known else None


def runs_of(records: Iterable[Record]) -> dict[str, list[Spent]]:
    """Every run that records tell of, by node, oldest first.

    A record that was only amended repeats the run before it.
    """
    found: dict[str, dict[str, Spent]] = {}
    for record in records:
        if record.spent and record.spent[-1].run == record.run:
            found.setdefault(record.node, {})[record.run] = record.spent[-1]
    return {name: list(runs.values()) for name, runs in found.items()}


def experience(name: str, runs: Sequence[Spent]) -> Experience:
    """What the runs of one table have shown."""
    ways = []
    for way in sorted({run.way for run in runs}):
        own = [run for run in runs if run.way == way]
        guesses = [run.guess for run in own if run.guess is not None]
        took = round(median(run.seconds for run in own), 3)
        ways.append(Way(way, len(own), took, round(median(guesses), 3) if guesses else None))
    known = right = 0
    regret = 0.0
    for place, run in enumerate(runs):
        other = _other(runs, place)
        picked = _picked(run)
        if other is None or picked is None:
            continue
        known += 1
        cheaper = run.seconds <= other
        right += picked == cheaper
        regret += max(run.seconds + run.lost - min(other, run.seconds + run.lost), 0.0)
    return Experience(name, tuple(ways), known, right, round(regret, 3))


def _picked(run: Spent) -> bool | None:
    """Was the way that was taken foreseen as the cheaper one? None: nothing was foreseen."""
    if run.way == "full":
        return True if run.code in _CHOSEN else None
    if run.guess is None or run.full is None:
        return None
    return run.guess <= run.full


def _other(runs: Sequence[Spent], place: int) -> float | None:
    """The seconds of the other way, from the nearest run of it; None: it was never run."""
    run = runs[place]
    if run.way == "skip":
        return None
    others = [
        (abs(at - place), at)
        for at, other in enumerate(runs)
        if other.way != "skip" and (other.way == "full") != (run.way == "full")
    ]
    if not others:
        return None
    nearest = runs[min(others)[1]]
    if nearest.way == "full" and nearest.bytes and run.bytes:
        return nearest.seconds * run.bytes / nearest.bytes
    return nearest.seconds
