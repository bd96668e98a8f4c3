"""What compiling gives: models, seeds and sources with their references resolved to names.

Everything here is a plain value that can be cached on disk; nothing knows what was built.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sqb.hashing import digest
from sqb.project.source_specs import FileSpec, Freshness
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
    #: How its rows are kept up to date: the keys of the header that say so.
    options: dict[str, Any] = {}
    #: The model that it holds the groups of; it then lies in a schema of its own.
    state_of: str | None = None


class RowState(msgspec.Struct, frozen=True, array_like=True):
    """What ``row_state auto`` makes of a model: its groups, and itself as a query over them.

    Or, where its query is not split, ``why``; ``asked``: its own header asks for it.
    """

    groups: CompiledModel | None = None
    over: CompiledModel | None = None
    why: str = ""
    asked: bool = True


class CompiledModel(msgspec.Struct, frozen=True, array_like=True):
    """One model file: its settings, its expanded query and what the query reads.

    ``body`` maps offsets of ``sql`` to offsets of the file's body, which starts on ``first_line``.
    ``env`` holds the environment values that the text was expanded with. ``written`` is the user's
    own query where ``sql`` is one over its groups.
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
    written: str | None = None
    row_state: RowState | None = None

    @property
    def definition(self) -> str:
        """The query as it was written, which is what identity is made of."""
        return self.sql if self.written is None else self.written

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


class SqlText(msgspec.Struct, frozen=True, array_like=True):
    """A query that a declaration holds, and what it reads."""

    sql: str
    analysis: Analysis
    canonical: str


class SourceTable(msgspec.Struct, frozen=True, array_like=True):
    """What someone else writes, declared in ``sources/`` or just named in a query.

    A table of the lake, or of another ``catalog``; or ``files``; or an ``expression``. ``probe`` is
    the query that gives its freshness value, for the strategies that have one. ``through`` are the
    sources that it reads where it is a view and someone knows; None: nobody does.
    """

    name: str
    namespace: str
    table: str
    declared: bool
    file: str | None
    line: int | None
    catalog: str | None = None
    files: FileSpec | None = None
    expression: SqlText | None = None
    freshness: Freshness | None = None
    probe: SqlText | None = None
    unique_key: tuple[str, ...] = ()
    through: tuple[str, ...] | None = None

    @property
    def is_table(self) -> bool:
        """Is it a table or view of some catalog?"""
        return self.files is None and self.expression is None

    @property
    def in_lake(self) -> bool:
        """Is it a table or view of the project's own catalog?"""
        return self.is_table and self.catalog is None

    @property
    def place(self) -> str:
        """Where it is, for people and for telling that a reader has to look elsewhere now."""
        if self.files is not None:
            return self.files.path
        if self.expression is not None:
            return f"expression {digest(self.expression.canonical)[:16]}"
        return ".".join(part for part in (self.catalog, self.namespace, self.table) if part)


class DbtRefs(msgspec.Struct, frozen=True):
    """What references into a dbt project mean: sources by unique id, with those they read.

    ``names`` has the unique id of each reference, ``why`` the reason where there is none.
    """

    sources: dict[str, SourceTable] = {}
    names: dict[tuple[str, str], str] = {}
    why: dict[tuple[str, str], str] = {}


class Binding(msgspec.Struct, frozen=True):
    """A reference in a query's text, resolved to the node it means."""

    reference: Reference
    name: str


class Query(msgspec.Struct, frozen=True):
    """A text and what its names mean."""

    sql: str
    analysis: Analysis
    bindings: tuple[Binding, ...]


class Compiled(msgspec.Struct, frozen=True):
    """The whole project. ``bindings`` has the resolved references of each model, in text order.

    ``expressions`` and ``probes`` are the queries inside sources, by the source's name; ``dbt`` is
    what the models read of a dbt project.
    """

    models: dict[str, CompiledModel]
    seeds: dict[str, CompiledSeed]
    sources: dict[str, SourceTable]
    bindings: dict[str, tuple[Binding, ...]]
    parents: dict[str, tuple[str, ...]]
    disabled: frozenset[str] = frozenset()
    expressions: dict[str, Query] = {}
    probes: dict[str, Query] = {}
    dbt: DbtRefs = DbtRefs()
