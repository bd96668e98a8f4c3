"""The small half of a warm command: hand arguments, environment and streams over, wait, exit.

Whatever keeps a warm Spark from being used, the answer is None and the command runs as ever.
"""

from __future__ import annotations

import os
import sys

from sqb.cli.warm import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from types import FrameType
    from typing import Any

#: Commands that are faster where everything is loaded. The others start or stop things themselves.
COMMANDS = frozenset(
    {
        "build",
        "compile",
        "explain",
        "freshness",
        "history",
        "lineage",
        "ls",
        "plan",
        "query",
        "seed",
    }
)
_CONNECT_SECONDS = 1.0
_ACCEPT_SECONDS = 5.0
#: Said by a caller that has heard of its command: only then the command begins.
GO = b"g"
_FORWARDED = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGWINCH")


def hand_over(arguments: list[str]) -> int | None:
    """Run a command in the project's warm Spark; its exit code, None if it was not taken."""
    if not wanted(arguments, os.environ.get("SQB_NO_WARM", "")):
        return None
    root = place.project_root(_directory(arguments))
    state = place.read_state(root) if root is not None else None
    if state is None or place.misfit(state) is not None:
        return None
    connection = place.call(state, _CONNECT_SECONDS)
    if connection is None:
        return None
    with connection:
        return _run(connection, arguments)


def wanted(arguments: list[str], opted_out: str) -> bool:
    """Is it a command for a warm Spark, and not told to stay away from it?"""
    if not arguments or arguments[0] not in COMMANDS:
        return False
    if "-h" in arguments or "--help" in arguments or "--no-warm" in arguments:
        return False
    return opted_out in ("", "0", "false")


def _directory(arguments: list[str]) -> str:
    for number, text in enumerate(arguments):
        if text == "--project-dir" and number + 1 < len(arguments):
            return arguments[number + 1]
        if text.startswith("--project-dir="):
            return text.partition("=")[2]
    return os.environ.get("SQB_PROJECT_DIR") or "."


def _run(connection: socket.socket, arguments: list[str]) -> int | None:
    umask = os.umask(0)
    os.umask(umask)
    try:
        directory = os.getcwd()  # noqa: PTH109
        streams = [sys.stdin.fileno(), sys.stdout.fileno(), sys.stderr.fileno()]
    except (OSError, AttributeError, ValueError):
        return None
    request = {
        "do": "run",
        "arguments": arguments,
        "directory": directory,
        "environ": dict(os.environ),
        "umask": umask,
        "encodings": [stream.encoding for stream in (sys.stdin, sys.stdout, sys.stderr)],
    }
    import signal

    signals = _Signals()
    connection.settimeout(_ACCEPT_SECONDS)
    try:
        send(connection, request, streams)
        accepted = _line(connection)
    except (OSError, ValueError):
        accepted = {}
    if "pid" not in accepted:
        signals.restore()
        return None
    try:
        connection.sendall(GO)
    except OSError:
        signals.restore()
        return None
    # From here on the command runs, and runs once: whatever happens now is its end.
    connection.settimeout(None)
    signals.send_to(accepted["pid"])
    try:
        ended = _line(connection)
    except (OSError, ValueError):
        ended = {}
    signals.restore()
    if "exit" in ended:
        return int(ended["exit"])
    if "signal" in ended:
        if ended["signal"] != signal.SIGKILL:  # which can't be handled, so needs no default
            signal.signal(ended["signal"], signal.SIG_DFL)
        os.kill(os.getpid(), ended["signal"])
    print("error: the warm Spark ended while the command ran", file=sys.stderr)
    return 1


def send(connection: socket.socket, request: dict[str, object], streams: list[int]) -> None:
    """One request: its length, its JSON, and the streams on the first byte."""
    import array
    import json
    import socket

    data = json.dumps(request).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))] if streams else []
    connection.sendmsg([len(data).to_bytes(4, "big")], rights)
    connection.sendall(data)


def _line(connection: socket.socket) -> dict[str, int]:
    import json

    data = b""
    while not data.endswith(b"\n"):
        part = connection.recv(4096)
        if not part:
            return {}
        data += part
    found = json.loads(data)
    return found if isinstance(found, dict) else {}


class _Signals:
    """Passes signals on to the process that is the command; those that came early wait."""

    def __init__(self) -> None:
        import signal

        self._pid: int | None = None
        self._early: list[int] = []
        self._before: dict[int, Any] = {}
        for name in (*_FORWARDED, "SIGTSTP"):
            number = getattr(signal, name)
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._hear)

    def send_to(self, pid: int) -> None:
        self._pid = pid
        for number in self._early:
            self._pass(number)

    def restore(self) -> None:
        import signal

        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        if self._pid is None and self._early:
            # not taken over: the signal is for this process
            for number in self._early:
                os.kill(os.getpid(), number)

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self._pid is None:
            self._early.append(number)
        else:
            self._pass(number)

    def _pass(self, number: int) -> None:
        import signal

        if self._pid is None:
            return
        try:
            if number == signal.SIGTSTP:
                os.kill(self._pid, signal.SIGSTOP)
                os.kill(os.getpid(), signal.SIGSTOP)
                os.kill(self._pid, signal.SIGCONT)
            else:
                os.kill(self._pid, number)
        except ProcessLookupError:
            pass
