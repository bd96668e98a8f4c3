"""``sqb history``: what was built and when, from the state tables beside the data."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from sqb.cli.call import SELECTION, Call, offer
from sqb.cli.call import command as sqb_command
from sqb.cli.render.words import count, duration, fit, some
from sqb.errors import SqbError, did_you_mean

if TYPE_CHECKING:
    from sqb.state.experience import Experience
    from sqb.state.record import Record


#: The column that holds a record.
_RECORD = "metadata_json_b64"


def history(call: Call, *, model: str | None, limit: int | None, strategies: bool) -> None:
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
    if strategies:
        _strategies(call, [record for row in rows if (record := record_of(row[_RECORD]))])
        return
    runs: dict[str, dict[str, Any]] = {}
    for row in rows:
        run = runs.setdefault(
            row["run_id"], {"run_id": row["run_id"], "ts": row["ts"], "nodes": []}
        )
        record = record_of(row[_RECORD])
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


def strategies_document(found: list[Experience]) -> dict[str, Any]:
    """``history --strategies --json``; its fields are a promise."""
    nodes = [
        {
            "name": item.name,
            "strategies": msgspec.to_builtins(item.ways),
            "judged": item.known,
            "right": item.right,
            "accuracy": item.accuracy,
            "regret_seconds": item.regret,
        }
        for item in found
    ]
    return {"schema_version": 1, "nodes": nodes}


def _strategies(call: Call, records: list[Record]) -> None:
    """How tables were brought up to date, and how well that was foreseen."""
    from sqb.state.experience import experience, runs_of

    found = [experience(name, runs) for name, runs in sorted(runs_of(records).items())]
    if call.out.json:
        call.out.document(strategies_document(found))
        return
    out = call.out
    if not found:
        out.important("No table was built yet")
        return
    width = min(max(len("model"), *(len(item.name) for item in found)), 32)
    head = f"{'model':<{width}}  {'strategy':<12}  {'runs':>4}  {'took':>7}  {'foreseen':>8}  right"
    out.important(head, dim=True)
    for item in found:
        for place, way in enumerate(item.ways):
            guess = duration(way.predicted) if way.predicted is not None else ""
            name = item.name if place == 0 else ""
            judged = f"{item.right} of {item.known}" if item.known and place == 0 else ""
            line = f"{fit(name, width)}  {way.name:<12}  {way.runs:>4}  "
            line += f"{duration(way.seconds):>7}  {guess:>8}  {judged}"
            out.important(line.rstrip())
    known, right = sum(item.known for item in found), sum(item.right for item in found)
    if known:
        regret = duration(sum(item.regret for item in found))
        share = f"{100 * right / known:.0f} %"
        out.important(f"the cheaper way was foreseen in {share} of {known} runs; regret {regret}")
    else:
        out.important("no choice can be judged yet: that takes runs of both kinds", dim=True)


_function = click.argument("model", required=False, shell_complete=offer("node"))(
    click.option(
        "--limit",
        envvar="SQB_LIMIT",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many runs to show; 20 as text, all as JSON.",
    )(
        click.option(
            "--strategies",
            envvar="SQB_STRATEGIES",
            is_flag=True,
            help="Show how tables were brought up to date, and how well that was foreseen.",
        )(history)
    )
)

command = sqb_command(
    "history",
    help="List what was built, and when; the newest run first.",
    example="""
sqb history
sqb history fct_orders --limit 5
sqb history --strategies
""",
    hides=(*SELECTION, "verbose"),
)(_function)
