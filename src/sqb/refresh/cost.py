"""Which of the ways that apply is taken, and whether a full rebuild is the cheaper one.

Seconds are foreseen from bytes by a coarse model, which what earlier runs of the same table really
took corrects. A wrong estimate costs time and nothing else: only ways that give the rows of a
rebuild are weighed here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from sqb.project.config_values import RefreshConfig
from sqb.refresh.changes import TableChange
from sqb.refresh.ir import (
    Aggregate,
    Distinct,
    Join,
    Node,
    SetOperation,
    Top,
    Window,
    inputs,
    moved_constants,
    scans,
)
from sqb.refresh.reasons import Refused
from sqb.refresh.strategies import Choice, Option, not_linear

_MB = 1_000_000
#: Seconds for each megabyte that is read, shuffled and written, on a machine of two cores.
_READ, _SHUFFLED, _WRITTEN = 0.008, 0.015, 0.025
#: Seconds that a way takes before it reads a byte: it is made of so many jobs.
_FIXED = {"full": 0.4, "append": 0.3, "group_merge": 1.0, "affected_key": 2.2, "bag_merge": 2.5}
_FIXED |= {"top_merge": 1.5}
#: A file of a table is taken to have this size.
_FILE = 128 * _MB
#: Runs of a way before they say more of it than the rebuilds do.
_ENOUGH = 3
#: How much less each older run says.
_DECAY = 0.6
#: Inputs this many times smaller than small ones are small whatever a rebuild took.
_TINY = 32
#: Until a way was timed often enough, the refresh of few rows is tried if it may take at most so
#: many times a rebuild: only what was tried is known.
_TRIAL = 0.95
#: The part of a source's rows that are few.
_FEW = 0.01
#: A machine is not thought to be slower than this many times.
_SLOW = 1.5
#: What one odd run can do at most.
_ODD = 100.0


class Past(Protocol):
    """An earlier run of the same table: its way, its seconds, those of the coarse model, and the
    bytes of its inputs."""

    @property
    def way(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def plain(self) -> float | None: ...
    @property
    def bytes(self) -> int | None: ...


class Size(msgspec.Struct, frozen=True):
    """A source: its bytes and rows, the share of its columns that is read, what happened to it.

    ``change`` is what metadata tells, until it was counted.
    """

    bytes: int | None
    rows: int | None
    share: float
    change: TableChange
    counted: TableChange | None = None

    @property
    def moves(self) -> bool:
        """Are its rows others than before, as far as is known?"""
        return (self.counted or self.change).way != "none"

    @property
    def looking(self) -> float | None:
        """The bytes that are read to know what changed."""
        if self.change.way == "none":
            return 0.0
        found = self.change.bytes
        if found is None and self.change.way in ("versions", "lineage"):
            # two versions are read in full to be compared
            found = 2 * self.bytes if self.bytes is not None else None
        return None if found is None else found * self.share

    @property
    def read(self) -> float | None:
        """The bytes that reading all of it reads."""
        return None if self.bytes is None else self.bytes * self.share

    @property
    def moved(self) -> int | None:
        """How many rows came and went."""
        change = self.counted or self.change
        come, gone = change.added_rows, change.removed_rows
        if come is None or gone is None:
            return None
        # until they are counted: rows of rewritten files, most of which come back as they went
        written_again = self.counted is None and not change.only_adds
        return abs(come - gone) if written_again else come + gone


class Sizes(msgspec.Struct, frozen=True):
    """All that a refresh reads and writes: its sources, the bytes and rows of the table."""

    sources: Mapping[str, Size]
    bytes: int | None
    rows: int | None

    @property
    def input_bytes(self) -> int | None:
        """The bytes of all sources."""
        found = [size.bytes for size in self.sources.values()]
        known = [number for number in found if number is not None]
        return sum(known) if len(known) == len(found) else None

    @property
    def moved(self) -> int | None:
        """How many rows of all sources came and went."""
        found = [s.moved for s in self.sources.values() if s.moves]
        known = [number for number in found if number is not None]
        return sum(known) if len(known) == len(found) else None


class Estimate(msgspec.Struct, frozen=True):
    """What a way is thought to take. ``plain`` is the coarse model alone; ``runs`` is how many
    earlier runs went into ``seconds``."""

    seconds: float
    plain: float
    runs: int = 0


class Verdict(msgspec.Struct, frozen=True):
    """The way to take, what it is thought to take, and what a rebuild would."""

    option: Option
    way: Estimate | None
    full: Estimate | None


class _Work(msgspec.Struct, frozen=True):
    """Bytes that are read, shuffled and written."""

    read: float
    shuffled: float
    written: float

    @property
    def seconds(self) -> float:
        """What the coarse model says of them."""
        parts = (self.read * _READ, self.shuffled * _SHUFFLED, self.written * _WRITTEN)
        return sum(parts) / _MB


# Estimates


def estimate_full(root: Node, sizes: Sizes, past: Sequence[Past]) -> Estimate | None:
    """What a rebuild is thought to take; None if the bytes it reads are not known."""
    work = _work("full", root, sizes)
    if work is None:
        return None
    plain = _FIXED["full"] + work.seconds
    factor, runs = _full_factor(work, sizes, past)
    return Estimate(plain * factor, plain, runs)


def estimate(way: str, root: Node, sizes: Sizes, past: Sequence[Past]) -> Estimate | None:
    """What a way is thought to take, the reading of the change included."""
    work = _work(way, root, sizes)
    if work is None:
        return None
    plain = _FIXED[way] + work.seconds
    factor, runs = _factor([(r.seconds, r.plain or 0.0) for r in past if r.way == way])
    if runs >= _ENOUGH:
        return Estimate(plain * factor, plain, runs)
    # how much dearer than the model thinks this query and machine are, rebuilds have shown
    whole = _work("full", root, sizes)
    dearer = _full_factor(whole, sizes, past)[0] if whole is not None else 1.0
    # a slow machine starts jobs slowly too, a hard query does not
    fixed = _FIXED[way] * min(max(dearer, 1.0), _SLOW)
    return Estimate(fixed + work.seconds * dearer, plain)


def _full_factor(work: _Work, sizes: Sizes, past: Sequence[Past]) -> tuple[float, int]:
    """As ``_factor``, of rebuilds: each is compared with what the model says of its bytes then."""
    now = sizes.input_bytes
    runs = []
    for run in past:
        if run.way == "full" and run.bytes is not None and now is not None:
            grown = run.bytes / now if now else 1.0
            runs.append((run.seconds, _FIXED["full"] + work.seconds * grown))
    return _factor(runs)


def _factor(runs: Sequence[tuple[float, float]]) -> tuple[float, int]:
    """How many times what the model says runs took, newer ones counting more; of how many runs.

    >>> _factor([(2.0, 1.0), (0.0, 1.0)])
    (2.0, 1)
    """
    known = [(seconds, plain) for seconds, plain in runs if seconds > 0 and plain > 0]
    if not known:
        return 1.0, 0
    total = weights = 0.0
    for age, (seconds, plain) in enumerate(reversed(known)):
        ratio = min(max(seconds / plain, 1 / _ODD), _ODD)
        total += _DECAY**age * math.log(ratio)
        weights += _DECAY**age
    return math.exp(total / weights), len(known)


def _work(way: str, root: Node, sizes: Sizes) -> _Work | None:
    """The bytes that a way moves; None where a size is not known."""
    whole = [sizes.sources[scan.source].read for scan in scans(root)]
    reading = [number for number in whole if number is not None]
    if len(reading) < len(whole):
        return None
    everything = sum(reading)
    heavy = min(_heavy(root), 3) / 2
    target = float(sizes.bytes if sizes.bytes is not None else everything)
    if way == "full":
        return _Work(everything, everything * heavy, target)
    changes = _changes(sizes)
    if changes is None:
        return None
    part = changed_part(sizes)
    written = target * _touched(sizes, part)
    changed = {name for name, size in sizes.sources.items() if size.moves}
    others = sum(
        number
        for scan, number in zip(scans(root), reading, strict=True)
        if scan.source not in changed or len(changed) > 1
    )
    read, shuffled = changes.read, changes.shuffled
    if way == "append":
        return _Work(read + others, shuffled + part * everything * heavy, target * part)
    if way == "group_merge":
        return _Work(read + others + target, shuffled + part * everything * heavy, written)
    if isinstance(root, Top) and way == "top_merge":
        read += others + target
        if not_linear(root.child, frozenset(changed)) is not None:  # old and new rows of keys
            read, shuffled = read + 2 * everything, shuffled + part * everything * (heavy + 1)
        # rows that tie with the last one are looked for only if the change reaches it
        return _Work(read, shuffled + part * everything, written)
    read += everything + target
    shuffled += part * (everything + target) * (heavy + 1)
    if way == "bag_merge":
        read, shuffled = read + everything, shuffled + target
    return _Work(read, shuffled, written)


def _changes(sizes: Sizes, *, counted: bool = False) -> _Work | None:
    """What is read to know the change of every source, or of those that were ``counted``."""
    read = shuffled = 0.0
    for size in sizes.sources.values():
        if counted and size.counted is None:
            continue
        if size.looking is None:
            return None
        read += size.looking
        if not size.change.only_adds:
            shuffled += size.looking
    return _Work(read, shuffled, 0.0)


def changed_part(sizes: Sizes) -> float:
    """The largest part of a source's rows that came or went; 1 if it is not known."""
    largest = 0.0
    for size in sizes.sources.values():
        if not size.moves:
            continue
        if size.moved is None or not size.rows:
            return 1.0
        largest = max(largest, min(size.moved / size.rows, 1.0))
    return largest


