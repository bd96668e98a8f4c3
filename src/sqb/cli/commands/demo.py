"""``sqb demo``: a small project, built and changed before the reader's eyes."""

from __future__ import annotations

import importlib

from sqb.cli.call import Call
from sqb.cli.call import command as sqb_command


def demo(call: Call) -> int:
    """Run the demo; it prints through the call's output and works in a folder of its own."""
    call.no_selection("demo")
    run = importlib.import_module("sqb.demo").run
    result: int | None = run(call.out)
    return result or 0


command = sqb_command(
    "demo",
    help="Watch a small project being built and changed.",
    example="""
sqb demo
""",
)(demo)
