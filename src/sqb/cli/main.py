"""The command ``sqb``: finds the command that was called and imports nothing else.

Every way a command can end is turned into an exit code here: 0 done, 1 something failed, 2 the
call or the project is wrong, 130 interrupted.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

import click

import sqb
from sqb.errors import SqbError, nearest

#: command -> its line in the help. Beside the modules, so that the help imports none of them.
COMMANDS: dict[str, str] = {
    "init": "Start a project in a folder.",
    "demo": "Watch a small project being built and changed.",
    "playground": "Start a project to play with, with data of its own.",
    "compile": "Check the project and write its SQL to .sqb/compiled.",
    "ls": "List models and seeds.",
    "plan": "Show what a build would do, and why.",
    "build": "Bring models and seeds up to date.",
    "freshness": "Show how fresh the sources are.",
    "explain": "Tell why a model runs or not, and show its SQL.",
    "seed": "Load the seeds that changed.",
    "query": "Run a query in which names mean what they mean in a model.",
    "history": "List what was built, and when.",
    "verify": "Compare tables with their records and their queries.",
    "janitor": "Remove from the lake what nothing needs any more.",
    "lineage": "Show what a model reads and what reads it.",
    "dbt": "Plan and build an existing dbt project, only what is stale.",
    "spark": "Keep a warm Spark; print how to open the lake elsewhere.",
    "debug": "Check Java, Spark, the jars, the project and the catalog.",
    "clean": "Remove .sqb, the disposable folder.",
    "completion": "Print a completion script for a shell.",
}

#: command -> the release that brings it.
LATER: dict[str, str] = {
    "test": "0.5",
    "audit": "0.5",
    "check": "0.5",
    "load": "0.5",
    "clone": "0.5",
    "diff": "0.5",
    "env": "0.5",
    "promote": "0.5",
    "rollback": "0.5",
    "reconcile": "0.5",
    "state": "0.5",
}


class LazyGroup(click.Group):
    """A group whose commands are modules, imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name in COMMANDS:
            module = importlib.import_module(f"sqb.cli.commands.{cmd_name}")
            found: click.Command = module.command
            return found
        if cmd_name in LATER or cmd_name == "run":
            return _refusing(cmd_name)
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing:
            known = [*COMMANDS, *LATER]
            if name not in known and name != "run":
                found = nearest(name, known)
                raise SqbError(
                    "C008",
                    f"there is no command `{name}`",
                    help=f"did you mean `{found}`?" if found else "`sqb --help` lists them",
                )
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        with formatter.section("Later releases bring"):
            formatter.write_text(", ".join(LATER))


def _refusing(name: str) -> click.Command:
    """A command that only says where to go instead."""

    @click.pass_context
    def refuse(ctx: click.Context) -> None:  # noqa: ARG001 - the arguments mean nothing yet
        if name == "run":
            raise SqbError(
                "C008",
                "there is no command `run`",
                help="did you mean `build --no-tests --no-audits`?",
            )
        raise SqbError(
            "C011",
            f"`sqb {name}` arrives in release {LATER[name]}",
            help=f"this is sqb {sqb.__version__}; `sqb --help` lists its commands",
        )

    settings = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(
        name, callback=refuse, hidden=True, context_settings=settings, add_help_option=False
    )


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExample:\n  sqb init shop && cd shop\n  sqb build\n  sqb plan",
)
@click.version_option(sqb.__version__, prog_name="sqb", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Change-aware SQL builds on Apache Spark, with tables in Apache Iceberg.

    `sqb COMMAND --help` shows a command's options. Every common option can be set in the
    environment too: SQB_TARGET, SQB_PROJECT_DIR, ...
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
        ctx.exit(2)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """The entry point: run one command and leave with its exit code."""
    # Short-lived and small: collecting garbage would take a good part of the time of a plan.
    gc.disable()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    code = run(given)
    if not _flush():
        code = code or 1
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    from sqb.cli import call

    try:
        code = _run(arguments)
        # a reader that went away did not get what it asked for
        return code or int(_broken())
    finally:
        call.forget()


def _run(arguments: list[str]) -> int:
    if "_SQB_COMPLETE" in os.environ:
        from sqb.cli import completing

        completing.register()
    try:
        result = cli.main(arguments, prog_name="sqb", standalone_mode=False)
    except SqbError as error:
        return _show(error, arguments)
    except click.ClickException as error:
        return _show(_usage(error), arguments)
    except (KeyboardInterrupt, click.Abort):
        if _broken():
            return 1
        click.echo("\ninterrupted", err=True)
        return 130
    except BrokenPipeError:
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort: users never see a bare traceback
        return _show(_unexpected(error), arguments)
    return result if isinstance(result, int) else 0


def _show(error: SqbError, arguments: Sequence[str]) -> int:
    """Print an error, as text or as JSON."""
    from sqb.cli import call
    from sqb.cli.output import Output
    from sqb.cli.render.errors import error_text, masked

    here = call.current
    as_json = here.out.json if here else _asks_json(arguments)
    out = here.out if here else Output(json=as_json, no_color="--no-color" in arguments)
    config = here.config if here else None
    if here.debug if here else "--debug" in arguments:
        import traceback

        from sqb.project.secrets import mask

        out.error(mask("".join(traceback.format_exception(error)).rstrip(), config))
    if as_json:
        out.document({"schema_version": 1, "error": masked(error.to_json(), config)})
    else:
        colour = out.colour
        # what counts is where the error goes
        out.colour = colour and sys.stderr.isatty()
        out.error(error_text(error.to_json(), out, here.root() if here else None, config))
        out.colour = colour
    return error.exit_code


def _asks_json(arguments: Sequence[str]) -> bool:
    return "--json" in arguments or os.environ.get("SQB_JSON", "") not in ("", "0", "false")


def _usage(error: click.ClickException) -> SqbError:
    """What click has to say about the call, in the house's form."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "sqb"
    help_ = f"`{path} --help` shows what it takes"
    message = error.format_message().rstrip(".")
    if isinstance(error, click.NoSuchOption):
        message = f"there is no option `{error.option_name}`"
        if path == "sqb":
            help_ = "options come after the command: sqb plan --target prod"
        elif error.possibilities:
            help_ = f"did you mean `{min(error.possibilities)}`?"
            known = nearest(error.option_name, error.possibilities)
            if known:
                help_ = f"did you mean `{known}`?"
    if message:
        message = message[0].lower() + message[1:]
    return SqbError("C008", message, help=help_)


def _unexpected(error: Exception) -> SqbError:
    text = " ".join(str(error).split())
    kind = type(error).__name__
    shown = SqbError(
        "X004",
        f"unexpected {kind}: {text}" if text else f"unexpected {kind}",
        help="run again with --debug for the traceback; it is a bug, please report it",
        exit_code=1,
    )
    shown.__cause__ = error
    return shown


def _broken() -> bool:
    from sqb.cli import call

    return call.current is not None and call.current.out.broken


def _flush() -> bool:
    """Flush what was printed; a reader that went away is no reason for a traceback."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        # else the interpreter would try again while it ends, and complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True
