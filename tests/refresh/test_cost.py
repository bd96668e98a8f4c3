"""The guard: which of the ways that apply is taken, and when a rebuild is the cheaper one."""

from __future__ import annotations

import msgspec
import pytest
from plans import plan_of, relation

from sqb.project.config_values import RefreshConfig
from sqb.refresh.changes import TableChange, Way
from sqb.refresh.cost import (
    Size,
    Sizes,
    affordable,
    estimate,
    estimate_full,
    refuse_keys,
    worth_looking,
)
from sqb.refresh.ir import Col, Node
from sqb.refresh.reasons import Refused
from sqb.refresh.script import Script
from sqb.refresh.strategies import Choice, Situation, choose

MB = 1_000_000
LIMITS = RefreshConfig()
APPENDED = "SELECT a, b FROM t0 WHERE c > 1"
GROUPED = "SELECT a, SUM(b) AS s, COUNT(b) AS n, COUNT(*) AS k FROM t0 GROUP BY a"
FIRST = "SELECT a, b, c FROM t0 ORDER BY b DESC, a LIMIT 100"
FIRST_GROUPS = "SELECT a, SUM(b) AS s FROM t0 GROUP BY a ORDER BY s DESC, a LIMIT 100"
DISTINCT = "SELECT a, COUNT(DISTINCT b) AS s FROM t0 GROUP BY a"


class Run(msgspec.Struct, frozen=True):
    """A past run."""

    way: str
    seconds: float
    plain: float | None = None
    bytes: int | None = None


def change(way: Way, come: int = 0, gone: int = 0, size: int = 0) -> TableChange:
    return TableChange(way, 1, 2, "", come, gone, size)


def source(
    mb: float, rows: int, moved: TableChange, counted: TableChange | None = None, share: float = 1.0
) -> Size:
    return Size(int(mb * MB), rows, share, moved, counted)


def sizes(*sources: Size, mb: float = 10, rows: int = 1000) -> Sizes:
    named = {f"t{i}": size for i, size in enumerate(sources)}
    return Sizes(named, int(mb * MB), rows)


def ways(sql: str, found: Sizes) -> tuple[Choice, Node]:
    types = {Col(f"c{number}"): "bigint" for number in range(200)}
    changes = {name: size.counted or size.change for name, size in found.sources.items()}
    plan = plan_of(sql)
    situation = Situation(plan, changes, types, frozenset(changes))
    return choose(situation, Script(relation, str)), plan.root


def decided(
    sql: str, found: Sizes, past: list[Run], mode: str = "auto", limits: RefreshConfig = LIMITS
) -> str:
    """The way that is taken, or the code of the refusal."""
    choice, root = ways(sql, found)
    try:
        worth_looking(root, found, past, limits, mode)
        return affordable(choice, root, found, past, limits, mode).option.name
    except Refused as refused:
        return refused.code


BIG_FULL = [Run("full", 60.0, bytes=2000 * MB)]
FEW = change("append", 1000, 0, 1 * MB)
BIG = source(2000, 10_000_000, FEW)
LINES = source(60, 4_000_000, FEW)
TINY = source(1, 1000, change("append", 10, 0, 10_000))
REWRITTEN = change("changelog", 2_000_000, 2_000_000, 200 * MB)


