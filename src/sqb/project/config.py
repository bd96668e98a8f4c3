"""The project's configuration: two TOML files, the target in use and the environment, resolved.

The order is flag > environment > local file > target > project. Nothing is created or opened here;
a value that only a later release can serve is refused as the last step.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.project.config_schema import check_form, wrong_value
from sqb.project.config_values import (
    CatalogConfig,
    Config,
    JanitorConfig,
    RefreshConfig,
    Settings,
    SparkConfig,
    TargetConfig,
)
from sqb.project.interpolate import UnsetError, interpolate
from sqb.project.keys import normal_value
from sqb.project.layout import LOCAL_FILE, PROJECT_FILE
from sqb.project.names import is_identifier
from sqb.project.stores import SUPPORTED, completed, is_store
from sqb.project.toml_lines import KeyPath, TomlFile, parse_toml

__all__ = [
    "CatalogConfig",
    "Config",
    "JanitorConfig",
    "RefreshConfig",
    "Settings",
    "SparkConfig",
    "TargetConfig",
    "load_config",
]

_POSTGRES = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")
_SQLITE = "sqlite:///"


class _Layers(msgspec.Struct, frozen=True):
    """The files that were read, the least important first, with variables filled in."""

    sources: tuple[TomlFile, ...]
    values: tuple[dict[str, Any], ...]

    def merged(self, *paths: KeyPath) -> dict[str, Any]:
        """The tables at ``paths``, the later over the earlier within a file, files in order."""
        found: dict[str, Any] = {}
        for values in self.values:
            for path in paths:
                found = _merge(found, _table(values, path))
        return found

    def place(self, *paths: KeyPath) -> tuple[TomlFile, KeyPath]:
        """The file and path that set a value: of those given, the one that counts."""
        for source, values in zip(reversed(self.sources), reversed(self.values), strict=True):
            for path in reversed(paths):
                if path[-1] in _table(values, path[:-1]):
                    return source, path
        return self.sources[0], paths[0]


def load_config(
    root: Path,
    *,
    target: str | None,
    cli_vars: Mapping[str, object],
    environ: Mapping[str, str],
) -> Config:
    """Read and resolve the configuration of the project at ``root``."""
    root = root.resolve()
    sources = tuple(_read(root))
    chosen = target or environ.get("SQB_TARGET") or _default_target(sources, environ)
    layers = _Layers(sources, tuple(_filled(source, chosen, environ) for source in sources))
    for source, values in zip(layers.sources, layers.values, strict=True):
        check_form(source, values)

    top = layers.merged(())
    declared = layers.merged(("targets",))
    implicit = top.get("default_target", "dev") == "dev"
    names = tuple(dict.fromkeys((*declared, *(("dev",) if implicit else ()))))
    if chosen not in names:
        raise _unknown_target(layers, chosen, names, given=bool(target))

    here = ("targets", chosen)
    catalog = layers.merged(("catalog",), (*here, "catalog"))
    spark = layers.merged(("spark",), (*here, "spark"))
    config = Config(
        root=str(root),
        name=top.get("name", root.name),
        target=_target(layers, chosen, names, declared.get(chosen, {})),
        target_names=names,
        target_schemas={
            name: schema
            for name in names
            if "${ENV:" not in (schema := declared.get(name, {}).get("schema", name))
        },
        catalog=_catalog(layers, here, catalog, root, environ),
        spark=SparkConfig(
            master=spark.get("master", "local[*]"),
            remote=spark.get("remote"),
            packages=tuple(spark.get("packages", ())),
            jars=tuple(_absolute(jar, root, environ) for jar in spark.get("jars", ())),
            conf=_flat(spark.get("conf", {})),
            small_input_mb=spark.get("small_input_mb", 256),
            class_archive=spark.get("class_archive", True),
        ),
        settings=Settings(**layers.merged(("settings",))),
        defaults=_normal(layers.merged(("defaults",))),
        path_defaults=_path_defaults(layers.merged(("path_defaults",))),
        vars=_merge(_plain(layers.merged(("vars",), (*here, "vars"))), dict(cli_vars)),
        janitor=msgspec.convert(layers.merged(("janitor",)), JanitorConfig),
        dbt=layers.merged(("dbt",)),
        files=tuple(source.file for source in sources),
        refresh=msgspec.convert(layers.merged(("refresh",)), RefreshConfig),
    )
    _check_available(config, layers, here)
    return config


def _read(root: Path) -> list[TomlFile]:
    found: list[TomlFile] = []
    for file in (PROJECT_FILE, LOCAL_FILE):
        try:
            content = (root / file).read_bytes()
        except FileNotFoundError:
            if file == PROJECT_FILE:
                raise SqbError(
                    "C001", f"there is no {PROJECT_FILE} in {root}", help="run `sqb init`"
                ) from None
            continue
        except OSError as error:
            raise SqbError(
                "P018", f"{file} can't be read: {error.strerror or error}", file=file
            ) from None
        found.append(parse_toml(content, file))
    return found


def _default_target(sources: Sequence[TomlFile], environ: Mapping[str, str]) -> str:
    found = "dev"
    for source in sources:
        given = source.values.get("default_target")
        if isinstance(given, str):
            found = _fill(given, environ, source, ("default_target",))
    return found


def _filled(source: TomlFile, chosen: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """The file's values with variables filled in; other targets may name ones that are unset."""

    def walk(value: Any, path: KeyPath) -> Any:
        if isinstance(value, dict):
            return {key: walk(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item, path) for item in value]
        if not isinstance(value, str):
            return value
        if path[0] == "targets" and path[1:2] != (chosen,):
            try:
                return interpolate(value, environ)
            except UnsetError:
                return value
        return _fill(value, environ, source, path)

    return {key: walk(value, (key,)) for key, value in source.values.items()}


