"""Make a manifest of dbt small enough to keep: ``python trim.py manifest.json > small.json``.

Kept are all nodes with the fields that sqb may look at, and the macros that they reach; the texts
of macros that only take part in a materialization are cut.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_DROPPED = {
    *("created_at", "doc_blocks", "patch_path", "build_path", "compiled_path", "fqn", "docs"),
    *("unrendered_config", "unrendered_schema", "unrendered_database", "path", "refs", "sources"),
    *("metrics", "functions", "primary_key", "time_spine", "deprecation_date", "quoting"),
    *("supported_languages", "arguments", "group", "source_description", "loader", "meta"),
}


def trimmed(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest with what tests need."""
    macros = manifest["macros"]

    def closure(start: list[str]) -> set[str]:
        found: set[str] = set()
        waiting = [m for m in start if m in macros]
        while waiting:
            macro = waiting.pop()
            if macro not in found:
                found.add(macro)
                waiting.extend(m for m in macros[macro]["depends_on"]["macros"] if m in macros)
        return found

    nodes = manifest["nodes"].values()
    own = [m for m in macros if not m.startswith(("macro.dbt.", "macro.dbt_spark."))]
    direct = closure([m for n in nodes for m in n["depends_on"]["macros"]] + own)
    kinds = {n["config"]["materialized"] for n in nodes}
    starts = [f"materialization_{kind}_{end}" for kind in kinds for end in ("spark", "default")]
    behind = closure([m for m, value in macros.items() if value["name"] in starts])
    kept = {}
    for unique_id in sorted(direct | behind):
        macro = {k: v for k, v in macros[unique_id].items() if k not in _DROPPED}
        if unique_id not in direct:
            macro["macro_sql"] = macro["macro_sql"].strip()[:40]
        kept[unique_id] = macro
    out = {"metadata": manifest["metadata"], "macros": kept}
    for part in ("nodes", "sources", "unit_tests", "functions", "exposures"):
        out[part] = {
            u: {k: v for k, v in value.items() if k not in _DROPPED}
            for u, value in sorted(manifest.get(part, {}).items())
        }
    for seed in out["nodes"].values():
        if "root_path" in seed:
            seed["root_path"] = "/projects/little"
    out["disabled"] = {u: [{"unique_id": u}] for u in manifest["disabled"]}
    out["metadata"]["env"] = {}
    return out


if __name__ == "__main__":
    print(json.dumps(trimmed(json.loads(Path(sys.argv[1]).read_text())), indent=1))
