"""Data ids: what the rows of a relation are, as far as its readers can tell.

Two equal ids mean equal rows and columns; staleness is a comparison of these.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sqb.hashing import digest

#: The data id of an input that can't be observed: never equal to anything, itself included.
UNKNOWN = "?"


class InputState(msgspec.Struct, frozen=True):
    """An input as a reader finds it: data id, schema id, version of its definition, place.

    The place is ``schema.name``; a view has its inputs' places written into it.
    """

    data: str
    schema: str
    version: str = ""
    place: str = ""


def source_data(uuid: str, schema: str, snapshot: int | None) -> str:
    """The data id of a table that someone else writes; ``snapshot`` skips compactions."""
    return f"{uuid}:{schema}:{snapshot if snapshot is not None else 'empty'}"


def same_snapshot(one: str, other: str) -> bool:
    """Do two data ids of sources name the same table and snapshot, columns aside?

    >>> same_snapshot(source_data("u", "a", 1), source_data("u", "b", 1))
    True
    """
    first, second = one.split(":"), other.split(":")
    return (first[0], first[-1]) == (second[0], second[-1])


def view_state(
    local: str,
    inputs: Mapping[str, InputState],
    constants: Mapping[str, str],
    version: str,
    place: str = "",
) -> InputState:
    """A view as its readers find it: what it computes, from which rows, on which day.

    Its columns follow from its definition and its inputs' columns, so these make its schema id.
    """
    if any(state.data == UNKNOWN for state in inputs.values()):
        return InputState(UNKNOWN, _over(local, inputs, "schema"), version, place)
    fixed = (field for item in sorted(constants.items()) for field in item)
    data, schema = _over(local, inputs, "data", *fixed), _over(local, inputs, "schema")
    return InputState(data, schema, version, place)


def _over(local: str, inputs: Mapping[str, InputState], part: str, *more: str) -> str:
    fields = (f for name, state in sorted(inputs.items()) for f in (name, getattr(state, part)))
    return "v:" + digest(local, *fields, *more)
