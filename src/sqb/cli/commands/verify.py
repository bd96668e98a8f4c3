"""``sqb verify``: do tables hold what their records say, and what their queries give?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import Call, offer
from sqb.cli.call import command as sqb_command
from sqb.cli.render.waiting import Waiting
from sqb.cli.render.words import count, duration, wrapped
from sqb.errors import SqbError, did_you_mean

if TYPE_CHECKING:
    from sqb.upkeep.verify import Verified


def verify(call: Call, *, model: str | None, full: bool) -> int:
    """Compare and print."""
    with call.project() as project:
        select = call.select
        if model is not None:
            if model not in project.expected:
                raise SqbError(
                    "S001",
                    f"there is no model or seed named `{model}`",
                    help=did_you_mean(model, project.expected) or "`sqb ls` lists all nodes",
                )
            select = (*select, model)
        call.before_heavy_work()
        found = project.verify(select, call.exclude, full=full, listener=Waiting(call).hear)
    if call.out.json:
        call.out.document(document(found))
    else:
        _show(found, call)
    return int(any(item.equal is False for item in found))


def document(found: list[Verified]) -> dict[str, Any]:
    """``verify --json``; its fields are a promise."""
    nodes = [
        {
            "name": item.name,
            "equal": item.equal,
            "expected": item.expected,
            "actual": item.actual,
            "against": item.against,
            "missing": item.missing,
            "extra": item.extra,
            "note": item.note or None,
        }
        for item in found
    ]
    return {"schema_version": 1, "nodes": nodes}


_WORDS = {True: ("equal", "green"), False: ("differs", "red"), None: ("not compared", "cyan")}


def _show(found: list[Verified], call: Call) -> None:
    out = call.out
    width = min(max((len(item.name) for item in found), default=0), 40)
    for item in found:
        word, colour = _WORDS[item.equal]
        start = f"  {item.name:<{width}}  "
        text = _detail(item)
        first, *rest = wrapped(text, out.width - len(start) - 14, "") if text else [""]
        out.important(f"{start}{out.style(f'{word:<12}', fg=colour)}  {first}".rstrip())
        for line in rest:
            out.important(" " * (len(start) + 14) + line)
    counts = [
        f"{number} {word}"
        for value, (word, _) in _WORDS.items()
        if (number := sum(item.equal is value for item in found))
    ]
    text = ", ".join(counts) or "there is no table to verify"
    out.important(f"{text} in {duration(call.seconds())}")


def _detail(item: Verified) -> str:
    """What was compared, and how it differs."""
    if item.note:
        return item.note
    if item.equal:
        return f"to its {item.against}, {count(_rows(item.actual), 'row')}"
    if item.missing is not None and item.extra is not None and (item.missing or item.extra):
        return f"from its query: {item.missing:,} rows are missing, {item.extra:,} are too many"
    told = f"{_rows(item.expected):,}", count(_rows(item.actual), "row")
    return f"from its {item.against}: {told[0]} expected, {told[1]} found"


def _rows(data: str | None) -> int:
    """The number of rows that a data id tells."""
    parts = (data or "").split(":")
    return int(parts[2]) if parts[0] == "t" and len(parts) == 5 else 0


command = sqb_command(
    "verify",
    help="Compare tables with what their records say, and with what their queries give.",
    example="""
sqb verify
sqb verify fct_orders --full      run its query again and compare
sqb verify --select marts --json
""",
)(
    click.argument("model", required=False, shell_complete=offer("node"))(
        click.option(
            "--full",
            envvar="SQB_FULL",
            is_flag=True,
            help="Also run each model's query on the versions that its table was made from.",
        )(verify)
    )
)
