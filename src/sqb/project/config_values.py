"""The values that the config files hold, resolved for one target. How they come about is told in
:mod:`sqb.project.config`.
"""

from __future__ import annotations

from typing import Any

import msgspec


class CatalogConfig(msgspec.Struct, frozen=True):
    """``[catalog]``: the Iceberg catalog, with absolute paths."""

    name: str = "lake"
    type: str = "sql"
    uri: str = "sqlite:///lake/catalog.db"
    warehouse: str = "lake"
    properties: dict[str, str] = {}


class SparkConfig(msgspec.Struct, frozen=True):
    """``[spark]``: where Spark runs and what it is given."""

    master: str = "local[*]"
    remote: str | None = None
    packages: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    conf: dict[str, str] = {}
    small_input_mb: int = 256
    class_archive: bool = True


class TargetConfig(msgspec.Struct, frozen=True):
    """``[targets.<name>]`` of the target in use."""

    name: str
    schema: str
    database: str | None = None
    loader_schema: str | None = None
    reuse_from: str | None = None
    reuse_hard_copy: bool = False
    defer_sources_to: str | None = None
    state: dict[str, Any] = {}


class Settings(msgspec.Struct, frozen=True):
    """``[settings]``."""

    virtual_environments: bool = False
    concurrency: int = 4
    default_audit_severity: str = "error"
    cascade: str = "all"


class JanitorConfig(msgspec.Struct, frozen=True):
    """``[janitor]``: what upkeep keeps, and what it leaves alone."""

    retention_days: int = 30
    max_checkpoints: int = 20
    exclude_patterns: tuple[str, ...] = ()
    automatic: bool = True
    keep_snapshots: int = 20
    reader_grace: str = "1h"
    orphan_age: str = "3d"
    compact: bool = True
    compact_min_files: int = 100
    compact_target_mb: int = 128


class RefreshConfig(msgspec.Struct, frozen=True):
    """``[refresh]``: when a table is rebuilt although it could be refreshed by rows.

    More than ``most_changed`` of a source's rows, or more keys than ``most_keys`` of the table's
    rows, or more than ``margin`` times the seconds of a rebuild; or a rebuild that takes less than
    ``small_seconds`` (of a table that was not timed yet: whose inputs are below ``small_mb``; of
    any: below a thirty-second of that).
    """

    most_changed: float = 0.2
    most_keys: float = 0.15
    margin: float = 0.7
    small_seconds: float = 3.0
    small_mb: float = 32.0


class Config(msgspec.Struct, frozen=True):
    """Everything that the config files say for one target."""

    root: str
    name: str
    target: TargetConfig
    target_names: tuple[str, ...]
    #: The schema of every target. One whose name needs a variable that is not set is left out.
    target_schemas: dict[str, str]
    catalog: CatalogConfig
    spark: SparkConfig
    settings: Settings
    defaults: dict[str, Any]
    path_defaults: dict[str, dict[str, Any]]
    vars: dict[str, Any]
    janitor: JanitorConfig
    dbt: dict[str, Any]
    #: The files that were read, relative to the root.
    files: tuple[str, ...]
    refresh: RefreshConfig = RefreshConfig()
