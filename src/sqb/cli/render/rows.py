"""Rows of a query as table, JSON or CSV.

In JSON, decimals are text, so that no digit is lost, and so are the three numbers that JSON has no
word for: ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``, as Spark writes them.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.cli.output import Output
from sqb.cli.render.words import columns as width
from sqb.cli.render.words import count, fit

if TYPE_CHECKING:
    import pyarrow as pa

_WIDEST_CELL = 40
_NARROWEST_CELL = 6


def of(data: pa.Table) -> tuple[list[str], list[list[Any]]]:
    """Names and columns. A name that occurs twice gets a number, so that no column is lost."""
    names: list[str] = []
    for name in data.column_names:
        unique, number = name, 1
        while unique in names:
            number += 1
            unique = f"{name}_{number}"
        names.append(unique)
    return names, [column.to_pylist() for column in data.columns]


def as_json(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> str:
    """A list of objects."""
    plain = [[_plain(value) for value in column] for column in columns]
    rows = [dict(zip(names, row, strict=True)) for row in zip(*plain, strict=True)]
    encoded = msgspec.json.encode(rows, enc_hook=str)
    return msgspec.json.format(encoded, indent=2).decode() + "\n"


def as_csv(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> str:
    """CSV with a header; NULL is an empty field."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    for row in zip(*columns, strict=True):
        writer.writerow(["" if value is None else _text(value) for value in row])
    return file.getvalue()


def as_table(names: Sequence[str], columns: Sequence[Sequence[Any]], out: Output) -> Iterator[str]:
    """Aligned columns, numbers to the right.

    On a terminal that is too narrow, wide cells are cut; where that does not help, every row is
    shown as a list of its fields.
    """
    texts = [[_cell("NULL" if v is None else _text(v)) for v in column] for column in columns]
    widths = [
        max(width(name), *(width(text) for text in column), 1)
        for name, column in zip(names, texts, strict=True)
    ]
    if out.terminal:
        room = out.width - 2 * (len(widths) - 1)
        least = [_least(c, t) for c, t in zip(columns, texts, strict=True)]
        widths = _narrowed(widths, least, room)
        if sum(widths) > room:
            yield from _as_records(names, columns, texts, out)
            return
    cells: list[list[str]] = []
    for name, column, body, wide in zip(names, columns, texts, widths, strict=True):
        right = any(_is_number(value) for value in column)
        head = out.style(fit(name, wide, right=right), bold=True)
        rows = [
            out.style(fit(text, wide, right=right), dim=value is None)
            for text, value in zip(body, column, strict=True)
        ]
        cells.append([head, out.style("─" * wide, dim=True), *rows])
    for row in zip(*cells, strict=True):
        yield "  ".join(row).rstrip()


def _least(values: Sequence[Any], texts: Sequence[str]) -> int:
    """How narrow a column may become: names and texts are cut, a number that is cut is a lie."""
    if any(not isinstance(value, str) for value in values if value is not None):
        return max(_NARROWEST_CELL, *(width(text) for text in texts))
    return _NARROWEST_CELL


def _narrowed(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths, the widest made narrower until they fit or none can be."""
    found = list(widths)
    while sum(found) > room:
        wide = [i for i in range(len(found)) if found[i] > least[i]]
        if not wide:
            break
        found[max(wide, key=lambda i: found[i])] -= 1
    return found


def _as_records(
    names: Sequence[str],
    columns: Sequence[Sequence[Any]],
    texts: Sequence[Sequence[str]],
    out: Output,
) -> Iterator[str]:
    """A field per line, rows apart."""
    labels = min(max(width(name) for name in names), out.width // 2)
    for i in range(len(columns[0])):
        if i:
            yield ""
        for name, column, text in zip(names, columns, texts, strict=True):
            label = out.style(fit(name, labels), bold=True)
            value = text[i].rstrip()
            room = out.width - labels - 2
            shown = fit(value, room).rstrip() if width(value) > room else value
            yield f"{label}  {out.style(shown, dim=column[i] is None)}"


def counted(number: int) -> str:
    """``1,204 rows``"""
    return count(number, "row")


def _plain(value: Any) -> Any:
    """Decimals as they are written (``0.00000000``, not ``0E-8``), at any depth."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float) and not math.isfinite(value):
        return _odd(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _odd(value: float) -> str:
    """
    >>> _odd(float("-inf"))
    '-Infinity'
    """
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _cell(text: str) -> str:
    """A value in one line; signs that would move the cursor or colour the screen are shown."""
    line = text.replace("\n", "⏎").replace("\t", " ")
    if not line.isprintable():
        line = "".join(sign if sign.isprintable() else "�" for sign in line)
    return line if width(line) <= _WIDEST_CELL else fit(line, _WIDEST_CELL)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float) and not math.isfinite(value):
        return _odd(value)
    if isinstance(value, list | dict | tuple):
        return msgspec.json.encode(_plain(value), enc_hook=str).decode()
    return str(value)
