"""Which way a table's change may be read, from its snapshots."""

from __future__ import annotations

import pytest

from sqb.lake.versions import Snapshot
from sqb.refresh.changes import TableChange, may_have_grown, table_change


def history(*operations: str, gone: tuple[int, ...] = ()) -> dict[int, Snapshot]:
    """Snapshots 1, 2, … each the child of the one before; ``+d`` brings delete files."""
    out: dict[int, Snapshot] = {}
    for number, word in enumerate(operations, 1):
        operation, _, more = word.partition("+")
        parent = number - 1 or None
        out[number] = Snapshot(number, parent, operation, bool(more), bool(more), 10, 4)
    return {number: snapshot for number, snapshot in out.items() if number not in gone}


@pytest.mark.parametrize(
    ("operations", "gone", "old", "new", "way"),
    [
        (["append"], (), 1, 1, "none"),
        (["append", "replace"], (), 1, 2, "none"),
        (["append", "append"], (), 1, 2, "append"),
        (["append", "append", "replace", "append"], (), 1, 4, "append"),
        (["append", "append"], (), None, 2, "append"),
        (["append", "overwrite"], (), 1, 2, "changelog"),
        (["append", "append", "delete"], (), 1, 3, "changelog"),
        (["append", "overwrite", "append"], (), 1, 3, "changelog"),
        (["append", "overwrite+d"], (), 1, 2, "versions"),
        (["append", "replace+d", "append"], (), 1, 3, "append"),
        (["append", "append", "append"], (), 3, 2, "versions"),  # rolled back
        (["append", "append", "append"], (1,), 1, 3, "append"),
        (["append", "append", "overwrite"], (1,), 1, 3, "unknown"),
        (["append", "append", "append"], (2,), 1, 3, "versions"),
        (["append", "append", "append"], (1, 2), 1, 3, "unknown"),
        (["append", "overwrite"], (), None, 2, "versions"),
        (["append"], (), 1, None, "versions"),  # made anew, empty
        (["append"], (1,), 1, None, "unknown"),
    ],
)
def test_the_way_is_the_first_whose_conditions_hold(
    operations: list[str], gone: tuple[int, ...], old: int | None, new: int | None, way: str
) -> None:
    found = table_change(history(*operations, gone=gone), old, new)
    assert found.way == way
    assert found.reason or way in ("none", "append", "changelog")


def test_sizes_are_summed_and_unknown_ones_stay_unknown() -> None:
    found = table_change(history("append", "append", "overwrite"), 1, 3)
    assert (found.added_rows, found.removed_rows) == (20, 8)
    some = history("append", "append")
    some[2] = Snapshot(2, 1, "append")
    assert table_change(some, 1, 2).added_rows is None


@pytest.mark.parametrize(
    ("commits", "old", "new", "grown"),
    [
        ([("append", 5, 0)], 1, 1, False),
        ([("append", 5, 0), ("append", 1, 0)], 1, 2, True),
        ([("append", 5, 0), ("overwrite", 5, 5)], 1, 2, False),
        ([("append", 5, 0), ("delete", 0, 5)], 1, 2, False),
        ([("append", 5, 0), ("replace", 5, 6)], 1, 2, False),
        # one that comes while another goes
        ([("append", 5, 0), ("append", 1, 0), ("overwrite", 4, 5)], 1, 3, True),
        # marked as deleted in files that stay: nobody counts those
        ([("append", 5, 0), ("overwrite", 1, 0)], 1, 2, True),
        ([("append", 5, 0), ("overwrite", None, None)], 1, 2, True),
        ([("append", 5, 0), ("append", 5, 0)], 2, 1, False),  # rolled back
        ([("append", 5, 0), ("delete", 0, 2)], 2, 1, True),
        ([("append", 5, 0), ("overwrite", None, None)], 2, 1, True),
        ([("append", 5, 0)], 1, None, False),  # made anew, empty
    ],
)
def test_whether_rows_came_is_told_by_each_commit(
    commits: list[tuple[str, int | None, int | None]], old: int, new: int | None, grown: bool
) -> None:
    known, total = dict[int, Snapshot](), 0
    for number, (operation, come, gone) in enumerate(commits, 1):
        total += (come or 0) - (gone or 0)
        known[number] = Snapshot(
            number,
            number - 1 or None,
            operation,
            added_rows=come,
            removed_rows=gone,
            rows=None if come is None else total,
        )
    assert may_have_grown(known, table_change(known, old, new)) is grown


def test_files_and_what_is_not_known_may_have_more_rows() -> None:
    assert may_have_grown({}, TableChange("files", None, None, added_rows=None))
    assert may_have_grown({}, TableChange("unknown", 1, 2))
