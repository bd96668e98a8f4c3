"""dbt's ``manifest.json``, schema version 12: the fields that sqb needs, as typed values.

dbt-core 1.10, 1.11 and 1.12 write this version. Fields that sqb does not know are skipped.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec

from sqb.errors import SqbError

#: The one version of the schema that is understood.
SCHEMA_VERSION = 12

_VERSION = re.compile(r"/manifest/v(\d+)\.json$")


class Metadata(msgspec.Struct, frozen=True):
    """Who wrote the manifest, and of which project."""

    dbt_schema_version: str
    dbt_version: str = ""
    project_name: str = ""
    adapter_type: str = ""
    invocation_id: str = ""
    generated_at: str = ""


class Checksum(msgspec.Struct, frozen=True):
    """dbt's hash of a file; for large seeds it is the path."""

    name: str = "none"
    checksum: str = ""


class DependsOn(msgspec.Struct, frozen=True):
    """What a node or macro uses."""

    macros: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()


class Column(msgspec.Struct, frozen=True):
    """A column as a contract sees it."""

    name: str = ""
    data_type: str | None = None
    constraints: list[Any] = []
    quote: bool | None = None


class TestMetadata(msgspec.Struct, frozen=True):
    """What a generic test is called with."""

    name: str = ""
    kwargs: dict[str, Any] = {}
    namespace: str | None = None


class RawNode(msgspec.Struct, frozen=True):
    """A model, seed, snapshot, test or function as dbt writes it."""

    unique_id: str
    name: str
    resource_type: str
    package_name: str
    original_file_path: str = ""
    database: str | None = None
    schema: str | None = None
    alias: str = ""
    relation_name: str | None = None
    checksum: Checksum = Checksum()
    config: dict[str, Any] = {}
    tags: tuple[str, ...] = ()
    raw_code: str = ""
    language: str = "sql"
    depends_on: DependsOn = DependsOn()
    columns: dict[str, Column] = {}
    constraints: list[Any] = []
    version: str | int | float | None = None
    root_path: str | None = None
    attached_node: str | None = None
    test_metadata: TestMetadata | None = None


class RawUnitTest(msgspec.Struct, frozen=True):
    """A unit test as dbt writes it."""

    unique_id: str
    name: str
    package_name: str
    original_file_path: str = ""
    given: list[Any] = []
    expect: Any = None
    overrides: Any = None
    config: dict[str, Any] = {}
    depends_on: DependsOn = DependsOn()
    version: str | int | float | None = None


class Threshold(msgspec.Struct, frozen=True):
    """So many minutes, hours or days."""

    count: int | None = None
    period: str | None = None


class RawFreshness(msgspec.Struct, frozen=True):
    """How old a source may be."""

    warn_after: Threshold | None = None
    error_after: Threshold | None = None
    filter: str | None = None


class RawSource(msgspec.Struct, frozen=True):
    """A source table as dbt writes it."""

    unique_id: str
    name: str
    source_name: str
    package_name: str
    original_file_path: str = ""
    database: str | None = None
    schema: str | None = None
    identifier: str = ""
    relation_name: str | None = None
    loaded_at_field: str | None = None
    loaded_at_query: str | None = None
    freshness: RawFreshness | None = None
    tags: tuple[str, ...] = ()


class RawMacro(msgspec.Struct, frozen=True):
    """A macro: its text and the macros that the text names."""

    unique_id: str
    name: str
    package_name: str
    macro_sql: str = ""
    depends_on: DependsOn = DependsOn()


class _Skipped(msgspec.Struct, frozen=True):
    """Something of which only the name is needed."""


class Manifest(msgspec.Struct, frozen=True):
    """A whole manifest."""

    metadata: Metadata
    nodes: dict[str, RawNode]
    sources: dict[str, RawSource] = {}
    macros: dict[str, RawMacro] = {}
    unit_tests: dict[str, RawUnitTest] = {}
    functions: dict[str, RawNode] = {}
    disabled: dict[str, list[_Skipped]] = {}


class _Head(msgspec.Struct, frozen=True):
    metadata: Metadata


def decode_manifest(content: bytes, file: str = "manifest.json") -> Manifest:
    """The manifest in ``content``; ``file`` is for messages."""
    try:
        return _checked(msgspec.json.decode(content, type=Manifest), file)
    except msgspec.MsgspecError:
        # another version may have another form, and its number is the better message
        head = _head(content)
        if head is not None:
            _check_version(head.metadata, file)
    try:
        # JSON as Python writes it: a fixture of a unit test may hold NaN
        return _checked(msgspec.convert(json.loads(content), Manifest), file)
    except (ValueError, RecursionError) as error:
        raise SqbError(
            "B005",
            f"{file} is not a manifest of dbt: {error}",
            file=file,
            help="delete it and run again, so that dbt writes a new one",
        ) from None


def read_manifest(path: Path) -> Manifest:
    """The manifest at ``path``."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SqbError(
            "B005",
            f"{path.name} can't be read: {error.strerror or error}",
            file=str(path),
            help="run again, so that dbt writes it",
        ) from None
    return decode_manifest(content, path.name)


def _head(content: bytes) -> _Head | None:
    try:
        return msgspec.json.decode(content, type=_Head)
    except msgspec.MsgspecError:
        return None


def _checked(manifest: Manifest, file: str) -> Manifest:
    _check_version(manifest.metadata, file)
    return manifest


def _check_version(metadata: Metadata, file: str) -> None:
    found = _VERSION.search(metadata.dbt_schema_version)
    if found is None or int(found[1]) != SCHEMA_VERSION:
        version = f"version {found[1]}" if found else f"`{metadata.dbt_schema_version}`"
        raise SqbError(
            "B005",
            f"the manifest is of {version}, and sqb reads version {SCHEMA_VERSION} "
            f"(dbt {metadata.dbt_version or 'of an unknown version'})",
            file=file,
            help="use dbt-core 1.10, 1.11 or 1.12",
        )
