"""The text that is sent to Spark: the user's own query with its references replaced by span."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqb.compile.nodes import Binding
from sqb.execution.content_hash import quote
from sqb.lake.metadata import Column, TableFacts
from sqb.lake.types import spark_type
from sqb.sql.analysis import Analysis
from sqb.sql.splice import Edit, Spliced, splice


def full_name(*parts: str) -> str:
    """A quoted name: catalog, schema, table."""
    return ".".join(quote(part) for part in parts)


def pinned(table: str, facts: TableFacts) -> tuple[str, bool]:
    """SQL that reads a table at exactly its pinned version; and whether it is a sub-select.

    A table without a snapshot is empty for good. Where columns were added, renamed or dropped
    without a new snapshot, the snapshot is projected by field id to the columns of the head.
    """
    if facts.snapshot_id is None:
        return f"(SELECT * FROM {table} WHERE false)", True
    version = f"{table} VERSION AS OF {facts.snapshot_id}"
    if facts.snapshot_columns is None:
        return version, False
    return f"({_project(version, facts.columns, facts.snapshot_columns)})", True


def _project(version: str, wanted: tuple[Column, ...], stored: tuple[Column, ...]) -> str:
    by_id = {column.id: column for column in stored}
    items = []
    for column in wanted:
        old = by_id.get(column.id)
        if old is None:
            value = f"CAST(NULL AS {spark_type(column.type)})"
        elif old.type != column.type:
            value = f"CAST({quote(old.name)} AS {spark_type(column.type)})"
        else:
            value = quote(old.name)
        items.append(f"{value} AS {quote(column.name)}")
    return f"SELECT {', '.join(items)} FROM {version}"


def render(
    sql: str,
    analysis: Analysis,
    bindings: tuple[Binding, ...],
    relation: Callable[[str, bool], tuple[str, bool]],
    constants: Mapping[str, str],
) -> Spliced:
    """Replace every reference by ``relation(name, travels)`` and every bound constant by its value.

    ``relation`` gives SQL and whether it is a sub-select, which needs an alias to keep the name
    that the user's columns are qualified with.
    """
    edits: list[Edit] = []
    for binding in bindings:
        reference = binding.reference
        text, is_select = relation(binding.name, reference.travels)
        last = reference.parts[-1]
        renamed = is_select or not text.split(" ", 1)[0].endswith(quote(last))
        if renamed and not reference.aliased:
            text = f"{text} AS {quote(last)}"
        edits.append(Edit(reference.start, reference.end, text))
    for constant in analysis.constants:
        value = constants.get(constant.name)
        if value is not None:
            edits.append(Edit(constant.start, constant.end, f"DATE'{value}'"))
    return splice(sql, edits)
