"""``sqb demo``: a small project, built and changed before the reader's eyes."""

from __future__ import annotations

from sqb.cli.call import PROJECT, Call
from sqb.cli.call import command as sqb_command


def demo(call: Call) -> int:
    """Run the tour; it works in a folder of its own."""
    from sqb.cli.tour import run

    call.no_selection("demo")
    return run(call)


command = sqb_command(
    "demo",
    help="Watch a small project being built and changed.",
    example="""
sqb demo
""",
    hides=(*PROJECT, "verbose", "json_"),
)(demo)
