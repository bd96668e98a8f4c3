"""``sqb init``: a small project that builds at once."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from sqb.cli.call import PROJECT, Call
from sqb.cli.call import command as sqb_command
from sqb.cli.scaffold import write_project


def init(call: Call, *, directory: str) -> None:
    """Write the starter project."""
    call.no_selection("init")
    root = Path(directory).absolute()
    written = write_project("starter", root, directory, "init")
    if call.out.json:
        call.out.document({"schema_version": 1, "directory": str(root), "written": written})
        return
    out = call.out
    out.important(f"{out.style('Created', fg='green')} a project in {directory}")
    for name in written:
        out.line(f"  {name}", dim=True)
    out.line()
    here = root == Path.cwd()
    out.line("Build it:")
    out.line("  sqb build" if here else f"  cd {shlex.quote(directory)} && sqb build")


command = sqb_command(
    "init",
    help="Start a project in a folder (the current one without DIR).",
    example="""
sqb init shop
cd shop && sqb build
""",
    hides=(*PROJECT, "verbose"),
)(click.argument("directory", default=".", metavar="[DIR]")(init))
