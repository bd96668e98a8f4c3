"""Starting, stopping and asking a project's warm Spark, from another process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from sqb.cli.warm import place
from sqb.cli.warm.client import send
from sqb.cli.warm.zygote import Order
from sqb.errors import SqbError

_ANSWER_SECONDS = 5.0
_STOP_SECONDS = 60.0
#: Threads that libraries would start while they are imported; a fork must find none.
_SINGLE = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}


def start(order: Order) -> bool:
    """Start a warm Spark and wait until it is up; False if there is one already."""
    folder = Path(place.inside(order.root))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "warm.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "sqb.cli.warm.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=os.sep,
            env=_environ(),
            start_new_session=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    with process.stdin, process.stdout:
        try:
            process.stdin.write(msgspec.json.encode(order) + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BaseException:
            process.terminate()
            raise
    answer = json.loads(line) if line else {}
    if "error" in answer or not answer:
        told = answer.get("error", {})
        message = told.get("message") or f"the process ended; see {folder / 'warm.log'}"
        raise SqbError("J006", str(message), help=told.get("help"), exit_code=1)
    # It outlives this process: no warning that it was not waited for.
    process.returncode = 0
    return "ready" in answer


def _environ() -> dict[str, str]:
    out = {**os.environ, **_SINGLE}
    if out.get("PYTHONPATH"):
        # it starts in another folder
        paths = out["PYTHONPATH"].split(os.pathsep)
        out["PYTHONPATH"] = os.pathsep.join(str(Path(path).absolute()) for path in paths if path)
    return out


def status(root: str) -> dict[str, Any]:
    """What is known of the project's warm Spark: ``state`` and, where there is one, more."""
    found = place.read_state(root)
    if found is None:
        return {"state": "stopped" if _lock_holder(root) is None else "starting"}
    answer = _ask(found, "status")
    if answer is None:
        return {"state": "dead", "why": "its process does not answer"}
    reason = place.misfit(found)
    out = {"state": "running", "usable": reason is None, "started": found.get("started"), **answer}
    return {**out, "why": reason} if reason else out


def stop(root: str) -> bool:
    """End the project's warm Spark and wait until it is gone; False if there was none."""
    found = place.read_state(root)
    holder = _lock_holder(root)
    if found is not None:
        _ask(found, "stop")
    elif holder is not None:
        # who has just taken the lock may not have written its name yet
        time.sleep(0.1)
        holder = _lock_holder(root)
    if found is None and holder is not None and holder > 0:
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while _lock_holder(root) is not None:
        if time.monotonic() > deadline:
            raise SqbError(
                "J006",
                f"the warm Spark (process {holder or 'unknown'}) does not end",
                help=f"kill {holder}" if holder else None,
                exit_code=1,
            )
        time.sleep(0.05)
    Path(place.inside(root, place.STATE)).unlink(missing_ok=True)
    return holder is not None


def _ask(state: dict[str, Any], what: str) -> dict[str, Any] | None:
    connection = place.call(state, _ANSWER_SECONDS)
    if connection is None:
        return None
    with connection:
        try:
            send(connection, {"do": what}, [])
            found = json.loads(connection.recv(65536))
        except (OSError, ValueError):
            return None
    return found if isinstance(found, dict) else None


def _lock_holder(root: str) -> int | None:
    """The process that holds the project's lock, 0 if that is unknown, None if nobody does.

    Shared: two that only look must not take each other for a warm Spark.
    """
    try:
        with open(place.inside(root, place.LOCK), "r+", encoding="utf-8") as file:  # noqa: PTH123
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError:
                text = file.read().strip()
                return int(text) if text.isdigit() else 0
    except OSError:
        pass
    return None
