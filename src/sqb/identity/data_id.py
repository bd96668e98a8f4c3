"""Data ids: what the rows of a relation are, as far as its readers can tell.

Two equal ids mean equal rows and columns; staleness is a comparison of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

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


def source_schema(data: str, uuid: str) -> str | None:
    """The columns in the data id of this table; None if it is not one, or another's.

    >>> source_schema(source_data("u", "a", 1), "u"), source_schema(source_data("u", "a", 1), "x")
    ('a', None)
    """
    parts = data.split(":")
    return parts[1] if len(parts) == 3 and parts[0] == uuid else None


def has_no_rows(data: str, uuid: str) -> bool:
    """Is it the data id of this table, or of one that sqb wrote, without any row?

    >>> [has_no_rows(data, "u") for data in ("u:a:empty", "v:a:empty", "t:a:0:0:0", "t:a:10:0:0")]
    [True, False, True, False]
    """
    parts = data.split(":")
    if parts[0] == "t":
        return parts[2:3] == ["0"]
    return parts[-1] == "empty" and source_schema(data, uuid) is not None


def same_snapshot(one: str, other: str) -> bool:
    """Do two data ids of sources name the same table and snapshot or value, columns aside?

    >>> same_snapshot(source_data("u", "a", 1), source_data("u", "b", 1))
    True
    """
    values = observed_value(one), observed_value(other)
    if values != (None, None):
        return values[0] == values[1]
    first, second = one.split(":"), other.split(":")
    return (first[0], first[-1]) == (second[0], second[-1])


def files_data(spec: str, version: str) -> str:
    """The data id of files: how they are read, and which they are."""
    return f"l:{spec}:{version}"


def value_data(spec: str, schema: str, kind: str, value: str) -> str:
    """The data id of a source that is watched by a value: what is asked, columns, answer.

    >>> data = value_data("spec", "columns", "integer", "7")
    >>> observed_value(data), observed_value(source_data("u", "s", 1))
    (('integer', '7'), None)
    """
    return f"f:{digest(spec, schema)[:32]}:{kind}:{value}"


def observed_value(data: str) -> tuple[str, str] | None:
    """Kind and value in the data id of a source that is watched by a value, else None."""
    if not data.startswith("f:"):
        return None
    _, _, kind, value = data.split(":", 3)
    return kind, value


def tolerated(before: str, now: str, seconds: int | None) -> bool:
    """Did a timestamp move forward by no more than ``seconds``? Backwards is never tolerated.

    >>> at = "2026-01-31T06:00:00+00:00", "2026-01-31T06:30:00+00:00"
    >>> one, other = (value_data("q", "", "timestamp", moment) for moment in at)
    >>> tolerated(one, other, 1800), tolerated(one, other, 1799), tolerated(other, one, 1800)
    (True, False, False)
    """
    if seconds is None:
        return False
    first, second = observed_value(before), observed_value(now)
    if first is None or second is None or before.split(":")[1] != now.split(":")[1]:
        return False
    if first[0] != "timestamp" or second[0] != "timestamp":
        return False
    moved = datetime.fromisoformat(second[1]) - datetime.fromisoformat(first[1])
    return timedelta(0) <= moved <= timedelta(seconds=seconds)


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
