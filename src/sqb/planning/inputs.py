"""Which inputs moved since a node consumed them: the one comparison that staleness rests on.

Planning asks it with what is known beforehand, execution asks again with what really came out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from sqb.identity.data_id import UNKNOWN, InputState, same_snapshot
from sqb.state.record import Consumed, Record


class Moved(msgspec.Struct, frozen=True):
    """An input that is not what was consumed; ``reason`` as a reader of it would say."""

    name: str
    reason: str


def moved_inputs(
    record: Record,
    inputs: Sequence[str],
    states: Mapping[str, InputState],
    sources: Mapping[str, InputState],
    *,
    schema_only: bool,
) -> list[Moved]:
    """The inputs with a known state that differs from what ``record`` consumed.

    A view reads its inputs when it is read, so only their columns matter (``schema_only``).
    """
    consumed = record.consumed()
    out: list[Moved] = []
    for name in inputs:
        state = states.get(name)
        if state is None:
            continue
        before = consumed.get(name)
        if before is None:
            out.append(Moved(name, "source_changed" if name in sources else "upstream_changed"))
        elif _reshaped(state, before) if schema_only else _moved(state, before):
            out.append(Moved(name, _reason(name, state, before, sources)))
    # what is no longer read was consumed all the same
    out += [Moved(name, "upstream_changed") for name in consumed if name not in inputs]
    return out


def _reshaped(state: InputState, before: Consumed) -> bool:
    """Would a view over this input have to be written anew: other columns, another place?"""
    return state.schema != before.schema or bool(before.place and state.place != before.place)


def _moved(state: InputState, before: Consumed) -> bool:
    return state.data != before.data or state.data == UNKNOWN


def _reason(
    name: str, state: InputState, before: Consumed, sources: Mapping[str, InputState]
) -> str:
    if name not in sources:
        return "upstream_changed"
    if state.data == UNKNOWN:
        return "source_unknown"
    if state.schema != before.schema and same_snapshot(state.data, before.data):
        return "schema_changed"
    return "source_changed"