def _touched(sizes: Sizes, part: float) -> float:
    """The part of the target that is written again: whole files."""
    rows = sizes.rows or 0
    if not sizes.bytes:
        return part
    files = max(math.ceil(sizes.bytes / _FILE), 1)
    touched = min(sizes.moved if sizes.moved is not None else rows, rows)
    return float(1 - (1 - 1 / files) ** touched) if touched else part


def _heavy(node: Node) -> int:
    """How many nodes bring rows together."""
    own = isinstance(node, Aggregate | Window | Distinct | Join) or (
        isinstance(node, SetOperation) and not (node.kind == "union" and node.all)
    )
    return own + sum(_heavy(child) for child in inputs(node))


# Decisions


def worth_looking(
    root: Node, sizes: Sizes, past: Sequence[Past], limits: RefreshConfig, mode: str
) -> None:
    """Before anything is read: raise ``Refused`` if finding out what changed is not worth it."""
    if mode != "auto":
        return
    ways = {size.change.way for size in sizes.sources.values()} - {"none"}
    if not ways and not moved_constants(root):
        return
    full = estimate_full(root, sizes, past)
    if ways != {"append"} or moved_constants(root):
        _refuse_small(full, sizes, limits)
    work = _changes(sizes)
    if full is None or work is None:
        return
    looking = work.seconds * full.seconds / full.plain
    if looking > limits.margin * full.seconds:
        why = f"reading what changed takes about {_said(looking)}, {_rebuild(full)}"
        raise Refused("CHEAPER_TO_REBUILD", why)


