"""The keys of a model's header as one table, and the config of a model made from its layers.

What a key may hold is checked for every key of the contract; whether this release already acts on
it is a question of its own, answered by :func:`check_available`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.project import key_values as kv

VIEW, TABLE = "view", "table"
#: Built-in kinds, in the contract's order; any other name is the project's own.
MATERIALIZATIONS = (
    "view",
    "table",
    "append",
    "merge",
    "incremental",
    "scd2",
    "snapshot",
    "tracked",
)


class Key(msgspec.Struct, frozen=True):
    """One key of the header."""

    check: kv.Check
    identity: bool = False
    #: The value that says nothing: leaving the key out means the same.
    default: object = None
    #: The release that acts on the key; None if this one does.
    since: str | None = None
    #: Values that arrive in another release than the key: value -> release, None for now.
    values_since: dict[str, str | None] = {}


def _i(check: kv.Check, since: str | None = None, default: object = None) -> Key:
    return Key(check, identity=True, default=default, since=since)


KEYS: dict[str, Key] = {
    "materialized": Key(
        kv.materialization,
        identity=True,
        default=VIEW,
        since="0.5",
        values_since=dict.fromkeys(MATERIALIZATIONS),
    ),
    "unique_key": _i(kv.columns_list, default=[]),
    "group_key": _i(kv.columns_list, default=[]),
    "incremental_strategy": Key(
        kv.choice("append", "delete_insert", "merge"),
        identity=True,
        values_since={"delete_insert": "0.5"},
    ),
    "cursor": _i(kv.column, "0.5"),
    "cursor_type": _i(kv.choice("timestamp", "integer"), "0.5"),
    "cursor_grain": _i(kv.choice("second", "minute", "hour", "day", "month", "year"), "0.5"),
    "cursor_start": _i(kv.start_value, "0.5"),
    "cursor_inputs": _i(kv.column_map, "0.5"),
    "lookback": _i(kv.lookback, "0.5"),
    "append_from": _i(kv.tables_list, default=[]),
    "on_retraction": _i(kv.choice("append", "error"), default="append"),
    "deletes": _i(kv.choice("sync", "keep"), default="sync"),
    "merge_exclude_columns": _i(kv.columns_list, "0.5", []),
    "on_schema_change": _i(
        kv.choice("append_new_columns", "sync_all_columns", "ignore", "fail"),
        default="append_new_columns",
    ),
    "full_refresh": _i(kv.flag),
    "snapshot_strategy": _i(kv.choice("check", "timestamp"), default="check"),
    "updated_at": _i(kv.column),
    "check_columns": _i(kv.columns_or_all, default=["*"]),
    "invalidate_hard_deletes": _i(kv.flag, default=True),
    "valid_from_column": _i(kv.column, default="valid_from"),
    "valid_to_column": _i(kv.column, default="valid_to"),
    "contract": _i(kv.choice("none", "enforced"), "0.5", "none"),
    "pre_hooks": _i(kv.hooks, "0.5", []),
    "post_hooks": _i(kv.hooks, "0.5", []),
    "config": _i(kv.settings, default={}),
    "placeholders": _i(kv.settings, default={}),
    "partitioned_by": _i(kv.partitioning, default=[]),
    "sorted_by": _i(kv.sorting, default=[]),
    "table_properties": _i(kv.properties, default={}),
    "replay_on_change": Key(kv.replay),
    "run_despite_unchanged": Key(kv.despite, since="0.5"),
    "refresh": Key(kv.choice("auto", "rows", "full"), values_since={"rows": None}),
    "row_state": Key(kv.choice("off", "auto"), default="off"),
    "row_audit": Key(kv.row_audit, default="off"),
    "audits": Key(kv.audits, since="0.5", default=[]),
    "columns": Key(kv.columns),
    "tags": Key(kv.tags),
    "description": Key(kv.text),
    "schema": Key(kv.identifier),
    "alias": Key(kv.identifier),
    "enabled": Key(kv.flag),
}
ALIASES = {"query_change_backfill": "replay_on_change"}
#: Keys that say how a table's rows are kept up to date.
_REFRESH = frozenset(
    {"refresh", "row_state", "row_audit", "unique_key", "group_key", "incremental_strategy"}
    | {"append_from", "on_retraction", "deletes", "on_schema_change", "full_refresh"}
    | {"snapshot_strategy", "updated_at", "check_columns", "invalidate_hard_deletes"}
    | {"replay_on_change", "valid_from_column", "valid_to_column"}
)
_LAYOUT = ("partitioned_by", "sorted_by", "table_properties")


class ModelConfig(msgspec.Struct, frozen=True):
    """What a model's header and the project's defaults say about it, in normal form."""

    materialized: str
    tags: tuple[str, ...]
    description: str | None
    schema: str | None
    alias: str | None
    enabled: bool
    partitioned_by: tuple[str, ...]
    sorted_by: tuple[str, ...]
    table_properties: dict[str, str]
    columns: dict[str, dict[str, object]]
    #: Every key that was set, in normal form.
    values: dict[str, object]
    #: Canonical JSON of the identity keys that differ from their defaults.
    identity: str
    #: Canonical JSON of the physical layout alone.
    layout: str

    @property
    def options(self) -> dict[str, object]:
        """What it says about keeping the table's rows up to date."""
        return {key: value for key, value in self.values.items() if key in _REFRESH}


