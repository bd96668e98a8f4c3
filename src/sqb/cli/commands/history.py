"""``sqb history``: what was built and when, from the state tables beside the data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from sqb.cli.call import SELECTION, Call, offer
from sqb.cli.call import command as sqb_command
from sqb.cli.render.words import count, some
from sqb.errors import SqbError, did_you_mean


def history(call: Call, *, model: str | None, limit: int | None) -> None:
    """Print runs, newest first."""
    from sqb.state.tables import FINGERPRINTS, record_of

    call.no_selection("history")
    project = call.project()
    call.before_heavy_work()
    written = any(name == FINGERPRINTS for _, name in project.catalog.heads())
    rows = project.history(model) if written else []
    if model is not None and not rows and model not in project.expected:
        known = set(project.expected)
        raise SqbError(
            "S001",
            f"there is no model or seed named `{model}`, and there was none",
            help=did_you_mean(model, known) or "`sqb ls` lists all nodes",
        )
    runs: dict[str, dict[str, Any]] = {}
    for row in rows:
        run = runs.setdefault(
            row["run_id"], {"run_id": row["run_id"], "ts": row["ts"], "nodes": []}
        )
        record = record_of(row["metadata_json_b64"])
        run["nodes"].append(
            {
                "name": row["node_name"],
                "type": row["node_type"],
                "materialized": record.materialized if record else None,
                "rows": record.rows if record else None,
                "version": row["version_hash"],
            }
        )
    newest = list(runs.values())[::-1]
    for run in newest:
        run["nodes"].sort(key=lambda node: node["name"])
    if call.out.json:
        shown = newest if limit is None else newest[:limit]
        call.out.document({"schema_version": 1, "runs": shown})
        return
    _show(call, newest, model, 20 if limit is None else limit)


def _show(call: Call, runs: list[dict[str, Any]], model: str | None, limit: int) -> None:
    out = call.out
    if not runs:
        out.important(f"`{model}` was not built yet" if model else "Nothing was built yet")
        return
    start = f"{'when (UTC)':<19}  {'run':<{len(runs[0]['run_id'])}}  "
    if model is not None:
        kinds = max(len(run["nodes"][0]["materialized"] or "") for run in runs[:limit])
        kinds = max(kinds, len("kind"))
        out.important(f"{start}{'kind':<{kinds}}  {'rows':>10}".rstrip(), dim=True)
    else:
        out.important(f"{start}nodes", dim=True)
    for run in runs[:limit]:
        moment: datetime = run["ts"]
        head = f"{moment:%Y-%m-%d %H:%M:%S}  {run['run_id']}  "
        if model is not None:
            node = run["nodes"][0]
            rows = f"{node['rows']:,}" if node["rows"] is not None else ""
            text = f"{node['materialized'] or '':<{kinds}}  {rows:>10}".rstrip()
        else:
            names = [node["name"] for node in run["nodes"]]
            text = f"{len(names):>5}  " + some(names, out.width - len(head) - 7)
        out.important(f"{out.style(head, dim=True)}{text}")
    if len(runs) > limit:
        older = count(len(runs) - limit, "older run")
        out.line(f"… {older}; --limit {len(runs)} shows all", dim=True)


_function = click.argument("model", required=False, shell_complete=offer("node"))(
    click.option(
        "--limit",
        envvar="SQB_LIMIT",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many runs to show; 20 as text, all as JSON.",
    )(history)
)

command = sqb_command(
    "history",
    help="List what was built, and when; the newest run first.",
    example="""
sqb history
sqb history fct_orders --limit 5
""",
    hides=(*SELECTION, "verbose"),
)(_function)
