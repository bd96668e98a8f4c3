"""A declared source as compiled projects hold it, the queries inside it parsed."""

from __future__ import annotations

from sqb.compile.nodes import SourceTable, SqlText
from sqb.project.source_specs import FileSpec, Freshness
from sqb.project.sources import Source
from sqb.sql.references import analyse_tokens
from sqb.sql.tokens import canonical_of, split_query


def source_table(source: Source) -> SourceTable:
    """The source, with its expression and its freshness query analysed."""
    files = expression = None
    if source.path is not None:
        columns = tuple((c["name"], c["type"]) for c in source.columns if c.get("type"))
        files = FileSpec(
            source.path, source.format or "", source.options, columns, source.immutable_files
        )
    if source.expression is not None:
        expression = _text(source, source.expression, "expression")
    return SourceTable(
        source.name,
        source.schema or "",
        source.table,
        True,
        source.file,
        source.line,
        source.catalog,
        files,
        expression,
        source.freshness,
        _probe(source, source.freshness),
        source.unique_key,
    )


def _probe(source: Source, freshness: Freshness | None) -> SqlText | None:
    """The query that gives the source's value: its own, or the greatest value of a column."""
    if freshness is None or freshness.strategy == "adapter":
        return None
    if freshness.query is not None:
        return _text(source, freshness.query, "freshness")
    sql = f'SELECT MAX(`{freshness.column}`) FROM __source("{source.name}")'
    if freshness.filter is not None:
        sql += f" WHERE (\n{freshness.filter}\n)"
    return _text(source, sql, "freshness")


def _text(source: Source, sql: str, key: str) -> SqlText:
    line = source.lines.get(key, source.line)
    tokens = split_query(sql.strip(), file=source.file, first_line=line)
    return SqlText(tokens.sql, analyse_tokens(tokens, source.file), canonical_of(tokens))