def affordable(
    choice: Choice,
    root: Node,
    sizes: Sizes,
    past: Sequence[Past],
    limits: RefreshConfig,
    mode: str,
) -> Verdict:
    """The way to take; raises ``Refused`` where a rebuild is cheaper, unless rows are wished.

    The changes of the sources are counted by now, where they had to be.
    """
    full = estimate_full(root, sizes, past)
    guesses = {option.name: estimate(option.name, root, sizes, past) for option in choice.options}
    first = choice.options[0]
    if mode == "rows":
        return Verdict(first, guesses[first.name], full)
    if first.name == "append" and _append_pays(guesses["append"], full, sizes, limits):
        return Verdict(first, guesses["append"], full)
    _refuse_small(full, sizes, limits)
    for name, size in sizes.sources.items():
        if size.rows and size.moved is not None and size.moved > limits.most_changed * size.rows:
            why = f"{size.moved:,} of {size.rows:,} rows of {name}"
            raise Refused("CHANGE_TOO_LARGE", why)
    best, guess = first, guesses[first.name]
    for option in choice.options[1:]:
        other = guesses[option.name]
        if guess is not None and other is not None and other.seconds < guess.seconds:
            best, guess = option, other
    if guess is None or full is None:
        return Verdict(best, guess, full)
    # what was counted has been read by now, whatever comes next
    looked = _changes(sizes, counted=True)
    left = guess.seconds - (looked.seconds if looked is not None else 0.0)
    if left > limits.margin * full.seconds and not _worth_a_try(best, guess, full, sizes, past):
        why = f"{best.name} takes about {_said(guess.seconds)}, {_rebuild(full)}"
        raise Refused("CHEAPER_TO_REBUILD", why)
    return Verdict(best, guess, full)