def canonical(value: object) -> str:
    """JSON with one spelling per value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def normal_value(key: str, value: object) -> tuple[str, object]:
    """The key's own name and its value in normal form.

    Raises ``KeyError`` for an unknown key and :class:`~sqb.project.key_values.WrongError`.

    >>> normal_value("query_change_backfill", "bounded-7d")
    ('replay_on_change', 'bounded-7d')
    """
    name = ALIASES.get(key, key)
    return name, KEYS[name].check(value)


def nearest_folder(path_defaults: Mapping[str, object], model_path: str) -> str | None:
    """The longest folder of ``path_defaults`` that holds the model.

    >>> nearest_folder({"a": {}, "a/b": {}}, "models/a/b/c/m.sql")
    'a/b'
    """
    folder = model_path.removeprefix("models/").rpartition("/")[0]
    while folder:
        if folder in path_defaults:
            return folder
        folder = folder.rpartition("/")[0]
    return None


def model_config(
    values: Mapping[str, object],
    lines: Mapping[str, int],
    file: str,
    defaults: Mapping[str, object],
    path_defaults: Mapping[str, Mapping[str, object]],
    model_path: str,
) -> ModelConfig:
    """The config of a model: ``[defaults]``, the nearest path default and the header, layered."""
    merged: dict[str, object] = {}
    tags: dict[str, None] = {}
    folder = nearest_folder(path_defaults, model_path)
    for layer in (defaults, path_defaults[folder] if folder else {}, values):
        for key, value in _normal_layer(layer, lines if layer is values else {}, file).items():
            merged[key] = value
            if key == "tags":
                tags.update(dict.fromkeys(_texts(value)))
    if tags:
        merged["tags"] = list(tags)
    kind = _kind(merged, lines, file)
    _check_needs(kind, merged, lines, file)
    # A view has no files: what would lay them out neither counts nor is handed on.
    physical = {} if kind == VIEW else {key: merged[key] for key in _LAYOUT if merged.get(key)}
    return ModelConfig(
        materialized=kind,
        tags=tuple(tags),
        description=_text(merged, "description"),
        schema=_text(merged, "schema"),
        alias=_text(merged, "alias"),
        enabled=merged.get("enabled") is not False,
        partitioned_by=tuple(_texts(physical.get("partitioned_by", ()))),
        sorted_by=tuple(_texts(physical.get("sorted_by", ()))),
        table_properties=msgspec.convert(physical.get("table_properties", {}), dict[str, str]),
        columns=msgspec.convert(merged.get("columns", {}), dict[str, dict[str, object]]),
        values=merged,
        identity=canonical(_identity(kind, merged, physical)),
        layout=canonical(physical),
    )


def check_available(config: ModelConfig, file: str, lines: Mapping[str, int]) -> None:
    """Raise C011 if a key or value is set that only a later release acts on.

    Of several, the one that arrives last is named: then the model can be built.
    """
    missing = [
        (release, key)
        for key, value in sorted(config.values.items(), key=lambda pair: lines.get(pair[0], 0))
        if (release := _release(key, value)) is not None
    ]
    if not missing:
        return
    release, key = max(missing, key=lambda pair: pair[0])
    value = config.values[key]
    what = f"`{key} {value}`" if isinstance(value, str) else f"`{key}`"
    if key not in lines:
        what += " (from [defaults] or [path_defaults])"
    near = None
    if key == "materialized" and value not in MATERIALIZATIONS:
        near = did_you_mean(str(value), MATERIALIZATIONS)
    if near is not None:
        raise SqbError(
            "P003",
            f"there is no materialization `{value}`",
            file=file,
            line=lines.get(key),
            help=near,
        )
    raise SqbError(
        "C011",
        f"{what} arrives in release {release}",
        file=file,
        line=lines.get(key),
        help="leave it out until then",
    )


def _release(key: str, value: object) -> str | None:
    known = KEYS[key]
    if value == known.default:
        return None
    if key == "columns":
        declared = msgspec.convert(value, dict[str, dict[str, object]])
        return "0.5" if any("audits" in column for column in declared.values()) else None
    return known.values_since.get(str(value), known.since)


def _normal_layer(
    layer: Mapping[str, object], lines: Mapping[str, int], file: str
) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in layer.items():
        line = lines.get(key)
        try:
            name, normal = normal_value(key, value)
        except KeyError:
            known = [*KEYS, *ALIASES]
            raise SqbError(
                "P002",
                f"unknown key `{key}` in a model header",
                file=file,
                line=line,
                help=did_you_mean(key, known) or f"the keys are {', '.join(KEYS)}",
            ) from None
        except kv.WrongError as error:
            raise SqbError(
                "P003",
                f"`{key}` can't be {kv.shown(value)}: expected {error.expected}",
                file=file,
                line=line,
                help=error.help,
            ) from None
        if name in found:
            raise SqbError(
                "P003",
                f"`{key}` is given twice: it is another word for `{name}`",
                file=file,
                line=line,
                help=f"keep `{name}`",
            )
        found[name] = normal
    return found


def _kind(merged: Mapping[str, object], lines: Mapping[str, int], file: str) -> str:
    """The materialization with its synonyms resolved; a cursor makes it `incremental`."""
    kind = str(merged.get("materialized", VIEW))
    if kind == "snapshot":
        return "scd2"
    if kind in ("append", "merge") and "cursor" in merged:
        return "incremental"
    if kind == "incremental" and "cursor" not in merged:
        strategy = merged.get("incremental_strategy")
        if strategy in ("append", "merge"):
            return str(strategy)
        needed = "`cursor`" if strategy else "`incremental_strategy` or `cursor`"
        raise _needs(f"`materialized incremental` needs {needed}", "materialized", lines, file)
    return kind


def _check_needs(
    kind: str, merged: Mapping[str, object], lines: Mapping[str, int], file: str
) -> None:
    merging = kind == "merge" or (kind == "incremental" and _strategy(merged) == "merge")
    if (merging or kind == "scd2") and not merged.get("unique_key"):
        needy = "merge" if merging else kind
        raise _needs(f"`{needy}` needs `unique_key`", "unique_key", lines, file)
    if kind == "tracked" and not merged.get("group_key"):
        raise _needs("`tracked` needs `group_key`", "group_key", lines, file)
    if merged.get("snapshot_strategy") == "timestamp" and "updated_at" not in merged:
        raise _needs(
            "`snapshot_strategy timestamp` needs `updated_at`", "snapshot_strategy", lines, file
        )
    if merged.get("run_despite_unchanged") and kind != TABLE and "run_despite_unchanged" in lines:
        raise _needs(
            "`run_despite_unchanged` is for `materialized table` only",
            "run_despite_unchanged",
            lines,
            file,
        )
    if merged.get("contract") == "enforced" and not merged.get("columns"):
        raise _needs("`contract enforced` needs `columns`", "contract", lines, file)


def _needs(message: str, key: str, lines: Mapping[str, int], file: str) -> SqbError:
    line = lines.get(key, lines.get("materialized"))
    return SqbError("P003", message, file=file, line=line)


def _strategy(merged: Mapping[str, object]) -> object:
    kind = merged.get("materialized")
    return kind if kind in ("append", "merge") else merged.get("incremental_strategy", "append")


def _identity(
    kind: str, merged: Mapping[str, object], physical: Mapping[str, object]
) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, key in KEYS.items():
        value = physical.get(name) if name in _LAYOUT else merged.get(name)
        if key.identity and value is not None and value != key.default:
            found[name] = value
    found.pop("incremental_strategy", None)
    if kind == "incremental":
        found["incremental_strategy"] = _strategy(merged)
    found["materialized"] = kind
    if kind == VIEW:
        del found["materialized"]
    if merged.get("contract") == "enforced":
        declared = msgspec.convert(merged["columns"], dict[str, dict[str, object]])
        found["columns"] = [
            [name, column.get("type"), column.get("nullable", True)]
            for name, column in declared.items()
        ]
    return found


def _text(values: Mapping[str, object], key: str) -> str | None:
    value = values.get(key)
    return None if value is None else str(value)


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []
