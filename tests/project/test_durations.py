"""Durations."""

from __future__ import annotations

import pytest

from sqb.project.durations import duration_seconds


@pytest.mark.parametrize(
    ("text", "units", "seconds"),
    [
        ("30s", "smhd", 30),
        ("90m", "smhd", 5400),
        ("2h", "mhd", 7200),
        ("3d", "mhd", 259_200),
        ("30s", "mhd", None),
        ("0d", "mhd", None),
        ("-1d", "mhd", None),
        ("1.5h", "mhd", None),
        ("3 d", "mhd", None),
        ("3w", "mhd", None),
        ("", "mhd", None),
    ],
)
def test_a_duration_is_a_positive_number_and_a_known_unit(
    text: str, units: str, seconds: int | None
) -> None:
    assert duration_seconds(text, units) == seconds
