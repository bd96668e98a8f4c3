"""The shape of a table that is about to be built, compared with the one that stands."""

from __future__ import annotations

import re

import msgspec

from sqb.lake.metadata import TableFacts
from sqb.lake.types import spark_type

_DIRECTION = re.compile(r" (asc|desc)(?: nulls (first|last))?$")
#: A column at the beginning of a term, or the only one inside a transform.
_COLUMN = re.compile(r"\s*(?:\w+\s*\((?:\s*\d+\s*,)?\s*)?(`(?:[^`]|``)+`|\w+)")


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


def not_given(shape: Shape) -> tuple[str, str] | None:
    """A column that the layout names and the rows don't have, after the header's key for it.

    >>> not_given(Shape((("id", "INT"),), ("bucket(4, ID)", "days(`d`)")))
    ('partitioned_by', 'd')
    >>> not_given(Shape((("id", "INT"), ("s", "STRUCT<a: INT>")), ("s.a",), ("`id` DESC",)))
    """
    known = {name.lower() for name, _ in shape.columns}
    layout = (("partitioned_by", shape.partitioned_by), ("sorted_by", shape.sorted_by))
    for key, terms in layout:
        for term in terms:
            found = _COLUMN.match(term)
            column = found[1].strip("`").replace("``", "`") if found else ""
            if found and column.lower() not in known:
                return key, column
    return None


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
