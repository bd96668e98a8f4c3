"""What a query's text says about its inputs, as plain values that can be cached.

Kept apart from the code that finds it, so that reading the cache loads no parser.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sqb.sql.splice import Edit

#: The names of values that a run binds: its day; its instant, where two evaluations must agree; and
#: an instant that is written as a string, which Spark reads anew in each place.
TODAY, MOMENT, NOW = "current_date", "current_timestamp", "now"
#: Strings that Spark reads as days, beside ``now``.
DAYS = ("today", "tomorrow", "yesterday")
#: Functions whose values are fixed for a run and part of what a result was computed from.
BOUND = frozenset({"current_date", "curdate"})
#: Functions whose values differ on every run; they never make a model stale.
VOLATILE = frozenset(
    {"current_timestamp", "now", "localtimestamp", "current_time", "unix_timestamp", "rand"}
    | {"randn", "random", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"}
)


class Reference(msgspec.Struct, frozen=True, array_like=True):
    """One table name in the text.

    ``kind`` is ``name`` (unqualified), ``table`` (qualified) or what an explicit call asks for.
    ``aliased``: an alias follows. ``travels``: the user wrote VERSION or TIMESTAMP AS OF; ``ref``
    is the branch or tag that was named.
    """

    kind: str
    parts: tuple[str, ...]
    start: int
    end: int
    line: int
    aliased: bool
    travels: bool
    ref: str = ""


class BoundConstant(msgspec.Struct, frozen=True, array_like=True):
    """A ``current_date()`` in the text, or what Spark reads as one.

    ``written`` is what stands there of the value. A string that may be a day, if it is compared
    with one, is not ``certain``: it is left to Spark.
    """

    name: str
    start: int
    end: int
    written: str = "{}"
    certain: bool = True


class Analysis(msgspec.Struct, frozen=True, array_like=True):
    """What a query's text says about its inputs."""

    references: tuple[Reference, ...]
    constants: tuple[BoundConstant, ...]
    volatile: tuple[str, ...]


def bound(constants: Iterable[BoundConstant], values: Mapping[str, str]) -> list[Edit]:
    """What stands in the places of constants whose values are given.

    >>> found = [BoundConstant("current_date", 7, 21), BoundConstant("now", 23, 37)]
    >>> [edit.replacement for edit in bound(found, {"current_date": "2026-01-31"})]
    ["DATE'2026-01-31'", 'current_timestamp()']
    """
    edits: list[Edit] = []
    for one in constants:
        value = values.get(TODAY if one.name == TODAY else MOMENT)
        if one.certain and (value is not None or one.name == NOW):
            typed = f"{'DATE' if one.name == TODAY else 'TIMESTAMP'}'{value}'"
            text = one.written.format(typed if value is not None else "current_timestamp()")
            edits.append(Edit(one.start, one.end, text))
    return edits
