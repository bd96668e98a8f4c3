"""Sources as ``sources/*.yml`` declare them: which table is read, and how its freshness is seen.

Form and rules are checked for everything the contract knows; what this release can read is the
question of :func:`check_sources_available`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.project.column_types import TYPE_NAMES, column_type
from sqb.project.durations import duration_seconds
from sqb.project.names import check_name, is_identifier
from sqb.project.source_specs import AgePolicy, Freshness
from sqb.project.yaml_files import Table, load_yaml

_KEYS = (
    "name",
    "schema",
    "table",
    "catalog",
    "expression",
    "path",
    "format",
    "immutable_files",
    "options",
    "managed",
    "write_strategy",
    "cursor_column",
    "unique_key",
    "columns",
    "audits",
    "description",
    "meta",
    "freshness",
)
_COLUMN_KEYS = ("name", "type", "nullable", "description", "meta", "audits")
_FRESHNESS_KEYS = (
    "strategy",
    "type",
    "column",
    "query",
    "filter",
    "lag_tolerance",
    "age_policy",
)
_AGE_KEYS = ("warn_after", "error_after")
#: Options of Spark's readers that sqb sets itself.
_OWN_OPTIONS = ("path", "basepath", "recursivefilelookup", "pathglobfilter")
_WRITE_STRATEGIES = ("append", "merge", "table", "delete_insert")


class Source(msgspec.Struct, frozen=True):
    """One declared source."""

    name: str
    schema: str | None
    table: str
    file: str
    line: int
    catalog: str | None = None
    expression: str | None = None
    path: str | None = None
    format: str | None = None
    immutable_files: bool = False
    options: dict[str, str] = {}
    managed: bool = False
    write_strategy: str | None = None
    cursor_column: str | None = None
    unique_key: tuple[str, ...] = ()
    columns: tuple[dict[str, Any], ...] = ()
    audits: tuple[Any, ...] = ()
    description: str | None = None
    meta: dict[str, Any] = {}
    freshness: Freshness | None = None
    #: The line of each key that was written, for errors that come later.
    lines: dict[str, int] = {}


def load_sources(
    files: Mapping[str, bytes], environ: Mapping[str, str] | None = None
) -> dict[str, Source]:
    """Every declared source by name."""
    variables = os.environ if environ is None else environ
    found: dict[str, Source] = {}
    folded: dict[str, Source] = {}
    for file, content in files.items():
        document = load_yaml(content, file, variables)
        document.check_keys(("sources",), "a sources file")
        for entry in document.tables("sources"):
            source = _source(entry)
            other = folded.setdefault(source.name.lower(), source)
            if other is not source:
                raise SqbError(
                    "P007",
                    f"the source `{source.name}` is declared twice, "
                    f"also in {other.file} line {other.line}",
                    file=file,
                    line=source.line,
                    help="keep one of the two",
                )
            found[source.name] = source
    return found


def check_sources_available(sources: Mapping[str, Source]) -> None:
    """Raise C011 for the first source that only a later release can read or watch."""
    for source in sources.values():
        postponed: tuple[tuple[bool, str, str, str], ...] = (
            (source.managed, "managed", "a managed source", "0.5"),
            (source.write_strategy is not None, "write_strategy", "`write_strategy`", "0.5"),
            (source.cursor_column is not None, "cursor_column", "`cursor_column`", "0.5"),
            (_audited(source), "audits", "an audit of a source", "0.5"),
        )
        for is_set, key, what, release in postponed:
            if is_set:
                raise SqbError(
                    "C011",
                    f"{what} arrives in release {release} (source `{source.name}`)",
                    file=source.file,
                    line=source.lines.get(key, source.line),
                    help="leave it out until then",
                )


def _audited(source: Source) -> bool:
    return bool(source.audits) or any("audits" in column for column in source.columns)


def _source(entry: Table) -> Source:
    name = entry.required("name", "a source")
    check_name(name, "source", file=entry.file, line=entry.place("name"))
    entry.check_keys(_KEYS, f"the source `{name}`")
    path, expression = entry.text("path"), entry.text("expression")
    schema = entry.text("schema")
    managed = entry.flag("managed", False)
    if path is not None and expression is not None:
        raise entry.wrong("expression", f"source `{name}` has both `path` and `expression`")
    if not (path or expression or schema or managed or entry.text("catalog")):
        raise entry.wrong(
            "name", f"source `{name}` needs `schema`", "where the table lies, e.g. schema: raw"
        )
    for key in ("schema", "table", "catalog"):
        value = entry.text(key)
        if value is not None and not is_identifier(value):
            raise entry.wrong(
                key, f"`{key}` must be a name of letters, digits and underscores, not `{value}`"
            )
        if value is not None and (path or expression):
            other = "path" if path else "expression"
            raise entry.wrong(key, f"source `{name}` has both `{key}` and `{other}`")
    if path is not None and "://" in path and not path.startswith("file://"):
        raise entry.wrong(
            "path",
            f"source `{name}`: only local and mounted files can be listed",
            "read an object store through a table, or through a catalog in [spark.conf]",
        )
    file_format = entry.choice("format", ("parquet", "csv", "json"))
    if path is not None and file_format is None:
        raise entry.wrong("path", f"source `{name}` needs `format`: parquet, csv or json")
    if path is None:
        for key in ("format", "immutable_files", "options"):
            if key in entry.values:
                raise entry.wrong(key, f"`{key}` belongs to `path`, which source `{name}` lacks")
    meta = entry.table("meta")
    source = Source(
        name=name,
        schema=schema,
        table=entry.text("table") or name,
        file=entry.file,
        line=entry.line,
        catalog=entry.text("catalog"),
        expression=expression,
        path=path,
        format=file_format,
        immutable_files=entry.flag("immutable_files", False),
        options=_options(entry),
        managed=managed,
        write_strategy=entry.choice("write_strategy", _WRITE_STRATEGIES),
        cursor_column=entry.text("cursor_column"),
        unique_key=entry.texts("unique_key"),
        columns=tuple(_columns(entry, name)),
        audits=_audits(entry),
        description=entry.text("description"),
        meta=meta.plain() if meta else {},
        freshness=_freshness(entry, name),
        lines=dict(entry.lines),
    )
    _check_managed(entry, source)
    return source


def _options(entry: Table) -> dict[str, str]:
    """Options of Spark's reader, as it wants them: texts."""
    given = entry.table("options")
    found: dict[str, str] = {}
    for key, value in given.plain().items() if given is not None else ():
        if key.lower() in _OWN_OPTIONS:
            raise entry.wrong("options", f"the option `{key}` is set by sqb", "leave it out")
        if isinstance(value, dict | list) or value is None:
            raise entry.wrong("options", f"the option `{key}` must be a text, a number or a flag")
        found[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _columns(entry: Table, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    for column in entry.tables("columns"):
        column.check_keys(_COLUMN_KEYS, f"a column of `{name}`")
        own = column.required("name", "a column")
        if own.lower() in seen:
            raise column.wrong("name", f"the column `{own}` is declared twice")
        seen.add(own.lower())
        declared = column.text("type")
        column.flag("nullable", True)
        column.text("description")
        column.table("meta")
        _audits(column)
        values = column.plain()
        if declared is not None:
            values["type"] = column_type(declared)
            if values["type"] is None:
                raise column.wrong(
                    "type",
                    f"`{declared}` is not a Spark SQL type",
                    did_you_mean(declared, TYPE_NAMES),
                )
        found.append(values)
    return found


def _audits(entry: Table) -> tuple[Any, ...]:
    given = entry.values.get("audits")
    if given is not None and not isinstance(given, list):
        raise entry.wrong("audits", "`audits` must be a list")
    return tuple(entry.plain()["audits"]) if given else ()


def _check_managed(entry: Table, source: Source) -> None:
    """What each write strategy of a loader needs; outside of ``managed`` they mean nothing."""
    strategy = source.write_strategy
    if not source.managed:
        for key in ("write_strategy", "cursor_column"):
            if key in entry.values:
                raise entry.wrong(key, f"`{key}` is for managed sources", "add managed: true")
        return
    if source.path or source.expression:
        raise entry.wrong("managed", "a managed source has neither `path` nor `expression`")
    needs_cursor = strategy in ("merge", "delete_insert")
    needs_key = strategy == "merge"
    if needs_cursor and source.cursor_column is None:
        raise entry.wrong("write_strategy", f"`{strategy}` needs `cursor_column`")
    if needs_key and not source.unique_key:
        raise entry.wrong("write_strategy", f"`{strategy}` needs `unique_key`")
    if source.unique_key and strategy in ("append", "table", "delete_insert"):
        raise entry.wrong("unique_key", f"`{strategy}` takes no `unique_key`")
    if source.cursor_column and strategy == "table":
        raise entry.wrong("cursor_column", "`table` takes no `cursor_column`")


def _freshness(entry: Table, name: str) -> Freshness | None:
    given = entry.table("freshness")
    if given is None:
        return None
    given.check_keys(_FRESHNESS_KEYS, f"the freshness of `{name}`")
    strategy = given.choice("strategy", ("adapter", "column", "sql"))
    if strategy is None:
        raise given.wrong("strategy", "freshness needs `strategy`: adapter, column or sql")
    kind = given.choice("type", ("timestamp", "integer", "string"))
    needed = {"adapter": (), "column": ("column", "type"), "sql": ("query", "type")}[strategy]
    barred = {
        "adapter": ("type", "column", "query", "filter"),
        "column": ("query",),
        "sql": ("column", "filter"),
    }[strategy]
    for key in barred:
        if key in given.values:
            raise given.wrong(key, f"the strategy `{strategy}` takes no `{key}`")
    for key in needed:
        given.required(key, f"the strategy `{strategy}`")
    column = given.text("column")
    if column is not None and not is_identifier(column):
        raise given.wrong(
            "column", "`column` must be a plain column name", "use strategy: sql for expressions"
        )
    if strategy == "adapter" and entry.values.get("expression"):
        raise given.wrong("strategy", "the strategy `adapter` needs a table, not an expression")
    timed = kind == "timestamp" or strategy == "adapter"
    tolerance = _duration(given, "lag_tolerance")
    if tolerance is not None and kind != "timestamp":
        raise given.wrong("lag_tolerance", "`lag_tolerance` needs type: timestamp")
    policy = _age_policy(given)
    if policy is not None and not timed:
        raise given.wrong("age_policy", "`age_policy` needs type: timestamp, or the adapter")
    return Freshness(
        strategy=strategy,
        type=kind,
        column=column,
        query=given.text("query"),
        filter=given.text("filter"),
        lag_tolerance=tolerance,
        age_policy=policy,
    )


def _age_policy(given: Table) -> AgePolicy | None:
    ages = given.table("age_policy")
    if ages is None:
        if "age_policy" in given.values:
            raise given.wrong("age_policy", "`age_policy` needs `warn_after` or `error_after`")
        return None
    ages.check_keys(_AGE_KEYS, "`age_policy`")
    policy = AgePolicy(_duration(ages, "warn_after"), _duration(ages, "error_after"))
    if policy.warn_after is None and policy.error_after is None:
        raise given.wrong("age_policy", "`age_policy` needs `warn_after` or `error_after`")
    if policy.warn_after and policy.error_after and policy.warn_after > policy.error_after:
        raise ages.wrong("warn_after", "`warn_after` must not be longer than `error_after`")
    return policy


def _duration(table: Table, key: str) -> int | None:
    value = table.values.get(key)
    if value is None:
        return None
    seconds = duration_seconds(value, "mhd") if isinstance(value, str) else None
    if seconds is None:
        raise table.wrong(key, f"`{key}` must be a duration such as 30m, 6h or 2d")
    return seconds
