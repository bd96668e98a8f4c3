"""``[dbt]`` of ``sqlbuild_project.toml``, or its defaults: a dbt project needs no such file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sqb.errors import SqbError
from sqb.project.config import load_config
from sqb.project.config_values import CatalogConfig, Config
from sqb.project.layout import DBT_FILE, LOCAL_FILE, PROJECT_FILE, find_project
from sqb.project.toml_lines import parse_toml


class DbtSettings(msgspec.Struct, frozen=True):
    """``[dbt]``, with absolute folders; ``target_path`` is as dbt takes it."""

    project_dir: str | None = None
    profiles_dir: str | None = None
    target_path: str | None = None
    target: str | None = None
    sqb_target: str | None = None
    replay_on_change: str = "forward_only"
    identity: str = "full"
    replace_views: bool = False


class Found(msgspec.Struct, frozen=True):
    """The settings with the config that they stand in, if there is one.

    ``catalog`` is the one that the config writes down, not its default. ``files`` were read.
    """

    settings: DbtSettings
    config: Config | None = None
    catalog: CatalogConfig | None = None
    files: tuple[str, ...] = ()


def read_settings(
    start: Path, *, variables: Mapping[str, object], environ: Mapping[str, str]
) -> Found:
    """The settings of the project at or above ``start``.

    A ``sqlbuild_project.toml`` counts if it has a table ``[dbt]`` or stands beside a
    ``dbt_project.yml``; one that is only in a folder above belongs to another project.
    """
    try:
        root = find_project(start)
    except SqbError as error:
        if error.code != "C001":
            raise
        return Found(DbtSettings())
    files = [root / name for name in (PROJECT_FILE, LOCAL_FILE) if (root / name).is_file()]
    written = [parse_toml(file.read_bytes(), file.name).values for file in files]
    if not any("dbt" in values for values in written) and not (root / DBT_FILE).is_file():
        return Found(DbtSettings())
    config = load_config(root, target=None, cli_vars=variables, environ=environ)
    wanted = config.dbt.get("sqb_target")
    if wanted is not None and wanted != config.target.name:
        config = load_config(root, target=wanted, cli_vars=variables, environ=environ)
    return Found(
        settings=_settings(config),
        config=config,
        catalog=config.catalog if _names_catalog(written, config.target.name) else None,
        files=tuple(map(str, files)),
    )


def _settings(config: Config) -> DbtSettings:
    values: dict[str, Any] = dict(config.dbt)
    for key in ("project_dir", "profiles_dir"):
        if key in values:
            values[key] = str((Path(config.root) / Path(values[key]).expanduser()).resolve())
    return msgspec.convert(values, DbtSettings)


def _names_catalog(written: list[dict[str, Any]], target: str) -> bool:
    tables = [values.get("targets", {}).get(target, {}) for values in written]
    return any("catalog" in table for table in (*written, *tables))
