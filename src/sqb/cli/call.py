"""What every command is told: the common options, and the project they name."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
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

        if not Path(self.directory).is_dir():
            raise SqbError(
                "C001",
                f"the folder {self.directory} does not exist",
                help="name the project's folder with --project-dir",
            )
        project = Project(self.directory, target=self.target, vars=parse_vars(self.vars))
        self.config = project.config
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


def parse_vars(text: str | None) -> dict[str, object]:
    """The variables of ``--vars``: a JSON object, or a YAML mapping.

    >>> parse_vars('{"day": 3}')
    {'day': 3}
    """
    if not text or not text.strip():
        return {}
    import msgspec

    value: object
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        import yaml

        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = None
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise SqbError(
            "C008",
            "--vars is neither a JSON object nor a YAML mapping",
            help="for example --vars '{\"day\": \"2026-01-31\"}' or --vars 'day: 2026-01-31'",
        )
    return value


#: The call in progress: what the entry point needs to show an error.
current: Call | None = None


def forget() -> None:
    """The call is over."""
    global current  # noqa: PLW0603
    if current is not None:
        current.out.close()
    current = None


_OPTIONS = (
    click.option(
        "--project-dir",
        envvar="SQB_PROJECT_DIR",
        default=".",
        metavar="DIR",
        help="The project, or a folder inside it.",
    ),
    click.option("--target", envvar="SQB_TARGET", metavar="NAME", help="The target to work on."),
    click.option(
        "--vars",
        "vars_text",
        envvar="SQB_VARS",
        metavar="YAML",
        help="Variables, as YAML or JSON, over those of the project.",
    ),
    click.option(
        "-s",
        "--select",
        envvar="SQB_SELECT",
        multiple=True,
        metavar="SELECTOR",
        help="Take these nodes: name, stg_*, tag:x, path:x, +x, x+, a~b. Repeatable.",
    ),
    click.option(
        "--exclude",
        envvar="SQB_EXCLUDE",
        multiple=True,
        metavar="SELECTOR",
        help="Leave these nodes out. Repeatable.",
    ),
    click.option(
        "--json", "json_", envvar="SQB_JSON", is_flag=True, help="Print one JSON document."
    ),
    click.option("--no-color", envvar="SQB_NO_COLOR", is_flag=True, help="Print no colours."),
    click.option(
        "-v", "--verbose", envvar="SQB_VERBOSE", is_flag=True, help="Print more: whole diffs."
    ),
    click.option(
        "-q", "--quiet", envvar="SQB_QUIET", is_flag=True, help="Print less: results and errors."
    ),
    click.option(
        "--debug", envvar="SQB_DEBUG", is_flag=True, help="Print the traceback of an error."
    ),
    click.option(
        "--no-warm",
        envvar="SQB_NO_WARM",
        is_flag=True,
        help="Do not use the project's warm Spark.",
    ),
    click.option(
        "--log-file",
        envvar="SQB_LOG_FILE",
        metavar="FILE",
        help="Append everything that is printed to a file.",
    ),
)
_NAMES = (
    "project_dir",
    "target",
    "vars_text",
    "select",
    "exclude",
    "json_",
    "no_color",
    "verbose",
    "quiet",
    "debug",
    "no_warm",
    "log_file",
)


def common(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Give a command the common options, as one ``Call`` in front of its own."""
    started = time.perf_counter()

    @functools.wraps(function)
    def with_call(**options: Any) -> int | None:
        global current  # noqa: PLW0603 - the entry point shows errors in the call's own way
        mine = {name: options.pop(name) for name in _NAMES}
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

    for option in reversed(_OPTIONS):
        with_call = option(with_call)
    return with_call


def command(name: str, *, help: str, example: str) -> Callable[..., click.Command]:
    """A command whose help ends with an example, after the common options."""

    def wrap(function: Callable[..., int | None]) -> click.Command:
        lines = "\n".join(f"  {line}" for line in example.strip().splitlines())
        epilog = f"\b\nExample:\n{lines}"
        settings = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
        return click.command(name, help=help, epilog=epilog, context_settings=settings)(
            common(function)
        )

    return wrap
