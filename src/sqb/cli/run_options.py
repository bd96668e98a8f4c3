"""The options that ``plan`` and ``build`` share, and the refusal of those that come later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from sqb.errors import SqbError

#: option -> the release that brings it.
_LATER = {
    "virtual_env": "0.5",
    "changes_only": "0.5",
    "include_stale_upstreams": "0.5",
    "start_cursor": "0.5",
    "end_cursor": "0.5",
    "defer_to": "0.5",
}
_OPTIONS = (
    click.option("--force", envvar="SQB_FORCE", is_flag=True, help="Run current nodes too."),
    click.option(
        "--full-refresh",
        envvar="SQB_FULL_REFRESH",
        is_flag=True,
        help="Rebuild the selected nodes from scratch.",
    ),
    click.option(
        "--refresh",
        envvar="SQB_REFRESH",
        type=click.Choice(["auto", "rows", "full"]),
        default=None,
        help="How tables are brought up to date in this run: by rows wherever possible, always "
        "in full, or whichever is cheaper (auto). Default: what each model says.",
    ),
    click.option("--virtual-env", envvar="SQB_VIRTUAL_ENV", hidden=True),
    click.option("--changes-only", is_flag=True, hidden=True),
    click.option("--include-stale-upstreams", is_flag=True, hidden=True),
    click.option("--start-cursor", hidden=True),
    click.option("--end-cursor", hidden=True),
    click.option("--defer-to", hidden=True),
)


def run_options(function: Callable[..., int | None]) -> Callable[..., int | None]:
    """Add the options of ``plan`` and ``build``."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def refuse_later(options: dict[str, Any]) -> None:
    """An option that was used before its release is an error, never silently nothing."""
    for name, value in options.items():
        if value:
            _refuse(f"--{name.replace('_', '-')}", _LATER[name])


def _refuse(option: str, release: str) -> None:
    raise SqbError(
        "C011", f"`{option}` arrives in release {release}", help="leave the option out until then"
    )
