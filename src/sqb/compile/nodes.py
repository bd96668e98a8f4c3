"""What compiling gives: models, seeds and sources with their references resolved to names.

Everything here is a plain value that can be cached on disk; nothing knows what was built.
"""

from __future__ import annotations

import msgspec

from sqb.sql.analysis import Analysis, Reference
from sqb.sql.splice import Spliced


class ModelSettings(msgspec.Struct, frozen=True, array_like=True):
    """The part of a model's header that planning and building need."""

    materialized: str
    tags: tuple[str, ...]
    description: str | None
    schema: str | None
    alias: str | None
    enabled: bool
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    table_properties: dict[str, str]
    identity: str
    column_descriptions: dict[str, str] = {}


class CompiledModel(msgspec.Struct, frozen=True, array_like=True):
    """One model file: its settings, its expanded query and what the query reads.

    ``body`` maps offsets of ``sql`` to offsets of the file's body, which starts on ``first_line``.
    ``env`` holds the environment values that the text was expanded with.
    """

    name: str
    path: str
    settings: ModelSettings
    sql: str
    pieces: tuple[tuple[int, int, bool], ...]
    body: str
    first_line: int
    analysis: Analysis
    query_hash: str
    env: dict[str, str]

    def line_of(self, offset: int) -> int:
        """The line in the model's file that ``offset`` of ``sql`` came from."""
        origin = Spliced(self.sql, self.pieces).origin(offset)
        return self.first_line + self.body.count("\n", 0, origin)


class CompiledSeed(msgspec.Struct, frozen=True, array_like=True):
    """One CSV file: its typed columns and the hash of what it holds."""

    name: str
    path: str
    schema: str | None
    tags: tuple[str, ...]
    description: str | None
    columns: tuple[tuple[str, str], ...]
    rows: int
    content_hash: str
    column_descriptions: dict[str, str] = {}


class SourceTable(msgspec.Struct, frozen=True, array_like=True):
    """A table that someone else writes, declared in ``sources/`` or just named in a query."""

    name: str
    namespace: str
    table: str
    declared: bool
    file: str | None
    line: int | None


class Binding(msgspec.Struct, frozen=True):
    """A reference in a query's text, resolved to the node it means."""

    reference: Reference
    name: str


class Compiled(msgspec.Struct, frozen=True):
    """The whole project. ``bindings`` has the resolved references of each model, in text order."""

    models: dict[str, CompiledModel]
    seeds: dict[str, CompiledSeed]
    sources: dict[str, SourceTable]
    bindings: dict[str, tuple[Binding, ...]]
    parents: dict[str, tuple[str, ...]]
    disabled: frozenset[str] = frozenset()
