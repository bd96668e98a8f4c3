"""Recorded manifests of dbt, to be edited as dbt would write them after a change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqb.dbt.identity import Surroundings, identify
from sqb.dbt.manifest import decode_manifest
from sqb.dbt.nodes import DbtNode

FOLDER = Path(__file__).parents[1] / "dbt" / "manifests"
VERSIONS = ("1_10", "1_11")

#: What the recorded project was read with.
VARS = {
    "little": {"start_date": '"2026-01-01"', "rate": "2"},
    "little_pkg": {"start_date": '"2026-01-01"', "rate": "2"},
}


def recorded(version: str = "1_11") -> dict[str, Any]:
    """A fresh copy of a recorded manifest."""
    found: dict[str, Any] = json.loads((FOLDER / f"little_{version}.json").read_bytes())
    return found


def nodes_of(
    edit: Callable[[dict[str, Any]], object] | None = None,
    *,
    version: str = "1_11",
    **around: Any,
) -> dict[str, DbtNode]:
    """The nodes of a recorded manifest after an edit."""
    manifest = recorded(version)
    if edit is not None:
        edit(manifest)
    decoded = decode_manifest(json.dumps(manifest).encode())
    return identify(decoded, Surroundings(**{"vars": VARS, **around}))
