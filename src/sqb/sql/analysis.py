"""What a query's text says about its inputs, as plain values that can be cached.

Kept apart from the code that finds it, so that reading the cache loads no parser.
"""

from __future__ import annotations

import msgspec

#: Functions whose values are fixed for a run and part of what a result was computed from.
BOUND = frozenset({"current_date", "curdate"})
#: Functions whose values differ on every run; they never make a model stale.
VOLATILE = frozenset(
    {"current_timestamp", "now", "localtimestamp", "unix_timestamp", "rand", "randn", "random"}
    | {"uuid", "shuffle", "monotonically_increasing_id"}
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
    """A ``current_date()`` in the text."""

    name: str
    start: int
    end: int


class Analysis(msgspec.Struct, frozen=True, array_like=True):
    """What a query's text says about its inputs."""

    references: tuple[Reference, ...]
    constants: tuple[BoundConstant, ...]
    volatile: tuple[str, ...]
