"""Keys that say something about some kinds of tables alone: elsewhere they would mean nothing."""

from __future__ import annotations

from collections.abc import Mapping

from sqb.errors import SqbError
from sqb.project.keys import KEYS, MATERIALIZATIONS, ModelConfig

_ONLY_FOR = {
    "append_from": ("append",),
    "on_retraction": ("append",),
    "deletes": ("merge",),
    "group_key": ("tracked",),
    "snapshot_strategy": ("scd2",),
    "updated_at": ("scd2",),
    "check_columns": ("scd2",),
    "invalidate_hard_deletes": ("scd2",),
    "valid_from_column": ("scd2",),
    "valid_to_column": ("scd2",),
}


def check_kind(config: ModelConfig, file: str, lines: Mapping[str, int]) -> None:
    """Raise P003 if a header says something that its kind of table knows nothing of."""
    kind, values = config.materialized, config.values

    def wrong(message: str, key: str) -> SqbError:
        return SqbError("P003", message, file=file, line=lines.get(key, lines.get("materialized")))

    for key, kinds in _ONLY_FOR.items():
        said = key in lines and values[key] != KEYS[key].default
        if said and kind in MATERIALIZATIONS and kind not in kinds:
            raise wrong(f"`{key}` is for `{kinds[0]}` models, not for `{kind}`", key)
    if kind == "scd2":
        names = [
            str(values.get(f"{end}_column", end)).lower() for end in ("valid_from", "valid_to")
        ]
        if names[0] == names[1]:
            raise wrong("`valid_from_column` and `valid_to_column` are the same", "valid_to_column")
    bounded = str(values.get("replay_on_change", "")).startswith("bounded-")
    if bounded and kind in ("append", "merge", "scd2"):
        raise wrong(
            "a bounded replay needs a `cursor`, and that needs release 0.5", "replay_on_change"
        )
