"""A source now against the last recorded observation of it."""

from __future__ import annotations

from typing import Literal

from sqb.freshness.sighting import Sighting
from sqb.identity.data_id import tolerated, value_data

Status = Literal["observed", "changed", "unchanged", "tolerated", "unknown", "error"]


def compare(now: Sighting, before: tuple[str, str, str] | None, *, with_state: bool) -> Status:
    """How a source stands: too old, not observable, or moved against what was recorded.

    ``before`` is strategy, kind and value of the last recorded observation. A value that goes
    backwards has changed.
    """
    if now.age is not None and now.age.status == "error":
        return "error"
    if now.value is None:
        return "unknown"
    if not with_state:
        return "observed"
    if before == (now.strategy, now.kind, now.value):
        return "unchanged"
    if before is not None and before[:2] == (now.strategy, now.kind):
        one, other = (value_data("", "", now.kind, value) for value in (before[2], now.value))
        if tolerated(one, other, now.tolerance):
            return "tolerated"
    return "changed"
