"""What ``seeds/*.yml`` says about seeds: column types and how their CSV files are to be read."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from typing import Any

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.project.column_types import TYPE_NAMES, simple_type
from sqb.project.names import check_name, is_identifier
from sqb.project.yaml_files import Table, load_yaml

_KEYS = ("name", "columns", "csv_settings", "description", "tags", "schema", "meta")
_COLUMN_KEYS = ("name", "type", "description")


class CsvSettings(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a CSV file is read; the names are those of Python's csv module and of pandas."""

    delimiter: str = ","
    quotechar: str = '"'
    doublequote: bool = True
    escapechar: str | None = None
    skipinitialspace: bool = False
    lineterminator: str = "\n"
    encoding: str = "utf-8"
    na_values: tuple[str, ...] | dict[str, tuple[str, ...]] = ()
    keep_default_na: bool = False


class SeedSpec(msgspec.Struct, frozen=True):
    """One entry of a seeds file."""

    name: str
    file: str
    line: int
    columns: tuple[tuple[str, str], ...] = ()
    csv_settings: CsvSettings = CsvSettings()
    description: str | None = None
    tags: tuple[str, ...] = ()
    schema: str | None = None
    meta: dict[str, Any] = {}
    column_descriptions: dict[str, str] = {}


def load_seed_specs(
    files: Mapping[str, bytes], environ: Mapping[str, str] | None = None
) -> dict[str, SeedSpec]:
    """Every entry of the seeds files by name."""
    variables = os.environ if environ is None else environ
    found: dict[str, SeedSpec] = {}
    for file, content in files.items():
        document = load_yaml(content, file, variables)
        document.check_keys(("seeds",), "a seeds file")
        for entry in document.tables("seeds"):
            spec = _spec(entry)
            other = found.get(spec.name)
            if other is not None:
                raise SqbError(
                    "P007",
                    f"the seed `{spec.name}` is described twice, "
                    f"also in {other.file} line {other.line}",
                    file=file,
                    line=spec.line,
                    help="keep one of the two",
                )
            found[spec.name] = spec
    return found


def _spec(entry: Table) -> SeedSpec:
    name = entry.required("name", "a seed")
    check_name(name, "seed", file=entry.file, line=entry.place("name"))
    entry.check_keys(_KEYS, f"the seed `{name}`")
    schema = entry.text("schema")
    if schema is not None and not is_identifier(schema):
        raise entry.wrong("schema", "`schema` must be a name of letters, digits and underscores")
    meta = entry.table("meta")
    return SeedSpec(
        name=name,
        file=entry.file,
        line=entry.line,
        columns=tuple(_columns(entry, name)),
        csv_settings=_csv_settings(entry),
        description=entry.text("description"),
        tags=entry.texts("tags"),
        schema=schema,
        meta=meta.plain() if meta else {},
        column_descriptions={
            column.required("name", "a column"): text
            for column in entry.tables("columns")
            if (text := column.text("description"))
        },
    )


def _columns(entry: Table, name: str) -> list[tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for column in entry.tables("columns"):
        column.check_keys(_COLUMN_KEYS, f"a column of `{name}`")
        own = column.required("name", "a column")
        declared = column.required("type", f"the column `{own}`")
        spark_type = simple_type(declared)
        if spark_type is None:
            raise column.wrong(
                "type",
                f"`{declared}` is not a Spark SQL type that a seed column can have",
                did_you_mean(declared, TYPE_NAMES) or f"the types are {', '.join(TYPE_NAMES)}",
            )
        if own.lower() in found:
            raise column.wrong("name", f"the column `{own}` is declared twice")
        found[own.lower()] = (own, spark_type)
    return list(found.values())


def _csv_settings(entry: Table) -> CsvSettings:
    given = entry.table("csv_settings")
    if given is None:
        return CsvSettings()
    usual = CsvSettings()
    given.check_keys(CsvSettings.__struct_fields__, "`csv_settings`")
    for key in ("delimiter", "quotechar", "escapechar"):
        value = given.text(key)
        if value is not None and (len(value) != 1 or value in "\r\n"):
            raise given.wrong(key, f"`{key}` must be one character")
    terminator = given.choice("lineterminator", ("\n", "\r\n", "\r")) or usual.lineterminator
    encoding = given.text("encoding") or usual.encoding
    try:
        encoding = codecs.lookup(encoding).name
        "x".encode(encoding)  # refuses codecs such as base64, which are not for text
    except LookupError:
        raise given.wrong("encoding", f"unknown text encoding `{encoding}`") from None
    settings = CsvSettings(
        delimiter=given.text("delimiter") or usual.delimiter,
        quotechar=given.text("quotechar") or usual.quotechar,
        doublequote=given.flag("doublequote", usual.doublequote),
        escapechar=given.text("escapechar"),
        skipinitialspace=given.flag("skipinitialspace", usual.skipinitialspace),
        lineterminator=terminator,
        encoding="utf-8" if encoding == "utf-8-sig" else encoding,
        na_values=_na_values(given),
        keep_default_na=given.flag("keep_default_na", usual.keep_default_na),
    )
    signs = (settings.delimiter, settings.quotechar, settings.escapechar)
    if len(set(signs)) < len(signs):
        raise given.wrong(
            "delimiter", "`delimiter`, `quotechar` and `escapechar` must differ from each other"
        )
    return settings


def _na_values(given: Table) -> tuple[str, ...] | dict[str, tuple[str, ...]]:
    value = given.values.get("na_values")
    if isinstance(value, Table):
        return {column: value.texts(column) for column in value.values}
    return given.texts("na_values")
