"""Which files two versions of a table don't share, and how a scan can leave out the others.

A file that both have, with the same marks of deleted rows, gives the same rows in both: they
cancel. Of the others it is only the condition on ``_file`` that is exact. Iceberg does not leave
out files by it, so a range of one column is added, taken from what the files say of themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from sqb.lake.data_files import DataFile, Files
from sqb.lake.metadata import Column
from sqb.refresh.changes import TableChange

#: A condition that names more files than this is not written.
_MOST_FILES = 1000
#: More ranges than this become one.
_MOST_RANGES = 20
#: Longer bounds are no help.
_LONGEST = 200
#: Bytes of a point in time.
_INSTANT = 8
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - an instant or a wall clock, as the column says


class Within(msgspec.Struct, frozen=True):
    """A column and the ranges that its values lie in, as texts; NULL may be among them."""

    column: str
    type: str
    ranges: tuple[tuple[str, str], ...]
    nulls: bool


class Part(msgspec.Struct, frozen=True):
    """The files of one version to read, how many rows they have, and how many bytes are read."""

    paths: tuple[str, ...] = ()
    within: Within | None = None
    rows: int = 0
    read: int = 0


class Parts(msgspec.Struct, frozen=True):
    """What there is to read of two versions to know how they differ."""

    old: Part
    new: Part


def differing(old: Files, new: Files, columns: Sequence[Column]) -> Parts | None:
    """The files that differ; None if that says nothing: no file stays, or too many do not.

    ``columns`` are those that are the same in both versions.
    """
    there = [_sequences(version) for version in (old, new)]
    paths = {path for path in there[0] | there[1] if there[0].get(path) != there[1].get(path)}
    paths |= _marked(old, new)
    if len(paths) > _MOST_FILES or paths >= there[0].keys() & there[1].keys():
        return None
    return Parts(*(_part(version.data, paths, columns) for version in (old, new)))


def limited(change: TableChange, parts: Parts) -> TableChange:
    """The change, as large as the files that differ; none if no file does."""
    old, new = parts.old, parts.new
    if not old.paths and not new.paths:
        return TableChange("none", change.old, change.new)
    come, gone = change.added_rows, change.removed_rows
    return msgspec.structs.replace(
        change,
        added_rows=new.rows if come is None else come,
        removed_rows=old.rows if gone is None else gone,
        bytes=old.read + new.read,
    )


def _sequences(version: Files) -> dict[str, list[int]]:
    """The files by path. One that was added twice is there twice."""
    found: dict[str, list[int]] = {}
    for file in sorted(version.data, key=lambda file: file.sequence):
        found.setdefault(file.path, []).append(file.sequence)
    return found


def _marked(old: Files, new: Files) -> set[str]:
    """The data files that delete files of only one of the versions may be about."""
    moved = set(old.deletes) ^ set(new.deletes)
    every = (*old.data, *new.data)
    found = {mark.target for mark in moved if mark.target is not None}
    places = {mark.place for mark in moved if mark.target is None}
    return found | {file.path for file in every if None in places or file.place in places}


def _part(data: Sequence[DataFile], paths: set[str], columns: Sequence[Column]) -> Part:
    """How the files of ``paths`` are read, and other files of the version as few as can be."""
    files = [file for file in data if file.path in paths]
    if not files:
        return Part()
    others = [file for file in data if file.path not in paths]
    best, least = None, sum(file.size for file in others)
    for column in columns:
        spans = _spans(column, files)
        within = _within(column, spans, files) if spans is not None else None
        if spans is None or within is None:
            continue
        met = sum(file.size for file in others if _meets(column, file, spans))
        if met < least:
            best, least = within, met
    named = tuple(sorted({file.path for file in files}))
    read = least + sum(file.size for file in files)
    return Part(named, best, sum(file.rows for file in files), read)


#: The lowest and the highest value: numbers, or bytes whose order is that of the texts.
Span = tuple[Any, Any]


def _spans(column: Column, files: Sequence[DataFile]) -> list[Span] | None:
    """The ranges of a column in files, apart from each other; None if one does not tell."""
    found = [_span(column, file) for file in files]
    known = sorted(span for span in found if span is not None)
    if not known or len(known) < len(found):
        return None
    out = [known[0]]
    for low, high in known[1:]:
        if low <= out[-1][1]:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out if len(out) <= _MOST_RANGES else [(out[0][0], out[-1][1])]


def _span(column: Column, file: DataFile) -> Span | None:
    raw = file.low.get(column.id), file.high.get(column.id)
    low, high = (None if bound is None else _value(column.type, bound) for bound in raw)
    return None if low is None or high is None else (low, high)


def _meets(column: Column, file: DataFile, spans: Sequence[Span]) -> bool:
    """May a scan for the ranges not leave out this file?"""
    own = _span(column, file)
    if own is None or file.nulls.get(column.id) != 0:
        return True
    return any(own[0] <= high and low <= own[1] for low, high in spans)


def _within(column: Column, spans: Sequence[Span], files: Sequence[DataFile]) -> Within | None:
    texts = [(_text(column.type, low), _text(column.type, high)) for low, high in spans]
    ranges = tuple((low, high) for low, high in texts if low is not None and high is not None)
    nulls = any(file.nulls.get(column.id) != 0 for file in files)
    return Within(column.name, column.type, ranges, nulls) if len(ranges) == len(texts) else None


def _value(kind: str, raw: bytes) -> int | bytes | None:
    """A bound from Iceberg's form for single values; None if it is not used.

    NaN is in no range, so columns of floating point numbers are left alone.
    """
    if kind in ("int", "long", "date"):
        # a column that was widened has the shorter form in its older files
        return int.from_bytes(raw, "little", signed=True)
    if kind in ("timestamp", "timestamptz") and len(raw) == _INSTANT:
        return int.from_bytes(raw, "little", signed=True)
    if kind.startswith("decimal("):
        return int.from_bytes(raw, "big", signed=True)
    return raw if kind == "string" and len(raw) <= _LONGEST else None


def _text(kind: str, value: int | bytes) -> str | None:
    """A bound as text that Spark casts to the type; None if there is none.

    >>> _text("date", 0), _text("decimal(38, 2)", -7), _text("timestamptz", 1)
    ('1970-01-01', '-0.07', '1970-01-01 00:00:00.000001+00:00')
    """
    try:
        if isinstance(value, bytes):
            return value.decode()
        if kind == "date":
            return (_EPOCH + timedelta(days=value)).date().isoformat()
        if kind.startswith("timestamp"):
            zone = "+00:00" if kind == "timestamptz" else ""
            return (_EPOCH + timedelta(microseconds=value)).isoformat(" ") + zone
        if kind.startswith("decimal("):
            scale = kind.rpartition(",")[2].strip(" )")
            return f"{Decimal(f'{value}E-{scale}'):f}"
    except (OverflowError, UnicodeDecodeError):
        return None
    return str(value)