@pytest.mark.parametrize(
    ("sql", "found", "past", "expected"),
    [
        # small inputs: a rebuild is a job or two, unless rows are only added
        (APPENDED, sizes(TINY), [], "append"),
        (APPENDED, sizes(TINY), [Run("full", 1.0, bytes=MB)], "append"),
        (GROUPED, sizes(TINY), [], "CHEAPER_TO_REBUILD"),
        (GROUPED, sizes(TINY), [Run("full", 1.0, bytes=MB)], "CHEAPER_TO_REBUILD"),
        (APPENDED, sizes(source(1, 1000, REWRITTEN)), [], "CHEAPER_TO_REBUILD"),
        # a rebuild that was timed counts more than bytes, in both directions
        (GROUPED, sizes(source(2, 100_000, FEW)), [Run("full", 90.0, bytes=2 * MB)], "group_merge"),
        # ... but tables that are tiny are slow only where everything is
        (
            GROUPED,
            sizes(source(0.9, 100_000, FEW)),
            [Run("full", 90.0, bytes=MB)],
            "CHEAPER_TO_REBUILD",
        ),
        (GROUPED, sizes(BIG), [Run("full", 2.9, bytes=2000 * MB)], "CHEAPER_TO_REBUILD"),
        # ... and grows with the inputs
        (GROUPED, sizes(BIG), [Run("full", 2.9, bytes=500 * MB)], "group_merge"),
        # large inputs, few changes
        (APPENDED, sizes(BIG), [], "append"),
        (GROUPED, sizes(BIG), [], "group_merge"),
        (GROUPED, sizes(BIG), BIG_FULL, "group_merge"),
        (DISTINCT, sizes(BIG), BIG_FULL, "affected_key"),
        (FIRST, sizes(BIG, mb=0.1), BIG_FULL, "top_merge"),
        (FIRST_GROUPS, sizes(BIG, mb=0.1), BIG_FULL, "CHEAPER_TO_REBUILD"),
        (FIRST, sizes(TINY), [], "CHEAPER_TO_REBUILD"),
        # most rows are new: adding them is a rebuild
        (APPENDED, sizes(source(100, 1000, change("append", 701, 0, MB))), [], "CHANGE_TOO_LARGE"),
        (APPENDED, sizes(source(100, 1000, change("append", 699, 0, MB))), [], "append"),
        # more than a fifth of a source changed
        (GROUPED, sizes(source(2000, 1000, change("append", 201, 0, MB))), [], "CHANGE_TOO_LARGE"),
        (GROUPED, sizes(source(2000, 1000, change("append", 199, 0, MB))), [], "group_merge"),
        # rewritten files: what counts is how many rows differ once that is known
        (
            GROUPED,
            sizes(source(2000, 10_000_000, REWRITTEN, change("changelog", 40, 40))),
            BIG_FULL,
            "group_merge",
        ),
        (
            GROUPED,
            sizes(source(2000, 10_000_000, REWRITTEN, change("changelog", 1_500_000, 1_500_000))),
            BIG_FULL,
            "CHANGE_TOO_LARGE",
        ),
        # comparing two whole versions costs more than a plain rebuild
        (
            APPENDED,
            sizes(source(2000, 1000, TableChange("versions", 1, 2, "", None, None, None))),
            [],
            "CHEAPER_TO_REBUILD",
        ),
        # earlier runs of the way itself say that it is slow
        (GROUPED, sizes(BIG), [*BIG_FULL, *[Run("group_merge", 59.0, 2.0)] * 3], "affected_key"),
        (
            GROUPED,
            sizes(BIG),
            [*BIG_FULL, *[Run(w, 590.0, 2.0) for w in ("group_merge", "affected_key")] * 3]
            + [Run("bag_merge", 590.0, 2.0)] * 3,
            "CHEAPER_TO_REBUILD",
        ),
        # ... but two runs are not enough to say so
        (GROUPED, sizes(BIG), [*BIG_FULL, *[Run("group_merge", 59.0, 2.0)] * 2], "group_merge"),
        # what was never timed is tried while few rows change, though it would gain little
        (DISTINCT, sizes(BIG, mb=500), BIG_FULL, "affected_key"),
        (DISTINCT, sizes(BIG, mb=2000), BIG_FULL, "CHEAPER_TO_REBUILD"),
        (
            DISTINCT,
            sizes(source(2000, 10_000_000, change("append", 150_000, 0, MB)), mb=500),
            BIG_FULL,
            "CHEAPER_TO_REBUILD",
        ),
        # ... also if a rebuild is dear and the refresh little more than its jobs
        (DISTINCT, sizes(LINES), [Run("full", 3.5, bytes=60 * MB)], "affected_key"),
        (DISTINCT, sizes(LINES), [Run("full", 3.1, bytes=60 * MB)], "CHEAPER_TO_REBUILD"),
        # ... until it took longer once
        (
            DISTINCT,
            sizes(LINES),
            [Run("full", 3.5, bytes=60 * MB), Run("affected_key", 3.6, 3.0)],
            "CHEAPER_TO_REBUILD",
        ),
        # ... and is known after three runs
        (
            DISTINCT,
            sizes(BIG, mb=500),
            [*BIG_FULL, *[Run("affected_key", 50.0, 40.0)] * 3],
            "CHEAPER_TO_REBUILD",
        ),
        (
            DISTINCT,
            sizes(BIG, mb=2000),
            [*BIG_FULL, *[Run("affected_key", 20.0, 80.0)] * 3],
            "affected_key",
        ),
        # adding rows that took longer than rebuilds, three times
        (
            APPENDED,
            sizes(TINY),
            [Run("full", 1.0, bytes=MB), *[Run("append", 3.0, 0.9)] * 3],
            "CHEAPER_TO_REBUILD",
        ),
        # sizes that nobody knows: the first way that applies
        (GROUPED, sizes(Size(None, None, 1.0, FEW)), [], "group_merge"),
    ],
)
def test_what_is_decided(sql: str, found: Sizes, past: list[Run], expected: str) -> None:
    assert decided(sql, found, past) == expected


