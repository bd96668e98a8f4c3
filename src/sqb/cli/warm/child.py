"""A fork that becomes one command: its arguments, environment and streams, and nothing else."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TextIO

#: Loaded once, before any fork. No command module is among them: they start a clock.
PRELOADED = (
    "click",
    "pandas",
    "pyarrow.parquet",
    "pyiceberg.catalog.sql",
    "pyiceberg.expressions",
    "pyiceberg.io.pyarrow",
    "pyiceberg.table.snapshots",
    "pyspark.sql.connect.dataframe",
    "pyspark.sql.connect.functions",
    "pyspark.sql.connect.observation",
    "pyspark.sql.connect.proto",
    "pyspark.sql.connect.readwriter",
    "pyspark.sql.connect.session",
    "pyspark.sql.functions",
    "rich.console",
    "rich.live",
    "rich.text",
    "sqlalchemy.dialects.sqlite",
    "sqlglot",
    "yaml",
    "sqb.api",
    "sqb.cli.main",
    "sqb.cli.output",
    "sqb.cli.call",
    "sqb.cli.render.build_text",
    "sqb.cli.render.documents",
    "sqb.cli.render.errors",
    "sqb.cli.render.plan_text",
    "sqb.cli.render.progress",
    "sqb.cli.render.rows",
    "sqb.compile.compiler",
    "sqb.execution.artifacts",
    "sqb.execution.build",
    "sqb.execution.diffs",
    "sqb.spark.connect",
    "sqb.spark.session",
    "sqb.spark.warm",
    "sqb.sql.expand",
    "sqb.sql.references",
)

_RESET = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGCHLD", "SIGPIPE")


def preload() -> None:
    """Import what commands need; must leave one thread, for threads do not survive a fork."""
    import gc
    import importlib
    import threading

    for name in PRELOADED:
        importlib.import_module(name)
    if threading.active_count() != 1:
        raise AssertionError("a thread was started before the first fork")
    gc.collect()
    # What is there now is never collected, so that pages stay shared with the forks.
    gc.freeze()


def become(
    request: dict[str, Any],
    streams: Sequence[int],
    close: Callable[[], None],
    remote: tuple[str, str],
) -> NoReturn:
    """Turn this fresh fork into the command of ``request``; never returns."""
    code = 1
    try:
        _fresh(request, streams, close)
        code = _command(request["arguments"], remote)
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        # Not sys.exit: that would unwind into the loop that this fork came from.
        os._exit(code)


def _command(arguments: list[str], remote: tuple[str, str]) -> int:
    from sqb.cli.main import main
    from sqb.spark.warm import Offer, offer

    offer(Offer(*remote))
    sys.argv = ["sqb", *arguments]
    try:
        main(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)


def _fresh(request: dict[str, Any], streams: Sequence[int], close: Callable[[], None]) -> None:
    signal.set_wakeup_fd(-1)
    for name in _RESET:
        default = signal.SIG_IGN if name == "SIGPIPE" else signal.SIG_DFL
        signal.signal(getattr(signal, name), default)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        setattr(sys, name, _stream(number, mode, request["encodings"][number]))
    os.environ.clear()
    os.environ.update(request["environ"])
    os.umask(request["umask"])
    os.chdir(request["directory"])
    time.tzset()


def _stream(number: int, mode: str, encoding: str) -> TextIO:
    raw = io.FileIO(number, mode, closefd=False)
    if mode == "r":
        return io.TextIOWrapper(io.BufferedReader(raw), encoding=encoding)
    errors = "backslashreplace" if number == 2 else "strict"
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=encoding,
        errors=errors,
        line_buffering=number == 2 or raw.isatty(),
    )
