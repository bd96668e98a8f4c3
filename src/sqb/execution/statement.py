"""The text that is sent to Spark: the user's own query with its references replaced by span."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sqb.compile.nodes import Binding
from sqb.errors import SqbError
from sqb.execution.content_hash import quote
from sqb.lake.metadata import Column, TableFacts
from sqb.lake.types import spark_type
from sqb.sql.analysis import Analysis, bound
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
    return f"({projected(version, facts.columns, facts.snapshot_columns)})", True


def projected(version: str, wanted: tuple[Column, ...], stored: tuple[Column, ...]) -> str:
    """A select of the rows of a version with the columns that are wanted, matched by id."""
    by_id = {column.id: column for column in stored}
    items = []
    for column in wanted:
        old = by_id.get(column.id)
        kind = _decoded(column.type)
        value = (
            _before(column)
            if old is None
            else _converted(quote(old.name), _decoded(old.type), kind, column.name, 0)
        )
        items.append(f"{value} AS {quote(column.name)}")
    return f"SELECT {', '.join(items)} FROM {version}"


def _before(column: Column) -> str:
    """What rows from before a column came have in it.

    >>> [_before(Column(1, "c", "int", False, default)) for default in ("", "5")]
    ['CAST(NULL AS INT)', "CAST('5' AS INT)"]
    """
    kind = spark_type(column.type)
    if not column.default:
        return f"CAST(NULL AS {kind})"
    value = msgspec.json.decode(column.default)
    if kind == "BINARY":
        return f"unhex({literal(value)})"
    if isinstance(value, str | int | float):
        return f"CAST({literal(value if isinstance(value, str) else column.default)} AS {kind})"
    raise SqbError(
        "X002",
        f"column `{column.name}` has a default that is not a plain value",
        help="write to the source once, then build again",
        exit_code=1,
    )


def _decoded(kind: str) -> Any:
    return msgspec.json.decode(kind) if kind.startswith("{") else kind


def _converted(value: str, old: Any, new: Any, column: str, depth: int) -> str:
    """A value of an older type as the newer one, nested fields matched by id, never by place."""
    if old == new:
        return value
    if not isinstance(new, dict):
        return f"CAST({value} AS {spark_type(new)})"
    if new["type"] == "struct":
        by_id = {field["id"]: field for field in old["fields"]}
        parts = []
        for field in new["fields"]:
            before = by_id.get(field["id"])
            kind = spark_type(_encoded(field["type"]))
            inner = f"CAST(NULL AS {kind})"
            if before is not None:
                at = f"{value}.{quote(before['name'])}"
                inner = _converted(at, before["type"], field["type"], column, depth)
            parts.append(f"{literal(field['name'])}, {inner}")
        return f"if({value} IS NULL, NULL, named_struct({', '.join(parts)}))"
    if new["type"] == "list":
        element = f"x{depth}"
        inner = _converted(element, old["element"], new["element"], column, depth + 1)
        return f"transform({value}, {element} -> {inner})"
    raise SqbError(
        "X002",
        f"column `{column}` is a map whose inner type was altered since its last rows",
        help="write to the source once, or rewrite its rows, then build again",
        exit_code=1,
    )


def _encoded(kind: Any) -> str:
    return kind if isinstance(kind, str) else msgspec.json.encode(kind).decode()


def literal(text: str) -> str:
    """A string literal of Spark SQL, in which ``${x}`` is not a variable of the session."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("${", "\\u0024{")
    return f"'{escaped}'"


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
    edits += bound(analysis.constants, constants)
    return splice(sql, edits)
