"""``sqb completion``: a script that completes commands and options in a shell."""

from __future__ import annotations

import click

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command
from sqb.errors import SqbError


def completion(call: Call, *, shell: str) -> None:
    """Print the script."""
    from click.shell_completion import get_completion_class

    from sqb.cli.main import cli

    call.no_selection("completion")
    found = get_completion_class(shell)
    if found is None:
        raise SqbError("C008", f"there is no completion for {shell}")
    script = found(cli, {}, "sqb", "_SQB_COMPLETE").source()
    if call.out.json:
        call.out.document({"schema_version": 1, "shell": shell, "script": script})
    else:
        call.out.raw(script.rstrip() + "\n")


command = sqb_command(
    "completion",
    help="Print a completion script for a shell.",
    example="""
sqb completion zsh > ~/.zfunc/_sqb
source <(sqb completion bash)
""",
)(click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))(completion))
