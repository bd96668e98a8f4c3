"""The keys of ``sqlbuild_project.toml`` and ``sqlbuild_local.toml``, and the check against them.

Pure form: unknown keys (C003) and values of the wrong type (C004). What the values mean together
is decided in :mod:`sqb.project.config`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.project.durations import duration_seconds
from sqb.project.key_values import WrongError, shown
from sqb.project.keys import ALIASES, KEYS, normal_value
from sqb.project.names import is_identifier
from sqb.project.toml_lines import KeyPath, TomlFile


class Value(msgspec.Struct, frozen=True):
    """A key that holds a value."""

    accepts: Callable[[object], bool]
    expected: str


class AnyKey(msgspec.Struct, frozen=True):
    """A table whose keys are free, with one rule for what each holds."""

    rule: Rule


Rule: TypeAlias = "Value | AnyKey | Mapping[str, Rule]"

_RESERVED_SCHEMAS = ("__sqb_stage", "__sqb_physical")


def _one_of(*allowed: str) -> Value:
    return Value(
        lambda value: value in allowed or _unresolved(value),
        " or ".join(f'"{word}"' for word in allowed),
    )


def _unresolved(value: object) -> bool:
    """Targets that are not in use keep references to variables that are not set here."""
    return isinstance(value, str) and "${ENV:" in value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(_is_text(item) for item in value)


def _is_schema(value: object) -> bool:
    if not isinstance(value, str):
        return False
    plain = is_identifier(value) and not value.endswith(_RESERVED_SCHEMAS)
    return plain or _unresolved(value)


def _is_settings(value: object) -> bool:
    if isinstance(value, dict):
        return all(_is_settings(item) for item in value.values())
    return isinstance(value, str | int | float | bool)


_TEXT = Value(_is_text, "a text")
_FLAG = Value(lambda value: isinstance(value, bool), "true or false")
_TEXTS = Value(_is_texts, 'a list of texts such as ["a", "b"]')
_ANY = Value(lambda _: True, "any value")
_IDENTIFIER = Value(
    lambda value: isinstance(value, str) and (is_identifier(value) or _unresolved(value)),
    "a name of letters, digits and underscores",
)
_SCHEMA = Value(_is_schema, "a schema name of letters, digits and underscores")
_SETTING = Value(_is_settings, "a text, a number, true or false")
_COUNT = Value(lambda value: _is_whole(value, 1), "a whole number of at least 1")
_SHARE = Value(
    lambda value: _is_number(value) and 0 <= float(str(value)) <= 1, "a number from 0 to 1"
)
_AMOUNT = Value(
    lambda value: _is_number(value) and float(str(value)) >= 0, "a number of at least 0"
)
_NATURAL = Value(lambda value: _is_whole(value, 0), "a whole number of at least 0")


def _duration(least: int) -> Value:
    """A duration of at least so many seconds: what is younger may still be in use."""
    return Value(
        lambda value: isinstance(value, str) and (duration_seconds(value) or 0) >= least,
        f'a duration of at least {least // 60} minutes such as "90m" or "2d"'
        if least > 60
        else 'a duration of at least a minute such as "90m" or "2d"',
    )


_CATALOG: Mapping[str, Rule] = {
    "name": _IDENTIFIER,
    "type": _TEXT,
    "uri": _TEXT,
    "warehouse": _TEXT,
    "properties": AnyKey(_SETTING),
}
_SPARK: Mapping[str, Rule] = {
    "master": _TEXT,
    "remote": _TEXT,
    "packages": _TEXTS,
    "jars": _TEXTS,
    "conf": AnyKey(_SETTING),
    "small_input_mb": _NATURAL,
    "class_archive": _FLAG,
}
_STATE: Mapping[str, Rule] = {
    "backend": _one_of("duckdb", "postgres"),
    "connection": Value(
        lambda value: (
            _is_text(value)
            or (
                isinstance(value, dict)
                and set(value) <= {"host", "port", "user", "password", "dbname"}
                and all(isinstance(item, str | int) for item in value.values())
            )
        ),
        "a path, a URL or a table with host, port, user, password and dbname",
    ),
    "schema": _SCHEMA,
    "unsuffixed_virtual_env": _TEXT,
    "allow_reset": _FLAG,
}
_TARGET: Mapping[str, Rule] = {
    "schema": _SCHEMA,
    "database": _TEXT,
    "vars": AnyKey(_ANY),
    "loader_schema": _SCHEMA,
    "reuse_from": _TEXT,
    "reuse_hard_copy": _FLAG,
    "defer_sources_to": _TEXT,
    "catalog": _CATALOG,
    "spark": _SPARK,
    "state": _STATE,
}
SCHEMA: Mapping[str, Rule] = {
    "name": _TEXT,
    "default_target": _TEXT,
    "targets": AnyKey(_TARGET),
    "catalog": _CATALOG,
    "spark": _SPARK,
    "settings": {
        "virtual_environments": _FLAG,
        "concurrency": _COUNT,
        "default_audit_severity": _one_of("error", "warn"),
        "cascade": _one_of("all"),
    },
    "defaults": AnyKey(_ANY),
    "path_defaults": AnyKey(AnyKey(_ANY)),
    "vars": AnyKey(_ANY),
    "janitor": {
        "retention_days": _NATURAL,
        "max_checkpoints": _COUNT,
        "exclude_patterns": _TEXTS,
        "automatic": _FLAG,
        "keep_snapshots": _COUNT,
        "reader_grace": _duration(60),
        "orphan_age": _duration(3_600),
        "compact": _FLAG,
        "compact_min_files": _COUNT,
        "compact_target_mb": _COUNT,
    },
    "refresh": {
        "most_changed": _SHARE,
        "most_keys": _SHARE,
        "margin": _AMOUNT,
        "small_seconds": _AMOUNT,
        "small_mb": _AMOUNT,
    },
    "dbt": {
        "project_dir": _TEXT,
        "profiles_dir": _TEXT,
        "target_path": _TEXT,
        "target": _TEXT,
        "sqb_target": _TEXT,
        "replay_on_change": _one_of("forward_only", "full"),
        "identity": _one_of("full", "normalised", "checksum"),
        "replace_views": _FLAG,
    },
}


def check_form(source: TomlFile, values: Mapping[str, object]) -> None:
    """Check a whole file; ``values`` are its contents with variables filled in."""
    _check(source, values, SCHEMA, ())
    _check_model_keys(source, values.get("defaults"), ("defaults",))
    folders = values.get("path_defaults")
    if isinstance(folders, Mapping):
        for folder, table in folders.items():
            _check_model_keys(source, table, ("path_defaults", folder))


def _check(source: TomlFile, value: object, rule: Rule, path: KeyPath) -> None:
    if isinstance(rule, Value):
        if not rule.accepts(value):
            raise wrong_value(source, path, value, rule.expected)
        return
    if not isinstance(value, Mapping):
        raise wrong_value(source, path, value, f"a table, [{_dotted(path)}]")
    for key, item in value.items():
        if isinstance(rule, AnyKey):
            _check(source, item, rule.rule, (*path, key))
        elif key in rule:
            _check(source, item, rule[key], (*path, key))
        else:
            raise _unknown(source, (*path, key), list(rule))


def _check_model_keys(source: TomlFile, table: object, path: KeyPath) -> None:
    if not isinstance(table, Mapping):
        return
    for key, value in table.items():
        _check_model_key(source, value, (*path, key))


def _check_model_key(source: TomlFile, value: object, path: KeyPath) -> None:
    try:
        normal_value(path[-1], value)
    except KeyError:
        raise _unknown(source, path, [*KEYS, *ALIASES]) from None
    except WrongError as error:
        raise wrong_value(source, path, value, error.expected, error.help) from None


def wrong_value(
    source: TomlFile, path: KeyPath, value: object, expected: str, help: str | None = None
) -> SqbError:
    """C004 for a value that can't stand where it does; secrets are not shown."""
    return SqbError(
        "C004",
        f"`{_dotted(path)}` {_found(path, value)}: expected {expected}",
        file=source.file,
        line=source.line(path),
        help=help,
    )


def _found(path: KeyPath, value: object) -> str:
    if any(part in ("connection", "properties", "conf", "vars", "uri", "remote") for part in path):
        return "has a wrong value"
    if value == "":
        return "is empty"
    return f"can't be {shown(value)}"


def _unknown(source: TomlFile, path: KeyPath, known: list[str]) -> SqbError:
    where = f"in [{_dotted(path[:-1])}]" if path[:-1] else "at the top level"
    return SqbError(
        "C003",
        f"unknown key `{path[-1]}` {where}",
        file=source.file,
        line=source.line(path),
        help=did_you_mean(path[-1], known) or f"the keys here are {', '.join(known)}",
    )


def _dotted(path: KeyPath) -> str:
    return ".".join(part if part.replace("-", "_").isidentifier() else f'"{part}"' for part in path)
