"""Reading files as Spark tables: exactly the files that were listed, by a temp view of the session.

Types come from the declaration; what it leaves open is inferred. A file that does not have the
columns or the values that are expected fails the model instead of giving NULLs.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from sqb.errors import SqbError, did_you_mean
from sqb.execution.content_hash import quote
from sqb.execution.sources import SourceLook, files_below, files_view
from sqb.freshness.files import Listing, changed
from sqb.project.source_specs import FileSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_DEFAULTS: dict[str, dict[str, str]] = {
    # The header is compared with the columns of the first file: another order must not pass.
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false"},
    "json": {"mode": "FAILFAST"},
    "parquet": {"mergeSchema": "true"},
}
_INFERRED = {"csv": "inferSchema"}
_GLOB = re.compile(r"([\\*?\[\]{},])")


def bind_files(session: SparkSession, look: SourceLook, names: Iterable[str]) -> list[str]:
    """Make the temp views through which ``session`` reads the files below ``names``; which ones."""
    found = files_below(look.compiled, names)
    for name in found:
        spec = look.compiled.sources[name].files
        if spec is None:
            raise AssertionError("a source of files")
        frame = read_files(session, name, spec, look.listings[name])
        frame.createOrReplaceTempView(files_view(name))
    return found


def release_files(session: SparkSession, names: Iterable[str]) -> None:
    """Take the temp views away again."""
    for name in names:
        # One that stays is replaced before it is used again; the error that led here matters more.
        with contextlib.suppress(Exception):
            session.catalog.dropTempView(files_view(name))


def check_unchanged(look: SourceLook, names: Iterable[str]) -> None:
    """Refuse what was read from files that changed meanwhile: it belongs to no version."""
    for name in names:
        moved = changed(look.listings[name])
        if moved:
            raise SqbError(
                "X006",
                f"{moved[0]} of source `{name}` changed while it was read",
                help="nothing was published; build again",
                exit_code=1,
            )


def read_files(
    session: SparkSession,
    name: str,
    spec: FileSpec,
    listing: Listing,
    known: StructType | None = None,
) -> DataFrame:
    """The listed files as one table; of some only, ``known`` are the columns that all have."""
    options = {**_DEFAULTS[spec.format], "basePath": listing.base}
    given = {key.lower() for key in spec.options}
    options = {k: v for k, v in options.items() if k.lower() not in given} | spec.options
    paths = [_escaped(file.path) for file in listing.files]
    _refuse_mixed(name, listing)

    def load(schema: StructType | str | None = None, **more: str) -> DataFrame:
        reader = session.read.format(spec.format).options(**{**options, **more})
        return (reader.schema(schema) if schema is not None else reader).load(paths)

    types = {column.lower(): kind for column, kind in spec.columns}
    if known is not None and not (types and spec.format == "parquet"):
        return load(known)
    if spec.format == "parquet":
        return _cast(name, load(), spec)
    infer = _INFERRED.get(spec.format)
    found = load().schema if infer is None else load(**{infer: "false"}).schema
    _check_declared(name, spec, found.names)
    if not found.names:
        raise SqbError(
            "X001",
            f"the files of source `{name}` have no columns",
            help="they are empty; a source needs one with rows, or with a header",
            exit_code=1,
        )
    untyped = any(field.name.lower() not in types for field in found)
    if untyped and infer is not None and infer.lower() not in given:
        found = load(**{infer: "true"}).schema
    columns = [
        f"{quote(field.name)} {types.get(field.name.lower(), field.dataType.simpleString())}"
        for field in found
    ]
    return load(", ".join(columns))


def _cast(name: str, frame: DataFrame, spec: FileSpec) -> DataFrame:
    """Files that know their own types: declared columns are cast."""
    _check_declared(name, spec, frame.columns)
    types = {column.lower(): kind for column, kind in spec.columns}
    if not types:
        return frame
    return frame.selectExpr(
        *(
            f"CAST({quote(column)} AS {types[column.lower()]}) AS {quote(column)}"
            if column.lower() in types
            else quote(column)
            for column in frame.columns
        )
    )


def _check_declared(name: str, spec: FileSpec, there: list[str]) -> None:
    known = {column.lower() for column in there}
    for column, _ in spec.columns:
        if column.lower() not in known:
            raise SqbError(
                "X001",
                f"the files of source `{name}` have no column `{column}`",
                help=did_you_mean(column, there) or f"they have {', '.join(there) or 'none'}",
                exit_code=1,
            )


def _refuse_mixed(name: str, listing: Listing) -> None:
    """Raise if some files lie in folders of partitions and others don't: Spark leaves these out."""
    ways = listing.partitions()
    if len(ways) > 1:
        (some, one), (others, other) = list(ways.items())[:2]
        told = [
            f"{file} in {'folders of ' + ', '.join(keys) if keys else 'none'}"
            for keys, file in ((some, one), (others, other))
        ]
        raise SqbError(
            "X001",
            f"the files of source `{name}` are not partitioned alike: {' and '.join(told)}",
            help="folders named `column=value` give the rows a column: put all files into such "
            "folders, or none",
            exit_code=1,
        )


def _escaped(path: str) -> str:
    """A path whose letters mean themselves: Spark takes every path for a glob."""
    return _GLOB.sub(r"\\\1", path)
