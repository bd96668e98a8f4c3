"""The kinds of tables and what each promises: which way a table goes, decided from facts alone.

``table``, ``merge`` and ``tracked`` hold the rows of their query, so a rebuild loses nothing.
``append``, ``scd2`` and a merge that keeps what vanished hold history: rows that no query gives
back. Those are rebuilt when the user says so, and otherwise never.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

#: Kinds that have tables of their own.
KINDS = ("table", "append", "merge", "scd2", "tracked")
HISTORY, FORWARD = "history", "forward"

#: ``build``: there is nothing yet. ``rebuild``: the rows of the query replace what is there.
#: ``carry``: what is there is brought up to date.
Way = Literal["build", "rebuild", "carry"]


class Kind(msgspec.Struct, frozen=True):
    """What a model's header says about how its rows are kept."""

    name: str
    unique_key: tuple[str, ...] = ()
    group_key: tuple[str, ...] = ()
    keeps: bool = False
    append_from: tuple[str, ...] = ()
    retraction: str = "append"
    schema_change: str = "append_new_columns"
    full_refresh: bool | None = None
    replay: str | None = None
    timestamps: bool = False
    updated_at: str | None = None
    check_columns: tuple[str, ...] = ("*",)
    hard_deletes: bool = True
    valid_from: str = "valid_from"
    valid_to: str = "valid_to"

    @property
    def holds_history(self) -> bool:
        """Are there rows in it that its query does not give back?"""
        return self.name in ("append", "scd2") or self.keeps


def kind_of(materialized: str, options: Mapping[str, Any]) -> Kind:
    """The kind of a model's table.

    >>> kind_of("merge", {"unique_key": ["id"], "deletes": "keep"}).holds_history
    True
    """
    return Kind(
        materialized,
        _texts(options.get("unique_key")),
        _texts(options.get("group_key")),
        materialized == "merge" and options.get("deletes") == "keep",
        _texts(options.get("append_from")),
        options.get("on_retraction") or "append",
        options.get("on_schema_change") or "append_new_columns",
        options.get("full_refresh"),
        options.get("replay_on_change"),
        options.get("snapshot_strategy") == "timestamp",
        options.get("updated_at"),
        _texts(options.get("check_columns")) or ("*",),
        options.get("invalidate_hard_deletes") is not False,
        options.get("valid_from_column") or "valid_from",
        options.get("valid_to_column") or "valid_to",
    )


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(item) for item in value) if isinstance(value, Sequence) else ()


class Standing(msgspec.Struct, frozen=True):
    """What is known of the table before a run.

    ``known``: a record speaks of it; ``untouched``: nobody else wrote it since. ``was`` is the
    kind it was built as, ``kept`` what the record says of rows that its query does not give.
    ``same``: its definition is the recorded one; ``same_query``: its query is, at least.
    """

    there: bool = False
    known: bool = False
    untouched: bool = False
    was: str = ""
    kept: str = ""
    same: bool = False
    same_query: bool = False


class Lost(Exception):  # noqa: N818 - an outcome, not a failure
    """Only a rebuild would help, and it would drop what the table holds: a code and a sentence."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(f"{code}: {why}")
        self.code = code
        self.why = why


def way_of(kind: Kind, reason: str, standing: Standing) -> Way:
    """Which way a table goes; raises ``Lost`` where it would have to be rebuilt and must not be.

    >>> way_of(Kind("append"), "first_run", Standing())
    'build'
    """
    if not standing.there:
        return "build"
    if reason == "full_refresh" or kind.full_refresh is True:
        return "rebuild"
    history = kind.holds_history or standing.kept == HISTORY
    if not standing.known:
        if history:
            raise Lost("STAMP_UNREADABLE", "the table is there, but nothing tells how it was made")
        return "rebuild"
    if not standing.untouched:
        if history:
            raise Lost("TARGET_MODIFIED_OUTSIDE", "the table was written by someone else")
        return "rebuild"
    if standing.kept == HISTORY and (standing.was != kind.name or not kind.holds_history):
        raise Lost("DEFINITION_CHANGED", f"the table was built as `{standing.was}`")
    if standing.same:
        return "carry"
    replayed = kind.replay == "full" and not (history and standing.same_query)
    if replayed or standing.was != kind.name:
        return "rebuild"
    if kind.holds_history and (standing.kept == HISTORY or kind.keeps):
        return "carry"  # of keys that vanish while `deletes keep` is added, rows stay, too
    return "carry" if kind.name == "merge" and kind.replay == FORWARD else "rebuild"


def kept_by(kind: Kind, way: Way, standing: Standing) -> str:
    """What the record says afterwards of rows that the query does not give."""
    if kind.holds_history:
        return HISTORY
    if way == "carry" and (not standing.same or standing.kept == FORWARD):
        return FORWARD
    return ""