def _fill(text: str, environ: Mapping[str, str], source: TomlFile, path: KeyPath) -> str:
    try:
        return interpolate(text, environ)
    except UnsetError as error:
        raise SqbError(
            "C005",
            f"`{'.'.join(path)}` needs the environment variable {error.name}, which is not set",
            file=source.file,
            line=source.line(path),
            help=f"set {error.name}, or give a default: ${{ENV:{error.name}:-…}}",
        ) from None


def _unknown_target(layers: _Layers, chosen: str, names: Sequence[str], *, given: bool) -> SqbError:
    source, path = layers.place(("default_target",))
    written = not given and path[-1] in source.values and source.values[path[-1]] == chosen
    listed = f"the targets are {', '.join(names)}" if names else "no target is declared"
    near = did_you_mean(chosen, names)
    return SqbError(
        "C006",
        f"unknown target `{chosen}`: {listed}",
        file=source.file if written else PROJECT_FILE,
        line=source.line(path) if written else None,
        help=near or f"add a table [targets.{chosen}] to {PROJECT_FILE}",
    )


def _target(
    layers: _Layers, chosen: str, names: Sequence[str], values: dict[str, Any]
) -> TargetConfig:
    here = ("targets", chosen)
    if "schema" not in values and not is_identifier(chosen):
        source, path = layers.place(here)
        raise wrong_value(
            source, path, chosen, "`schema` to be set", "a target's name is its default schema"
        )
    for key in ("reuse_from", "defer_sources_to"):
        if key in values and values[key] not in names:
            source, path = layers.place((*here, key))
            raise SqbError(
                "C006",
                f"`{key}` names the unknown target `{values[key]}`",
                file=source.file,
                line=source.line(path),
                help=did_you_mean(values[key], names) or f"the targets are {', '.join(names)}",
            )
    if "reuse_from" in values and "defer_sources_to" in values:
        source, path = layers.place((*here, "defer_sources_to"))
        raise wrong_value(source, path, values["defer_sources_to"], "no `reuse_from` beside it")
    fields = {key: values[key] for key in values if key not in ("vars", "catalog", "spark")}
    return TargetConfig(name=chosen, **{"schema": chosen, **fields})


