"""``sqb plan``: what a build would do, and why. Writes nothing to the lake.

Starts Spark only where a source is watched by a value that has to be asked for.
"""

from __future__ import annotations

from typing import Any

import click

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command
from sqb.cli.render.waiting import Waiting
from sqb.cli.run_options import refuse_later, run_options


def plan(
    call: Call,
    *,
    force: bool,
    full_refresh: bool,
    refresh: str | None,
    fail_on: tuple[str, ...],
    **later: Any,
) -> int:
    """Plan and print."""
    refuse_later(later)
    with call.project() as project:
        found = project.plan(
            call.select,
            call.exclude,
            force=force,
            full_refresh=full_refresh,
            refresh=refresh,
            listener=Waiting(call).hear,
        )
    if call.out.json:
        from sqb.cli.render.documents import plan_document

        call.out.document(plan_document(found))
    else:
        from sqb.cli.render.plan_text import show_plan

        show_plan(found, call.out, call.seconds())
    summary = found.summary()
    failing = {
        "run": summary["run"] + summary["maybe"] + summary["reuse"],
        "blocked": summary["blocked"],
    }
    return 1 if any(failing[what] for what in fail_on) else 0


command = sqb_command(
    "plan",
    help="Show what a build would do, and why.",
    example="""
sqb plan
sqb plan --select +fct_orders --json
sqb plan --fail-on run      exit code 1 if anything is stale
""",
)(
    run_options(
        click.option(
            "--fail-on",
            envvar="SQB_FAIL_ON",
            type=click.Choice(["run", "blocked"]),
            multiple=True,
            help="Exit code 1 if a node would run, or is blocked. Repeatable.",
        )(plan)
    )
)
