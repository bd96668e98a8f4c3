"""Signed changes of a table's own rows: their values, and equal rows as one, to the last bit."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from sqb.refresh.ir import Col
from sqb.refresh.script import COPIES, WEIGHT, Script

_FLOATS_INSIDE = re.compile(r"[<:,] ?(?:float|double)")


class Target(msgspec.Struct, frozen=True):
    """The table as it stands: where it is read, what its columns are called, Spark's types.

    One that is ``small`` is read whole: looking for the rows that a change meets costs more.
    """

    relation: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    small: bool = False


class Signed(msgspec.Struct, frozen=True):
    """The step with the netted change, and the rows of it that must not be.

    The change has the target's columns, the weight of each row and, where rows go, how many
    copies of it the target shall hold afterwards.
    """

    change: str
    unless: tuple[Forbidden, ...] = ()


class Forbidden(msgspec.Struct, frozen=True):
    """Rows that a change must not have: a condition in the target's own names, and the reason."""

    rows: str
    code: str
    why: str


def not_there(rows: str) -> tuple[Forbidden, ...]:
    """Rows that would take away what the target does not hold."""
    return (Forbidden(rows, "INTEGRITY", "the table does not hold what the change takes away"),)


def netted(
    script: Script, cols: Sequence[Col], parts: Sequence[tuple[str, str]], target: Target
) -> str:
    """The rows of all parts with their weights, equal rows as one, those that cancel left out."""
    names = listed(cols)
    union = " UNION ALL ".join(
        f"SELECT {names}, {weight} AS {WEIGHT} FROM {part}" for part, weight in parts
    )
    typed = [(col.name, kind) for col, kind in zip(cols, target.types, strict=True)]
    return script.add("change", net(typed, union), [part for part, _ in parts])


def net(columns: Sequence[tuple[str, str]], weighed: str, left: str = "<> 0") -> str:
    """The rows of a query with weights, equal rows as one, those that cancel left out.

    ``columns`` are names as SQL has them, with Spark's types; ``left`` says which weights stay.
    """
    names = ", ".join(name for name, _ in columns)
    shadows = [exact(name, kind) for name, kind in columns]
    grouped = ", ".join([names, *(shadow for shadow in shadows if shadow)])
    same = ", ".join(f"{kept(name, kind)} AS {name}" for name, kind in columns)
    return (
        f"SELECT {same}, SUM({WEIGHT}) AS {WEIGHT},"
        f" SUM(CASE WHEN {WEIGHT} > 0 THEN {WEIGHT} ELSE 0 END) AS {COPIES}"
        f" FROM ({weighed}) AS sqb_all GROUP BY {grouped} HAVING SUM({WEIGHT}) {left}"
    )


def grouped_by(cols: Sequence[Col], target: Target) -> str:
    """What tells rows apart, also where Spark takes their values for equal."""
    shadows = (exact(col.name, kind) for col, kind in zip(cols, target.types, strict=True))
    return ", ".join([listed(cols), *(shadow for shadow in shadows if shadow)])


def kept_columns(cols: Sequence[Col], target: Target) -> str:
    """The columns of rows that were grouped, as they were."""
    pairs = zip(cols, target.types, strict=True)
    return ", ".join(f"{kept(col.name, kind)} AS {col.name}" for col, kind in pairs)


def kept(value: str, kind: str) -> str:
    """A value that rows were grouped by, as it was: Spark makes 0.0 of -0.0 there."""
    if kind.lower() in ("float", "double"):
        return (
            f"CASE WHEN {exact(value, kind)} = '-0.0' THEN CAST('-0.0' AS {kind}) ELSE {value} END"
        )
    return f"ANY_VALUE({value})" if _FLOATS_INSIDE.search(kind.lower()) else value


def exact(value: str, kind: str) -> str | None:
    """What tells values apart that compare as equal: 0.0 and -0.0, collated strings."""
    kind = kind.lower()
    if kind in ("float", "double") or _FLOATS_INSIDE.search(kind):
        return f"CAST({value} AS STRING)"
    if kind.startswith("string") and "collate" in kind:
        return f"CAST({value} AS BINARY)"
    return None


def listed(cols: Sequence[Col]) -> str:
    """The names of columns, as SQL has them."""
    return ", ".join(col.name for col in cols)
