"""Lag tolerance: a source that moved only a little is, to a reader, what the reader consumed.

The comparison is each reader's own, and with what it consumed, so tolerated steps add up until
they are no longer tolerated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from sqb.freshness.sighting import Sighting
from sqb.identity.data_id import InputState, tolerated, view_state
from sqb.state.record import Record


def kept_sources(record: Record, sightings: Mapping[str, Sighting]) -> dict[str, InputState]:
    """The sources whose movement ``record``'s reader tolerates, as it consumed them."""
    out: dict[str, InputState] = {}
    read = record.read()
    for name, sighting in sightings.items():
        if sighting.tolerance is None or sighting.state is None:
            continue
        before = read.get(name)
        now = sighting.state.data
        if before is not None and before != now and tolerated(before, now, sighting.tolerance):
            out[name] = msgspec.structs.replace(sighting.state, data=before)
    return out


def as_consumed(
    states: Mapping[str, InputState],
    kept: Mapping[str, InputState],
    view: Callable[[str], Record | None],
    state: Callable[[str], InputState | None],
    constants: Mapping[str, str],
) -> dict[str, InputState]:
    """``states`` of a reader's inputs with the sources it tolerates put back, also behind views.

    ``view`` gives the record of a view that stands as recorded, ``state`` what any other input is.
    """
    if not kept:
        return dict(states)

    def seen(name: str, now: InputState | None) -> InputState | None:
        if name in kept:
            return kept[name]
        record = view(name)
        if record is None or now is None:
            return now
        below = {item.name: seen(item.name, state(item.name)) for item in record.inputs}
        known = {n: s for n, s in below.items() if s is not None}
        if len(known) < len(below):
            return now
        bound = {key: constants[key] for key in record.constants}
        return view_state(record.local, known, bound, record.version, now.place)

    found = {name: seen(name, now) for name, now in states.items()}
    return {name: now for name, now in found.items() if now is not None}
