"""What every command is told: the common options, and the project they name."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqb.cli.output import Output
from sqb.errors import SqbError

if TYPE_CHECKING:
    from sqb.api import Project
    from sqb.project.config import Config


class Call:
    """One call of a command: its common options, its output, its project once it is open."""

    def __init__(self, options: dict[str, Any], out: Output, started: float) -> None:
        self.directory: str = options["project_dir"]
        self.target: str | None = options["target"]
        self.vars: str | None = options["vars_text"]
        self.select: tuple[str, ...] = options["select"]
        self.exclude: tuple[str, ...] = options["exclude"]
        self.debug: bool = options["debug"]
        self.out = out
        self.config: Config | None = None
        self._started = started

    def project(self) -> Project:
        """The project that the options name. Its folder must exist."""
        from sqb.api import Project
        from sqb.project.variables import parse_vars

        if not Path(self.directory).is_dir():
            raise SqbError(
                "C001",
                f"the folder {self.directory} does not exist",
                help="name the project's folder with --project-dir",
            )
        project = Project(self.directory, target=self.target, vars=parse_vars(self.vars))
        self.config = project.config
        self.out.mask = project.mask
        return project

    def root(self) -> Path | None:
        """The project's folder, if there is one: what file names in errors are relative to."""
        from sqb.project.layout import find_project

        try:
            return find_project(Path(self.directory).absolute())
        except SqbError:
            return None

    def seconds(self) -> float:
        """How long the command has been at it."""
        return time.perf_counter() - self._started

    def again(self) -> Call:
        """The same call with its clock at zero, for a command that runs others."""
        options = {
            "project_dir": self.directory,
            "target": self.target,
            "vars_text": self.vars,
            "select": self.select,
            "exclude": self.exclude,
            "debug": self.debug,
        }
        return Call(options, self.out, time.perf_counter())

    def before_heavy_work(self) -> None:
        """Spark or pyiceberg is about to be loaded: the process is no longer small and short."""
        import gc
        import logging

        gc.enable()
        if not self.debug:
            # pyspark and py4j log errors to the terminal that they raise all the same
            logging.disable(logging.CRITICAL)

    def no_selection(self, command: str) -> None:
        """Refuse selectors where they would mean nothing."""
        if self.select or self.exclude:
            raise SqbError("C008", f"`sqb {command}` takes no --select and no --exclude")


#: The call in progress: what the entry point needs to show an error.
current: Call | None = None


def forget() -> None:
    """The call is over."""
    global current  # noqa: PLW0603
    if current is not None:
        current.out.close()
    current = None


def offer(kind: str) -> Callable[[click.Context, click.Parameter, str], list[Any]]:
    """What a shell completes: ``selector``, ``node``, ``any`` (node or source) or ``target``."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[Any]:
        from sqb.cli import completing

        return list(completing.complete(kind, context, incomplete))

    return complete


#: The common options by the name of their value.
_OPTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "project_dir": (
        ("--project-dir",),
        {
            "default": ".",
            "metavar": "DIR",
            "type": click.Path(),
            "help": "The project, or a folder inside it.",
        },
    ),
    "target": (
        ("--target",),
        {"metavar": "NAME", "shell_complete": offer("target"), "help": "The target to work on."},
    ),
    "vars_text": (
        ("--vars", "vars_text"),
        {"metavar": "YAML", "help": "Variables, as YAML or JSON, over those of the project."},
    ),
    "select": (
        ("-s", "--select"),
        {
            "multiple": True,
            "metavar": "SELECTOR",
            "shell_complete": offer("selector"),
            "help": "Take these nodes: name, stg_*, tag:x, path:x, +x, x+, a~b. Repeatable.",
        },
    ),
    "exclude": (
        ("--exclude",),
        {
            "multiple": True,
            "metavar": "SELECTOR",
            "shell_complete": offer("selector"),
            "help": "Leave these nodes out. Repeatable.",
        },
    ),
    "json_": (("--json", "json_"), {"is_flag": True, "help": "Print one JSON document."}),
    "no_color": (("--no-color",), {"is_flag": True, "help": "Print no colours."}),
    "verbose": (("-v", "--verbose"), {"is_flag": True, "help": "Print more: all nodes and lines."}),
    "quiet": (("-q", "--quiet"), {"is_flag": True, "help": "Print less: results and errors."}),
    "debug": (("--debug",), {"is_flag": True, "help": "Print the traceback of an error."}),
    "no_warm": (
        ("--no-warm",),
        {"is_flag": True, "help": "Do not use the project's warm Spark."},
    ),
    "log_file": (
        ("--log-file",),
        {
            "metavar": "FILE",
            "type": click.Path(),
            "help": "Append everything that is printed to a file.",
        },
    ),
}

#: Groups of options that mean nothing to some commands; see ``hides`` of ``command``.
SELECTION = ("select", "exclude")
PROJECT = ("project_dir", "target", "vars_text", *SELECTION)


def _option(name: str, *, hidden: bool, help_: str | None) -> Callable[[Any], Any]:
    words, settings = _OPTIONS[name]
    long = next(word for word in words if word.startswith("--"))
    # what a command does not show must not reach it from the environment either
    own = hidden or help_ is not None
    variable = None if own else "SQB_" + long[2:].upper().replace("-", "_")
    if help_ is not None:
        settings = {**settings, "help": help_, "shell_complete": None}
    return click.option(*words, **settings, envvar=variable, hidden=hidden)


def common(
    function: Callable[..., int | None], hides: Sequence[str] = (), means: Mapping[str, str] = {}
) -> Callable[..., int | None]:
    """Give a command the common options, as one ``Call`` in front of its own."""
    started = time.perf_counter()

    @functools.wraps(function)
    def with_call(**options: Any) -> int | None:
        global current  # noqa: PLW0603 - the entry point shows errors in the call's own way
        mine = {name: options.pop(name) for name in _OPTIONS}
        log_file = mine["log_file"]
        out = Output(
            json=mine["json_"],
            no_color=mine["no_color"],
            quiet=mine["quiet"],
            verbose=mine["verbose"],
            log_file=Path(log_file) if log_file else None,
            environ=os.environ,
        )
        current = Call(mine, out, started)
        return function(current, **options)

    for name in reversed(_OPTIONS):
        with_call = _option(name, hidden=name in hides, help_=means.get(name))(with_call)
    return with_call


class SqbCommand(click.Command):
    """A command whose help shows its own options before those that all commands have."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                (shared if param.name in _OPTIONS or param.name == "help" else own).append(record)
        for title, records in (("Options", own), ("Common options", shared)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def command(
    name: str,
    *,
    help: str,
    example: str,
    hides: Sequence[str] = (),
    means: Mapping[str, str] = {},
    cls: type[SqbCommand] = SqbCommand,
) -> Callable[..., click.Command]:
    """A command whose help ends with an example, after the common options.

    ``hides`` names common options that mean nothing to it: they are not in its help. ``means``
    tells what others mean to this command, where that is something of its own.
    """

    def wrap(function: Callable[..., int | None]) -> click.Command:
        lines = "\n".join(f"  {line}" for line in example.strip().splitlines())
        epilog = f"\b\nExample:\n{lines}"
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        return click.command(name, cls=cls, help=help, epilog=epilog, context_settings=settings)(
            common(function, hides, means)
        )

    return wrap
