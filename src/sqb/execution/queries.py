"""A query of the user's own, outside any model: names mean what they mean in one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sqb.compile.compiler import names_of
from sqb.compile.nodes import Compiled
from sqb.compile.resolve import rebind
from sqb.execution.sources import files_below, read_source
from sqb.execution.statement import full_name, render
from sqb.identity.expected import Expected
from sqb.project.config import Config


class Prepared(msgspec.Struct, frozen=True):
    """The text for Spark, what it reads, and which of that are files."""

    text: str
    reads: tuple[str, ...]
    files: tuple[str, ...]


def prepare(
    sql: str, config: Config, compiled: Compiled, expected: Mapping[str, Expected]
) -> Prepared:
    """Resolve the names of a query; everything is read as it stands now."""
    from sqb.sql.tokens import split_query

    sql = split_query(sql.strip()).sql
    analysis, bindings, extra = rebind(sql, names_of(config, compiled), compiled.sources, "query")
    catalog = config.catalog.name

    def place(name: str, travels: bool) -> tuple[str, bool]:
        node = expected.get(name)
        if node is not None:
            return full_name(catalog, node.namespace, node.relation), False
        return read_source(compiled, catalog, name, travels, {}, {}, extra)

    text = render(sql, analysis, bindings, place, {}).text
    reads = tuple(binding.name for binding in bindings)
    return Prepared(text, reads, tuple(files_below(compiled, reads)))
