"""Values of the strategies ``column`` and ``sql``: asked for together, each error its own.

A query runner is handed in. What comes back is brought into one form: instants in UTC, whole
numbers, texts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta, timezone

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MOMENTS = ("date", "timestamp", "timestamp_ntz", "timestamp_ltz")
_INTEGERS = ("tinyint", "smallint", "int", "bigint")

#: SQL in, rows out.
Runner = Callable[[str], Sequence[Sequence[str | None]]]


class Probe(msgspec.Struct, frozen=True):
    """A scalar query and the kind of value that it should give."""

    sql: str
    kind: str


class Answer(msgspec.Struct, frozen=True):
    """The value in its one form, or why there is none. ``lasting``: asking again gives the same."""

    value: str | None
    why: str = ""
    lasting: bool = True


def evaluate(
    probes: Mapping[str, Probe], run: Runner, tell: Callable[[Exception], str]
) -> dict[str, Answer]:
    """Every value, in one query if all are well; else one by one, so that one spoils no other."""
    if not probes:
        return {}
    texts = {name: _typed(name, probe) for name, probe in probes.items()}
    try:
        rows = list(run("\nUNION ALL\n".join(texts.values())))
    except Exception as error:  # noqa: BLE001 - whatever Spark raises is about one of them
        if len(texts) == 1:
            return dict.fromkeys(texts, Answer(None, tell(error), lasting=False))
        out: dict[str, Answer] = {}
        for name, probe in probes.items():
            out |= evaluate({name: probe}, run, tell)
        return out
    return {
        str(name): normal(probes[str(name)].kind, str(typed), text) for name, typed, text in rows
    }


def _typed(name: str, probe: Probe) -> str:
    """A row of name, the value's type, and the value as text; instants as microseconds."""
    text = "CAST(v AS STRING)"
    if probe.kind == "timestamp":
        text = "CAST(unix_micros(CAST(v AS TIMESTAMP)) AS STRING)"
    label = name.replace("\\", "\\\\").replace("'", "\\'")
    return (
        f"SELECT '{label}' AS n, typeof(v) AS t, {text} AS x FROM (SELECT (\n{probe.sql}\n) AS v)"
    )


def normal(kind: str, typed: str, text: str | None) -> Answer:
    """A value as Spark gave it, in the form in which values are compared.

    >>> normal("timestamp", "date", "1769839200000000").value
    '2026-01-31T06:00:00+00:00'
    >>> normal("integer", "string", "7").why
    'its freshness value is of type string, not an integer'
    """
    if kind == "timestamp" and typed not in _MOMENTS:
        return Answer(None, f"its freshness value is of type {typed}, not a date or timestamp")
    if kind == "integer" and not (typed in _INTEGERS or _is_whole(typed)):
        return Answer(None, f"its freshness value is of type {typed}, not an integer")
    if text is None:
        return Answer(None, "its freshness value is NULL (no rows?)")
    if kind != "timestamp":
        return Answer(text)
    try:
        return Answer((_EPOCH + timedelta(microseconds=int(text))).isoformat())
    except OverflowError:
        return Answer(None, "its freshness value is beyond the years 1 to 9999")


def _is_whole(typed: str) -> bool:
    return typed.startswith("decimal(") and typed.endswith(",0)")


def moment_us(value: str) -> int:
    """The instant of a timestamp value, in microseconds since the epoch."""
    return (datetime.fromisoformat(value) - _EPOCH) // timedelta(microseconds=1)
