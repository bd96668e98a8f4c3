"""``sqb seed``: load the seeds that changed."""

from __future__ import annotations

import click

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command
from sqb.cli.commands.build import run_build
from sqb.errors import SqbError


def seed(call: Call, *, force: bool, full_refresh: bool) -> int:
    """Build the seeds of the selection."""
    project = call.project()
    if not project.compiled.seeds:
        raise SqbError("S001", "the project has no seeds", help="put CSV files into seeds/")
    if not project.compiled.seeds.keys() & project.select(call.select, call.exclude):
        raise SqbError(
            "S001",
            "the selection holds no seed",
            help="`sqb ls --select 'seed:*'` lists the seeds",
        )
    with project:
        return run_build(
            call,
            project,
            force=force,
            full_refresh=full_refresh,
            fail_fast=False,
            concurrency=None,
            types=frozenset({"seed"}),
        )


_function = click.option(
    "--force", envvar="SQB_FORCE", is_flag=True, help="Load current seeds too."
)(
    click.option(
        "--full-refresh",
        envvar="SQB_FULL_REFRESH",
        is_flag=True,
        help="Load the seeds from scratch.",
    )(seed)
)

command = sqb_command(
    "seed",
    help="Load the seeds that changed.",
    example="""
sqb seed
sqb seed --select countries --force
""",
)(_function)
