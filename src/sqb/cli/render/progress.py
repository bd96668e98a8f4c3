"""What is shown while a build runs.

On a terminal a small live region below the results; elsewhere a line per finished node.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from sqb.cli.output import GREY, Output
from sqb.cli.render.build_text import ResultLines
from sqb.cli.render.words import duration
from sqb.execution.events import Event
from sqb.planning.plan import Plan

if TYPE_CHECKING:
    from rich.live import Live
    from rich.text import Text

#: Running nodes that the live region names.
_SHOWN = 6
_GREY = f"color({GREY})"
_BAR = 20
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Progress:
    """Listens to a build. Called from all threads of the scheduler, so all state is locked."""

    def __init__(self, out: Output, before_spark: Callable[[], None]) -> None:
        self._out = out
        self._before_spark = before_spark
        self._lock = threading.Lock()
        self._lines: ResultLines | None = None
        self._running: dict[str, float] = {}
        self._starting: float | None = None
        self._began = time.perf_counter()
        self._live: Live | None = None

    def close(self) -> None:
        """Take the live region away; what was printed stays."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def plan(self, plan: Plan) -> None:
        """What is going to happen."""
        self._lines = ResultLines(plan, self._out)

    def hear(self, event: Event) -> None:
        """Something happened."""
        with self._lock:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        now = time.perf_counter()
        if event.kind == "spark_starting":
            self._before_spark()
            self._starting = now
            self._open()
            if not self._out.terminal:
                self._print("starting Spark…")
        elif event.kind == "spark_started" and self._starting is not None:
            took = duration(now - self._starting)
            self._starting = None
            if not self._out.terminal:
                self._print(f"Spark is up ({took})")
        elif event.kind == "node_started" and event.node is not None:
            # a session that runs already was not announced
            self._open()
            self._running[event.node] = now
        elif event.kind == "node_finished" and event.result is not None:
            self._running.pop(event.result.name, None)
            if self._lines is not None:
                text = self._lines.line(event.result)
                if self._lines.crowded and event.result.status != "failed":
                    self._out.log(text)
                else:
                    self._print(text)
        elif event.kind == "note" and event.message:
            self._print(event.message)

    def _print(self, text: str) -> None:
        if self._live is None or self._out.quiet:
            self._out.line(text)
            return
        from rich.text import Text

        self._live.console.print(Text.from_ansi(self._out.mask(text)), soft_wrap=True)
        self._out.log(text)

    def _open(self) -> None:
        if self._out.quiet or not self._out.terminal or self._live is not None:
            return
        from rich.console import Console
        from rich.live import Live

        console = Console(
            file=self._out.stream,
            no_color=not self._out.colour,
            width=self._out.width,
            highlight=False,
            # decided already; rich would look at other variables
            force_terminal=True,
        )
        self._live = Live(
            console=console,
            get_renderable=self._region,
            refresh_per_second=8,
            transient=True,
            vertical_overflow="crop",
        )
        self._live.start()

    def _region(self) -> Text:
        """The live region: what runs, since when, and how far the build is."""
        from rich.text import Text

        now = time.perf_counter()
        frame = _FRAMES[int(now * 8) % len(_FRAMES)]
        text = Text()
        running = sorted(self._running.copy().items(), key=lambda item: (item[1], item[0]))
        if self._starting is not None:
            text.append(f"  {frame} starting Spark… {now - self._starting:.0f}s", style="cyan")
            return text
        for name, since in running[:_SHOWN]:
            text.append(f"  {frame} ", style="cyan")
            text.append(name)
            text.append(f"  {now - since:.0f}s\n", style=_GREY)
        if len(running) > _SHOWN:
            text.append(f"    and {len(running) - _SHOWN} more\n", style=_GREY)
        if self._lines is not None:
            done, total = self._lines.done, self._lines.total
            text.append(f"  {_bar(done, total)} {done} of {total} done")
            text.append(f"  {_clock(now - self._began)}", style=_GREY)
        text.no_wrap, text.overflow = True, "ellipsis"
        return text


@contextlib.contextmanager
def waiting(out: Output, text: str) -> Iterator[None]:
    """Show on a terminal that something takes its time; nothing stays of it."""
    if out.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    began = time.perf_counter()

    def region() -> Text:
        now = time.perf_counter()
        frame = _FRAMES[int(now * 8) % len(_FRAMES)]
        return Text(f"{frame} {text} {_clock(now - began)}", style="cyan")

    console = Console(file=sys.stderr, no_color=not out.colour, force_terminal=True)
    with Live(console=console, get_renderable=region, refresh_per_second=8, transient=True):
        yield


def _bar(done: int, total: int) -> str:
    """
    >>> _bar(3, 6)
    '━━━━━━━━━━──────────'
    """
    full = _BAR * done // total if total else _BAR
    return "━" * full + "─" * (_BAR - full)


def _clock(seconds: float) -> str:
    """Whole seconds, so that the line does not flicker.

    >>> _clock(9.7), _clock(75)
    ('9s', '1m 15s')
    """
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m {rest:02d}s" if minutes else f"{rest}s"
