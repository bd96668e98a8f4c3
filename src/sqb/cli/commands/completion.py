"""``sqb completion``: a script that completes commands, options and names in a shell."""

from __future__ import annotations

import click

from sqb.cli.call import PROJECT, Call
from sqb.cli.call import command as sqb_command


def completion(call: Call, *, shell: str) -> None:
    """Print the script."""
    from sqb.cli.completing import shell as completion_of
    from sqb.cli.main import cli

    call.no_selection("completion")
    script = completion_of(shell)(cli, {}, "sqb", "_SQB_COMPLETE").source()
    if call.out.json:
        call.out.document({"schema_version": 1, "shell": shell, "script": script})
    else:
        call.out.raw(script.rstrip() + "\n")


command = sqb_command(
    "completion",
    help="Print a completion script for a shell.",
    example="""
source <(sqb completion bash)
sqb completion zsh > "${fpath[1]}/_sqb"
sqb completion fish > ~/.config/fish/completions/sqb.fish
""",
    hides=(*PROJECT, "verbose", "quiet"),
)(click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))(completion))
