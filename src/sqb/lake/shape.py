"""The shape of a table that is about to be built, compared with the one that stands."""

from __future__ import annotations

import re

import msgspec

from sqb.lake.metadata import TableFacts
from sqb.lake.types import spark_type

_DIRECTION = re.compile(r" (asc|desc)(?: nulls (first|last))?$")


class Shape(msgspec.Struct, frozen=True):
    """Ordered columns with their Spark types, and the layout as the model's header writes it."""

    columns: tuple[tuple[str, str], ...] = ()
    partitioned_by: tuple[str, ...] = ()
    sorted_by: tuple[str, ...] = ()


def fits(shape: Shape, facts: TableFacts) -> bool:
    """Can rows of this shape take the place of the table's rows without altering the table?

    A false "no" costs a weaker way of publishing, a false "yes" a wrong table: whatever is
    spelled in an unknown way does not fit.
    """
    return (
        shape.columns == tuple((c.name, spark_type(c.type)) for c in facts.columns)
        and not any(c.required for c in facts.columns)
        and facts.snapshot_columns is None
        and same_layout(shape.partitioned_by, shape.sorted_by, facts)
    )


def same_layout(
    partitioned_by: tuple[str, ...], sorted_by: tuple[str, ...], facts: TableFacts
) -> bool:
    """Is the table laid out as a model's header says?"""
    parts = [_plain(t) for t in partitioned_by] == [_plain(t) for t in facts.partitioning]
    return parts and [_order(t) for t in sorted_by] == [_order(t) for t in facts.sort_order]


def _plain(term: str) -> str:
    return re.sub(r"[\s`]+", "", term).lower()


def _order(term: str) -> str:
    """A sort term with what it leaves out.

    >>> _order("id"), _order("`ts` DESC")
    ('id asc first', 'ts desc last')
    """
    text = " ".join(term.lower().split())
    found = _DIRECTION.search(text)
    direction = found[1] if found else "asc"
    nulls = (found[2] if found else None) or ("first" if direction == "asc" else "last")
    return f"{_plain(text[: found.start()] if found else text)} {direction} {nulls}"
