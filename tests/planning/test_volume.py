"""How many bytes a plan's work reads."""

from __future__ import annotations

import pytest

from sqb.planning.volume import input_bytes

INPUTS = {
    "stg": ("raw",),
    "a": ("stg", "big"),
    "b": ("a", "stg"),
    "c": ("a", "lost"),
    "n": (),
}


@pytest.mark.parametrize(
    ("work", "sizes", "expected"),
    [
        ({"stg"}, {"raw": 5}, 5),
        ({"n"}, {}, 0),
        # a view is what it reads, a table is its own size
        ({"a"}, {"raw": 5, "big": 7}, 12),
        ({"b"}, {"raw": 5, "big": 7, "a": 1}, 6),
        # what the work builds itself is counted by what it reads, everything once
        ({"stg", "a", "b"}, {"raw": 5, "big": 7, "a": 1, "stg": 100}, 12),
        ({"a"}, {"raw": 5, "big": None}, None),
        ({"c"}, {"a": 1}, None),
    ],
)
def test_what_is_read_is_counted_once_and_the_unknown_is_unknown(
    work: set[str], sizes: dict[str, int | None], expected: int | None
) -> None:
    assert input_bytes(work, INPUTS, sizes) == expected
