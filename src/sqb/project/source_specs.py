"""What a declaration says about seeing and reading a source, as plain values.

Kept apart from the code that reads YAML: compiled projects hold these, and loading one from the
cache must load no parser.
"""

from __future__ import annotations

import msgspec


class AgePolicy(msgspec.Struct, frozen=True):
    """How old a source may be, in seconds."""

    warn_after: int | None = None
    error_after: int | None = None


class Freshness(msgspec.Struct, frozen=True):
    """How to see whether a source moved; ``lag_tolerance`` in seconds."""

    strategy: str = "adapter"
    type: str | None = None
    column: str | None = None
    query: str | None = None
    filter: str | None = None
    lag_tolerance: int | None = None
    age_policy: AgePolicy | None = None


class FileSpec(msgspec.Struct, frozen=True):
    """Files that are read as one table: where they lie, how they are read.

    ``columns`` has declared names with their types; a column without one gets the type that the
    files have.
    """

    path: str
    format: str
    options: dict[str, str] = {}
    columns: tuple[tuple[str, str], ...] = ()
    immutable: bool = False
