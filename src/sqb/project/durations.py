"""Durations as users write them: a positive whole number and a unit, such as ``3d`` or ``90m``."""

from __future__ import annotations

import re

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_FORM = re.compile(r"([0-9]{1,9})([smhd])")


def duration_seconds(text: str, units: str = "smhd") -> int | None:
    """The seconds of a duration in one of ``units``; None if ``text`` is no such duration.

    >>> duration_seconds("3d"), duration_seconds("5s", "mhd"), duration_seconds("0h")
    (259200, None, None)
    """
    found = _FORM.fullmatch(text)
    if found is None or found[2] not in units:
        return None
    return int(found[1]) * _SECONDS[found[2]] or None
