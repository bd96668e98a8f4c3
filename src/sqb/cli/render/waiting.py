"""A line on standard error when a command that is usually instant has to wait for Spark."""

from __future__ import annotations

from sqb.cli.call import Call
from sqb.execution.events import Event


class Waiting:
    """Listens while sources are observed."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def hear(self, event: Event) -> None:
        """Something takes a while."""
        if event.kind == "spark_starting":
            self._call.before_heavy_work()
            self._say("starting Spark…")
        elif event.kind == "note" and event.message:
            self._say(event.message)

    def _say(self, text: str) -> None:
        if not self._call.out.quiet:
            self._call.out.error(text)
