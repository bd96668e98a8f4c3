"""The inputs of a node for people: what it was built from, and what is there now."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sqb.identity.data_id import tolerated
from sqb.planning.cascade import Verdict
from sqb.planning.situation import Situation


class Present(msgspec.Struct, frozen=True):
    """One input: the data id that was consumed, the one that is there now.

    ``now`` is None where there is none or only a run can tell; ``note`` then says which. A source
    has a ``reading``, and a ``value`` if it is watched by one.
    """

    name: str
    recorded: str | None
    now: str | None
    note: str | None = None
    reading: str | None = None
    value: str | None = None
    tolerance: int | None = None

    @property
    def changed(self) -> bool | None:
        """Is it another one than was consumed? None where that is not known."""
        if self.now is None or self.recorded is None:
            return None
        return self.now != self.recorded and not tolerated(self.recorded, self.now, self.tolerance)


def present_inputs(
    situation: Situation, verdicts: Mapping[str, Verdict], name: str
) -> tuple[Present, ...]:
    """Every input that a node has or had when it was built."""
    record = situation.recorded.get(name)
    consumed = record.consumed() if record is not None else {}
    names = dict.fromkeys((*situation.expected[name].inputs, *consumed))
    out: list[Present] = []
    for parent in names:
        before = consumed[parent].data if parent in consumed else None
        seen = situation.sightings.get(parent)
        if seen is not None:
            now = seen.state.data if seen.state is not None else None
            value = seen.value if seen.watched else None
            note = seen.why or None
            out.append(Present(parent, before, now, note, seen.reading, value, seen.tolerance))
            continue
        now, note = _now(situation, verdicts, parent)
        if parent not in situation.expected[name].inputs:
            note = "no longer read"
        out.append(Present(parent, before, now, note))
    return tuple(out)


def _now(
    situation: Situation, verdicts: Mapping[str, Verdict], name: str
) -> tuple[str | None, str | None]:
    if name in situation.sources:
        return situation.sources[name].data, None
    verdict = verdicts.get(name)
    if verdict is None:
        return None, "not there"
    record = situation.recorded.get(name)
    if situation.expected[name].materialized == "view":
        # what is seen through it, which may be known although the view itself is yet to be made
        if verdict.state is not None:
            return verdict.state.data, None
        if verdict.waits:
            return None, f"known when {' and '.join(verdict.waits)} ran"
    if record is None or name not in situation.relations:
        return None, "not built yet"
    return record.data, None
