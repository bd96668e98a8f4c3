"""``sqb spark``: a warm Spark for the project, and how to open its lake elsewhere."""

from __future__ import annotations

from typing import Any

import click

from sqb.cli.call import SELECTION, Call
from sqb.cli.call import command as sqb_command
from sqb.errors import SqbError


def start(call: Call, *, idle: str) -> None:
    """Start it, or say that it is there."""
    from sqb.cli.warm import control
    from sqb.cli.warm.zygote import Order
    from sqb.project.durations import duration_seconds
    from sqb.spark.settings import settings_of

    call.no_selection("spark start")
    seconds = duration_seconds(idle)
    if seconds is None:
        raise SqbError("C008", f"`{idle}` is not a duration", help="for example --idle 30m or 2h")
    project = call.project()
    settings = settings_of(project.config)
    if settings.remote is not None or not settings.is_local:
        raise SqbError(
            "J006",
            "a warm Spark is a local one, and this target's Spark runs elsewhere",
            help='it is for targets with master = "local[*]" and no `remote`',
        )
    _need_client()
    root = str(project.root.resolve())
    # makes the folder, with its .gitignore
    _ = project.work_dir
    if control.status(root)["state"] == "dead":
        control.stop(root)
    call.out.line("starting a warm Spark…")
    order = Order(root, project.config.name, settings, float(seconds))
    began = control.start(order)
    if call.out.json:
        call.out.document({"schema_version": 1, **control.status(root)})
    elif began:
        call.out.important(
            f"A warm Spark is up ({call.seconds():.0f}s); it ends after {idle} without a command"
        )
    else:
        call.out.important("A warm Spark is up already, or is being started")


def _need_client() -> None:
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("grpc", "pandas", "grpc_status")):
        raise SqbError(
            "J006",
            "the packages of the Spark Connect client are not installed",
            help="pip install 'sqb[connect]'",
        )


def _root(call: Call) -> str:
    root = call.root()
    if root is None:
        call.project()
        raise AssertionError("a project without a folder")
    return str(root.resolve())


def stop(call: Call) -> None:
    """End it."""
    from sqb.cli.warm import control

    call.no_selection("spark stop")
    was = control.stop(_root(call))
    if call.out.json:
        call.out.document({"schema_version": 1, "state": "stopped"})
    else:
        call.out.important("The warm Spark was stopped" if was else "There is no warm Spark")


def status(call: Call) -> None:
    """Say how it is."""
    from sqb.cli.warm import control

    call.no_selection("spark status")
    root = _root(call)
    found = control.status(root)
    if found["state"] == "running" and found["usable"]:
        reason = _target_misfit(call, root)
        if reason:
            found |= {"usable": False, "why": reason}
    if call.out.json:
        call.out.document({"schema_version": 1, **found})
        return
    for line in _lines(found):
        call.out.important(line)


def _target_misfit(call: Call, root: str) -> str | None:
    """Does the server fit the target that the call names?"""
    from sqb.cli.warm import place
    from sqb.spark.settings import settings_of
    from sqb.spark.warm import needs

    project = call.project()
    state = place.read_state(root) or {}
    if state.get("fits") == needs(settings_of(project.config), project.environ):
        return None
    return f"the Spark settings of target {project.config.target.name} are not those it runs with"


def _lines(found: dict[str, Any]) -> list[str]:
    state = found["state"]
    if state == "running":
        line = (
            f"running (process {found['pid']}), {found['served']} commands served, "
            f"{found['running']} running; ends in {found['ends_in'] / 60:.0f} min without one"
        )
        if found["usable"]:
            return [line]
        return [line, f"not used: {found['why']}; `sqb spark stop` and start it again"]
    if state == "dead":
        return [f"dead: {found['why']}; `sqb spark start` starts a new one"]
    return [state]


def conf(call: Call, *, format_: str) -> None:
    """Print the settings that open the lake elsewhere."""
    from sqb.spark.elsewhere import rendered
    from sqb.spark.settings import settings_of

    call.no_selection("spark conf")
    config = call.project().config
    text = rendered(
        settings_of(config), format_, target=config.target.name, schema=config.target.schema
    )
    if call.out.json:
        call.out.document({"schema_version": 1, "format": format_, "text": text})
    else:
        call.out.raw(text)


_format = click.option(
    "--format",
    "format_",
    envvar="SQB_FORMAT",
    type=click.Choice(["defaults", "submit", "pyiceberg", "dbt"]),
    default="defaults",
    show_default=True,
    help="spark-defaults.conf, arguments of spark-submit, .pyiceberg.yaml, or a dbt profile.",
)

_idle = click.option(
    "--idle",
    envvar="SQB_IDLE",
    default="30m",
    show_default=True,
    metavar="TIME",
    help="End it after this long without a command.",
)

command = click.Group(
    "spark",
    help="Keep a warm Spark for the project; print how to open its lake elsewhere.",
    epilog="\b\nExample:\n  sqb spark start\n  sqb build\n  sqb spark stop",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    commands={
        "start": sqb_command(
            "start",
            help="Start a warm local Spark that later commands of this project use.",
            example="sqb spark start\nsqb spark start --idle 2h",
            hides=SELECTION,
        )(_idle(start)),
        "stop": sqb_command(
            "stop",
            help="Stop the project's warm Spark.",
            example="sqb spark stop",
            hides=SELECTION,
        )(stop),
        "status": sqb_command(
            "status",
            help="Say whether there is a warm Spark, and whether commands use it.",
            example="sqb spark status\nsqb spark status --json",
            hides=SELECTION,
        )(status),
        "conf": sqb_command(
            "conf",
            help="Print the settings that open the project's lake elsewhere.",
            example="sqb spark conf > spark-defaults.conf\nsqb spark conf --format pyiceberg",
            hides=SELECTION,
        )(_format(conf)),
    },
)