@pytest.mark.parametrize(
    ("sql", "found", "expected"),
    [
        (GROUPED, sizes(TINY), "group_merge"),
        (APPENDED, sizes(source(1, 10, change("append", 10, 0, MB))), "append"),
        (DISTINCT, sizes(source(1, 10, REWRITTEN)), "affected_key"),
    ],
)
def test_rows_that_are_wished_ignore_the_estimate(sql: str, found: Sizes, expected: str) -> None:
    assert decided(sql, found, [], "rows") == expected


def test_the_limits_are_settings() -> None:
    few = sizes(source(2000, 1000, change("append", 199, 0, MB)))
    assert decided(GROUPED, few, [], limits=RefreshConfig(most_changed=0.1)) == "CHANGE_TOO_LARGE"
    assert decided(GROUPED, sizes(TINY), [], limits=RefreshConfig(small_mb=0)) != "group_merge"
    timed = [Run("full", 20.0, bytes=2000 * MB)]
    assert decided(GROUPED, sizes(BIG), timed) == "group_merge"
    patient = RefreshConfig(small_seconds=30)
    assert decided(GROUPED, sizes(BIG), timed, limits=patient) == "CHEAPER_TO_REBUILD"
    assert decided(GROUPED, sizes(BIG), timed, limits=RefreshConfig(margin=0)) != "group_merge"
    dear = sizes(BIG, mb=2000)
    assert decided(DISTINCT, dear, BIG_FULL) == "CHEAPER_TO_REBUILD"
    assert decided(DISTINCT, dear, BIG_FULL, limits=RefreshConfig(margin=2)) == "affected_key"


def test_many_keys_are_refused() -> None:
    found = sizes(BIG, rows=1000)
    refuse_keys("m", 150, found, LIMITS, "auto")
    refuse_keys("m", 900, found, LIMITS, "rows")
    with pytest.raises(Refused, match="TOO_MANY_KEYS: 151 keys of m, which has 1,000 rows"):
        refuse_keys("m", 151, found, LIMITS, "auto")


def test_a_rebuild_is_scaled_by_what_its_inputs_grew() -> None:
    _, root = ways(GROUPED, sizes(BIG))
    same = estimate_full(root, sizes(BIG), [Run("full", 60.0, bytes=2000 * MB)])
    grown = estimate_full(root, sizes(BIG), [Run("full", 60.0, bytes=1000 * MB)])
    assert same is not None
    assert grown is not None
    assert same.seconds == pytest.approx(60.0)
    assert 100 < grown.seconds < 125


def test_newer_runs_say_more_than_older_ones() -> None:
    _, root = ways(GROUPED, sizes(BIG))
    runs = [Run("full", 10.0, bytes=2000 * MB)] * 3 + [Run("full", 40.0, bytes=2000 * MB)] * 3
    found = estimate_full(root, sizes(BIG), runs)
    assert found is not None
    assert found.runs == 6
    assert 28 < found.seconds < 40


def test_an_estimate_says_how_many_runs_it_rests_on() -> None:
    _, root = ways(GROUPED, sizes(BIG))
    first = estimate("group_merge", root, sizes(BIG), [])
    assert first is not None
    assert first.runs == 0
    runs = [Run("group_merge", 2 * first.plain, first.plain)] * 3
    fitted = estimate("group_merge", root, sizes(BIG), runs)
    assert fitted is not None
    assert (fitted.runs, fitted.seconds) == (3, pytest.approx(2 * first.plain))
