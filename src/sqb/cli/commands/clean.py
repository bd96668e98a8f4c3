"""``sqb clean``: remove ``.sqb``. The lake and the state of virtual environments stay."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from sqb.cli.call import SELECTION, Call
from sqb.cli.call import command as sqb_command
from sqb.cli.render.words import count
from sqb.errors import SqbError
from sqb.project.layout import find_project

#: Not disposable, wherever it lies.
_STATE = "state.duckdb"


def clean(call: Call, *, yes: bool) -> None:
    """Ask, then remove."""
    call.no_selection("clean")
    root = find_project(Path(call.directory).absolute())
    folder = root / ".sqb"
    entries = sorted(folder.iterdir()) if folder.is_dir() else []
    keep = any(entry.name.startswith(_STATE) for entry in entries)
    doomed = [
        entry
        for entry in entries
        # with the state in place, git must go on ignoring the folder
        if not (keep and (entry.name.startswith(_STATE) or entry.name == ".gitignore"))
    ]
    if doomed and not yes and not _confirmed(call, folder, kept=keep):
        call.out.important("Nothing removed")
        return
    for entry in doomed:
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if folder.is_dir() and not keep:
        folder.rmdir()
    if call.out.json:
        removed = [entry.relative_to(root).as_posix() for entry in doomed]
        call.out.document({"schema_version": 1, "removed": removed})
    elif doomed:
        call.out.important(f"Removed {count(len(doomed), 'file')} and folders of .sqb")
    else:
        call.out.important("Nothing to remove")


def _confirmed(call: Call, folder: Path, *, kept: bool) -> bool:
    if call.out.json or not sys.stdin.isatty():
        raise SqbError(
            "C010",
            "`sqb clean` asks before it removes, and there is no terminal to ask on",
            help="add --yes",
        )
    note = f" except {_STATE}" if kept else ""
    return click.confirm(f"Remove everything in {folder}{note}?")


command = sqb_command(
    "clean",
    help="Remove .sqb: caches, compiled SQL, logs of runs. The lake stays.",
    example="""
sqb clean
sqb clean --yes
""",
    hides=("target", "vars_text", *SELECTION, "verbose"),
)(click.option("--yes", "-y", envvar="SQB_YES", is_flag=True, help="Don't ask.")(clean))
