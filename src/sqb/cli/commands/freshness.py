"""``sqb freshness``: how fresh the sources are. Writes nothing to the lake."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command
from sqb.cli.render.waiting import Waiting
from sqb.errors import SqbError

if TYPE_CHECKING:
    from sqb.execution.source_freshness import SourceFreshness

_FAILING = {"fail_on_error": ("error", "unknown"), "fail_on_stale": ("changed", "unknown", "error")}


def freshness(call: Call, *, state: bool, **fail_on: bool) -> int:
    """Observe and print."""
    if fail_on["fail_on_stale"] and not state:
        raise SqbError(
            "C008",
            "--fail-on-stale needs --state",
            help="without it nothing is compared: sqb freshness --state --fail-on-stale",
        )
    with call.project() as project:
        found = project.freshness(
            call.select, call.exclude, state=state, listener=Waiting(call).hear
        )
    if call.out.json:
        call.out.document(_document(found))
    else:
        from sqb.cli.render.freshness_text import show_freshness

        show_freshness(found, call.out, call.seconds())
    failing = {status for key, statuses in _FAILING.items() if fail_on[key] for status in statuses}
    return int(any(source.status in failing for source in found))


def _document(found: list[SourceFreshness]) -> dict[str, Any]:
    """``freshness --json``; its fields are a promise."""
    counts = Counter(source.status for source in found)
    return {
        "schema_version": 1,
        "summary": {
            status: counts[status]
            for status in ("observed", "changed", "unchanged", "tolerated", "unknown", "error")
        },
        "sources": [
            {
                "name": source.name,
                "status": source.status,
                "strategy": source.strategy,
                "value_kind": source.value_kind,
                "current": source.current,
                "previous": source.previous,
                "age_status": source.age.status if source.age is not None else None,
                "age_seconds": source.age.seconds if source.age is not None else None,
                "reading": source.reading,
                "message": source.message or None,
            }
            for source in found
        ],
    }


_OPTIONS = (
    click.option(
        "--state",
        envvar="SQB_STATE",
        is_flag=True,
        help="Compare with what the last builds recorded.",
    ),
    click.option(
        "--fail-on-error",
        envvar="SQB_FAIL_ON_ERROR",
        is_flag=True,
        help="Exit code 1 if a source is too old or can't be observed.",
    ),
    click.option(
        "--fail-on-stale",
        envvar="SQB_FAIL_ON_STALE",
        is_flag=True,
        help="Exit code 1 if a source changed, is too old or can't be observed; needs --state.",
    ),
)

_function: Any = freshness
for _option in reversed(_OPTIONS):
    _function = _option(_function)

command = sqb_command(
    "freshness",
    help="Show how fresh sources are; a selected model stands for the sources above it.",
    example="""
sqb freshness
sqb freshness --state --fail-on-stale      exit code 1 if a source moved
sqb freshness --select fct_orders --json
""",
)(_function)