def _catalog(
    layers: _Layers, here: KeyPath, values: dict[str, Any], root: Path, environ: Mapping[str, str]
) -> CatalogConfig:
    properties = _flat(values.get("properties", {}))
    catalog = CatalogConfig(**{**values, "properties": properties})

    def refuse(key: str, message: str, help: str) -> SqbError:
        source, path = layers.place(("catalog", key), (*here, "catalog", key))
        return SqbError("C007", message, file=source.file, line=source.line(path), help=help)

    if catalog.type not in ("sql", "rest"):
        raise refuse(
            "type",
            f"the catalog type `{catalog.type}` is not supported",
            did_you_mean(catalog.type, ("sql", "rest")) or 'use type = "sql" or type = "rest"',
        )
    uri = catalog.uri
    if catalog.type == "sql" and "://" not in uri:
        raise refuse(
            "uri", "the catalog's uri has no scheme", 'a file is "sqlite:///lake/catalog.db"'
        )
    if catalog.type == "rest":
        if not uri.startswith(("http://", "https://")):
            raise refuse(
                "uri", "a REST catalog needs its server's address", 'write "https://host/catalog"'
            )
    elif uri.startswith("sqlite:"):
        file = uri[len(_SQLITE) :] if uri.startswith(_SQLITE) else ""
        if not file or ":memory:" in file or "?" in file:
            raise refuse(
                "uri",
                "a SQLite catalog needs the path of a file, without options",
                'write "sqlite:///lake/catalog.db", or four slashes before an absolute path',
            )
        uri = _SQLITE + _absolute(file, root, environ)
    elif not _POSTGRES.match(uri):
        raise refuse(
            "uri",
            "a SQL catalog is kept in SQLite or PostgreSQL",
            'write "sqlite:///lake/catalog.db" or "postgresql://user@host/database"',
        )
    warehouse = catalog.warehouse
    if catalog.type == "rest":
        # The server's word for one of its warehouses; it decides where tables lie.
        warehouse = values.get("warehouse", "")
    elif is_store(warehouse):
        warehouse = warehouse.rstrip("/")
        if "//" in warehouse.partition("://")[2] or "@" in warehouse.split("/")[2]:
            raise refuse(
                "warehouse",
                "the warehouse's address is not of the form s3://bucket/path",
                "keys belong into `s3.access-key-id` and `s3.secret-access-key` of "
                "[catalog.properties]",
            )
        properties = completed(properties)
    elif "://" in warehouse and not warehouse.startswith("file:"):
        raise refuse(
            "warehouse",
            f"a warehouse at `{warehouse.partition('://')[0]}://…` is not supported",
            f"a warehouse is {SUPPORTED}",
        )
    elif not warehouse.startswith("file:"):
        warehouse = _absolute(warehouse, root, environ)
    database = _table(layers.merged(here), ()).get("database")
    if database not in (None, catalog.name):
        source, path = layers.place((*here, "database"))
        raise wrong_value(source, path, database, f"the catalog's name, `{catalog.name}`")
    return msgspec.structs.replace(catalog, uri=uri, warehouse=warehouse, properties=properties)


def _check_available(config: Config, layers: _Layers, here: KeyPath) -> None:
    """Raise C011 for the first setting that only a later release can serve."""
    target = config.target
    postponed: list[tuple[bool, str, str, tuple[KeyPath, ...]]] = [
        (
            config.settings.virtual_environments,
            "`virtual_environments = true`",
            "0.5",
            (("settings", "virtual_environments"),),
        ),
        (target.reuse_from is not None, "`reuse_from`", "0.5", ((*here, "reuse_from"),)),
        (
            target.defer_sources_to is not None,
            "`defer_sources_to`",
            "0.5",
            ((*here, "defer_sources_to"),),
        ),
    ]
    for is_set, what, release, paths in postponed:
        if is_set:
            source, path = layers.place(*paths)
            raise SqbError(
                "C011",
                f"{what} arrives in release {release}",
                file=source.file,
                line=source.line(path),
                help="leave it out for now; the default is an embedded SQLite catalog and local "
                "Spark",
            )


def _absolute(path: str, root: Path, environ: Mapping[str, str]) -> str:
    if path.startswith("~/") and environ.get("HOME"):
        path = environ["HOME"] + path[1:]
    return os.path.normpath(root / path)


def _table(values: Mapping[str, Any], path: KeyPath) -> dict[str, Any]:
    found: Any = values
    for key in path:
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        both = isinstance(value, dict) and isinstance(below, dict)
        merged[key] = _merge(below, value) if both and isinstance(below, dict) else value
    return merged


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings as texts; ``a.b = 1`` without quotes is a nested table and means ``"a.b"``."""
    found: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _normal(values: Mapping[str, Any]) -> dict[str, Any]:
    return dict(normal_value(key, value) for key, value in values.items())


def _path_defaults(values: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        folder.strip("/").removeprefix("models/"): _normal(table)
        for folder, table in values.items()
    }


def _plain(value: Any) -> Any:
    """Dates as texts, so that variables can be compared, cached and put into SQL."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return value
