"""What ``sqb freshness`` tells of each source: its value, its age, and how it moved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from sqb.freshness.compare import Status, compare
from sqb.freshness.sighting import Age, Reading, Sighting


class SourceFreshness(msgspec.Struct, frozen=True):
    """One source; ``previous`` is the last recorded value, ``message`` why there is none now."""

    name: str
    status: Status
    strategy: str
    value_kind: str
    current: str | None
    previous: str | None
    age: Age | None
    reading: Reading
    message: str


def report(
    sightings: Iterable[Sighting],
    recorded: Mapping[str, Mapping[str, Any]],
    *,
    with_state: bool,
) -> list[SourceFreshness]:
    """The sources as they are, against what was recorded of them if that is wanted."""
    out: list[SourceFreshness] = []
    for now in sightings:
        row = recorded.get(now.name)
        before = None
        if row is not None:
            before = (row["strategy"], row["value_kind"], row["data_version"])
        out.append(
            SourceFreshness(
                now.name,
                compare(now, before, with_state=with_state),
                now.strategy,
                now.kind,
                now.value,
                before[2] if before is not None else None,
                now.age,
                now.reading,
                now.why,
            )
        )
    return out
