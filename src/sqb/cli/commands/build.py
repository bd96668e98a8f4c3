"""``sqb build``: bring models and seeds up to date."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command
from sqb.cli.run_options import refuse_later, run_options

if TYPE_CHECKING:
    from sqb.api import Project
    from sqb.execution.events import BuildResult
    from sqb.planning.plan import Plan


def build(
    call: Call,
    *,
    force: bool,
    full_refresh: bool,
    refresh: str | None,
    no_tests: bool,  # noqa: ARG001 - there are no tests, audits and loaders to leave out yet
    no_audits: bool,  # noqa: ARG001
    no_load: bool,  # noqa: ARG001
    fail_fast: bool,
    concurrency: int | None,
    **later: Any,
) -> int:
    """Build and tell about it."""
    refuse_later(later)
    with call.project() as project:
        return run_build(
            call,
            project,
            force=force,
            full_refresh=full_refresh,
            refresh=refresh,
            fail_fast=fail_fast,
            concurrency=concurrency,
        )


def run_build(
    call: Call,
    project: Project,
    *,
    force: bool,
    full_refresh: bool,
    fail_fast: bool,
    concurrency: int | None,
    refresh: str | None = None,
    types: frozenset[str] | None = None,
) -> int:
    """Build what is selected; the exit code."""
    from sqb.cli.render.plan_text import counts, last_line, show_warnings
    from sqb.cli.render.progress import Progress
    from sqb.cli.render.words import some

    out = call.out
    with closing(Progress(out, call.before_heavy_work)) as progress:

        def on_plan(plan: Plan) -> None:
            progress.plan(plan)
            show_warnings(plan.warnings, out)
            if plan.work:
                out.line(f"Plan for {plan.target}: {counts(plan, out)}")

        result = project.build(
            call.select,
            call.exclude,
            force=force,
            full_refresh=full_refresh,
            refresh=refresh,
            fail_fast=fail_fast,
            concurrency=concurrency,
            listener=progress.hear,
            on_plan=on_plan,
            types=types,
        )
    if out.json:
        from sqb.cli.render.documents import build_document

        out.document(build_document(result, call.seconds()))
        return _code(result)
    if result.plan.redescribe:
        out.line(f"wrote the descriptions of {some(result.plan.redescribe, out.width - 26)}")
    if result.plan.work:
        from sqb.cli.render.build_text import show_end

        show_end(result, out, seconds=call.seconds(), root=project.root, config=project.config)
    else:
        out.important(last_line(result.plan, out, call.seconds()))
    return _code(result)


def _code(result: BuildResult) -> int:
    if result.interrupted:
        return 130
    return 1 if result.failed else 0


_OPTIONS = (
    click.option("--no-tests", envvar="SQB_NO_TESTS", is_flag=True, help="Run no unit tests."),
    click.option("--no-audits", envvar="SQB_NO_AUDITS", is_flag=True, help="Run no audits."),
    click.option("--no-load", envvar="SQB_NO_LOAD", is_flag=True, help="Run no loaders."),
    click.option(
        "--fail-fast", envvar="SQB_FAIL_FAST", is_flag=True, help="Stop at the first failure."
    ),
    click.option(
        "--concurrency",
        envvar="SQB_CONCURRENCY",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many nodes run at once.",
    ),
)

_function = build
for _option in reversed(_OPTIONS):
    _function = _option(_function)

command = sqb_command(
    "build",
    help="Bring models and seeds up to date. What is current is not touched.",
    example="""
sqb build
sqb build --select stg_orders+ --fail-fast
sqb build --force --json > result.json
""",
)(run_options(_function))