def _worth_a_try(
    option: Option, guess: Estimate, full: Estimate, sizes: Sizes, past: Sequence[Past]
) -> bool:
    """Is a way tried that is foreseen to gain little, because it was not timed often enough?

    What makes a rebuild dearer than the model says need not make dearer what is mostly the start of
    jobs. A try that took longer than a rebuild is the last one.
    """
    if guess.runs or changed_part(sizes) > _FEW:
        return False
    slower = any(run.way == option.name and run.seconds > full.seconds for run in past)
    starting = 2 * _FIXED[option.name] >= guess.plain
    hoped = min(guess.plain, guess.seconds) if starting else guess.seconds
    return not slower and hoped <= _TRIAL * full.seconds


def refuse_keys(name: str, keys: int, sizes: Sizes, limits: RefreshConfig, mode: str) -> None:
    """Raise ``Refused`` if so many of the table's keys changed that a rebuild is cheaper."""
    if mode != "auto" or not sizes.rows:
        return
    if keys > limits.most_keys * sizes.rows:
        why = f"{keys:,} keys of {name}, which has {sizes.rows:,} rows"
        raise Refused("TOO_MANY_KEYS", why)


def _append_pays(
    guess: Estimate | None, full: Estimate | None, sizes: Sizes, limits: RefreshConfig
) -> bool:
    """Adding rows reads and writes less than a rebuild, unless most of the rows are new or earlier
    runs have shown that it takes longer."""
    if changed_part(sizes) > limits.margin:
        return False
    if guess is None or full is None or guess.runs < _ENOUGH or not full.runs:
        return True
    return guess.seconds <= full.seconds


def _refuse_small(full: Estimate | None, sizes: Sizes, limits: RefreshConfig) -> None:
    """Raise ``Refused`` for a table whose rebuild takes less than the jobs of a refresh."""
    size = sizes.input_bytes
    if full is not None and full.runs and full.seconds < limits.small_seconds:
        raise Refused("CHEAPER_TO_REBUILD", f"a rebuild takes about {_said(full.seconds)}")
    # so little is slow only on a busy machine, where the jobs of a refresh are slower still
    most = limits.small_mb / (_TINY if full is not None and full.runs else 1)
    if size is not None and size < most * _MB:
        raise Refused("CHEAPER_TO_REBUILD", f"its inputs are {size / _MB:,.1f} MB")


def _rebuild(full: Estimate) -> str:
    return f"a rebuild about {_said(full.seconds)}"


def _said(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f}s"
    return f"{int(seconds // 60)}m {int(seconds % 60):02d}s"
