"""The process behind ``sqb spark start``: keeps a Spark Connect server, and forks commands.

Single-threaded, with everything imported that a command needs and without a connection open, so
that a fork is a command that costs neither imports nor a JVM. It ends when it is told to, when
nobody came for a while, when its server is gone, and when its project is.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from sqb.cli.warm import child, place
from sqb.cli.warm.client import GO
from sqb.errors import SqbError
from sqb.spark.server import ConnectServer
from sqb.spark.settings import SparkSettings
from sqb.spark.warm import needs

_TICK = 2.0
_READ_SECONDS = 5.0
#: What a command may take to end after it was asked to.
_GRACE_SECONDS = 15.0
#: How long a command that only looks at the lock may hold it.
_LOOKED_AT_SECONDS = 0.3
#: The longest path that a socket can have, on macOS.
_LONGEST = 100


class Order(msgspec.Struct, frozen=True):
    """What ``sqb spark start`` asks for."""

    root: str
    name: str
    settings: SparkSettings
    idle_seconds: float


class TakenError(Exception):
    """Another one runs for this project, or is about to."""


class _Client(msgspec.Struct):
    """A command: its caller's connection, and when it was asked to end.

    ``go`` is the end of a pipe at which the command waits for its beginning.
    """

    connection: socket.socket | None
    go: int | None
    asked: float | None = None


class Zygote:
    """The loop, and what it holds."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._clients: dict[int, _Client] = {}
        self._last = time.monotonic()
        self._served = 0
        self._ending = False
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        folder = Path(place.inside(order.root))
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = _locked(folder / place.LOCK)
        self._fits = needs(order.settings, os.environ)
        self._started = time.time()
        self._server = ConnectServer(
            order.settings,
            log_file=folder / "spark.log",
            app_name=f"sqb {order.name} (warm)",
            environ=os.environ,
        )
        try:
            child.preload()
            self._server.wait()
            self._warm_up()
            self._listener = self._listen(folder)
        except BaseException:
            self._server.stop()
            raise
        self._wake, wake = os.pipe()
        for end in (self._wake, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._wake_end = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._end)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self._write_state()

    def run(self) -> None:
        """Serve until it is over, then leave nothing behind."""
        try:
            while not self._over():
                self._turn()
        finally:
            self._close()

    # Starting

    def _listen(self, folder: Path) -> socket.socket:
        path = folder / "socket"
        path.unlink(missing_ok=True)
        try:
            if len(os.fsencode(path)) > _LONGEST:
                raise OSError("too long")
            return _listening(path)
        except OSError:
            # A folder that is too deep, or on a file system without sockets.
            self._scratch = tempfile.TemporaryDirectory(prefix="sqb-warm-")
            return _listening(Path(self._scratch.name) / "socket")

    def _warm_up(self) -> None:
        """Let a fork run a first query, so that the first command does not pay for it."""
        pid = os.fork()
        if pid == 0:
            _first_query(self._server.remote, self._close_in_child)
        os.waitpid(pid, 0)

    def _write_state(self) -> None:
        state = {
            **place.identity(),
            "pid": os.getpid(),
            "socket": self._listener.getsockname(),
            "started": self._started,
            "fits": self._fits,
            "idle_seconds": self._order.idle_seconds,
        }
        path = Path(place.inside(self._order.root, place.STATE))
        part = path.with_suffix(".part")
        part.touch(mode=0o600)
        part.write_text(json.dumps(state))
        part.replace(path)

    # The loop

    def _over(self) -> bool:
        if self._ending or self._server.process.poll() is not None:
            return True
        found = place.read_state(self._order.root)
        if found is None or found.get("pid") != os.getpid():
            return True
        return not self._clients and time.monotonic() - self._last > self._order.idle_seconds

    def _turn(self) -> None:
        callers = {c.connection: pid for pid, c in self._clients.items() if c.connection}
        watched: list[Any] = [self._listener, self._wake, self._server.process.stdout, *callers]
        ready, _, _ = select.select(watched, [], [], _TICK)
        for item in ready:
            if item is self._listener:
                self._accept()
            elif item is self._wake:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake, 4096)
            elif item in callers:
                self._hear(callers[item])
            else:
                self._ending = True
        self._reap()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        connection.settimeout(_READ_SECONDS)
        streams: list[int] = []
        try:
            request = _receive(connection, streams)
            self._last = time.monotonic()
            if request.get("do") == "run" and len(streams) == 3:
                self._fork(request, streams, connection)
                return
            answer: dict[str, Any] = self._status()
            if request.get("do") == "stop":
                self._ending = True
            _answer(connection, answer)
            connection.close()
        except (OSError, ValueError, KeyError):
            connection.close()
        finally:
            for stream in streams:
                os.close(stream)

    def _fork(self, request: dict[str, Any], streams: list[int], connection: socket.socket) -> None:
        begin, go = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(go)
            self._become(request, streams, connection, begin)
        os.close(begin)
        self._served += 1
        self._clients[pid] = _Client(connection, go)
        try:
            _answer(connection, {"pid": pid})
        except OSError:
            self._left(pid)

    def _become(
        self, request: dict[str, Any], streams: list[int], connection: socket.socket, begin: int
    ) -> NoReturn:
        def close() -> None:
            connection.close()
            self._close_in_child()
            if not os.read(begin, 1):
                os._exit(1)  # its caller went elsewhere
            os.close(begin)

        child.become(request, streams, close, (self._server.remote, self._fits))

    def _close_in_child(self) -> None:
        """A fork keeps nothing of its parent open: not the lock, not the server's life line."""
        for item in ("_listener", "_lock"):
            if hasattr(self, item):
                getattr(self, item).close()
        for client in self._clients.values():
            if client.connection is not None:
                client.connection.close()
            if client.go is not None:
                os.close(client.go)
        process = self._server.process
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                os.close(pipe.fileno())
        for end in ("_wake", "_wake_end"):
            if hasattr(self, end):
                os.close(getattr(self, end))

    def _hear(self, pid: int) -> None:
        """A caller says that its command may begin, then nothing: readable again means gone."""
        client = self._clients[pid]
        said = b""
        if client.connection is not None and client.go is not None:
            with contextlib.suppress(OSError):
                said = client.connection.recv(len(GO))
        if said and client.go is not None:
            with contextlib.suppress(OSError):
                os.write(client.go, said)
            os.close(client.go)
            client.go = None
        else:
            self._left(pid)

    def _left(self, pid: int) -> None:
        client = self._clients[pid]
        if client.connection is not None:
            client.connection.close()
            client.connection = None
        self._ask(pid)

    def _ask(self, pid: int) -> None:
        client = self._clients[pid]
        if client.go is not None:
            # it has not begun, and will not
            os.close(client.go)
            client.go = None
        if client.asked is None:
            client.asked = time.monotonic()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT)

    def _reap(self) -> None:
        now = time.monotonic()
        for pid, client in list(self._clients.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                if client.asked is not None and now - client.asked > _GRACE_SECONDS:
                    os.kill(pid, signal.SIGKILL)
                continue
            self._last = now
            del self._clients[pid]
            if client.connection is not None:
                code = os.waitstatus_to_exitcode(status)
                with contextlib.suppress(OSError):
                    _answer(client.connection, {"exit": code} if code >= 0 else {"signal": -code})
                client.connection.close()

    def _status(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "running": len(self._clients),
            "served": self._served,
            "idle_seconds": self._order.idle_seconds,
            "ends_in": max(0.0, self._order.idle_seconds - (time.monotonic() - self._last)),
        }

    def _end(self, *_: object) -> None:
        self._ending = True

    def _close(self) -> None:
        state = Path(place.inside(self._order.root, place.STATE))
        found = place.read_state(self._order.root)
        if found is not None and found.get("pid") == os.getpid():
            state.unlink(missing_ok=True)
        socket_path = Path(self._listener.getsockname())
        self._listener.close()
        socket_path.unlink(missing_ok=True)
        while self._clients:
            for pid in list(self._clients):
                self._ask(pid)
            self._reap()
            time.sleep(0.05)
        self._server.stop()
        if self._scratch is not None:
            self._scratch.cleanup()
        self._lock.close()


def _locked(path: Path) -> Any:
    """The project's lock, held for life: of two that start at once, one wins."""
    file = path.open("a+")
    deadline = time.monotonic() + _LOOKED_AT_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except OSError:
            if time.monotonic() > deadline:
                file.close()
                raise TakenError from None
            time.sleep(0.01)
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def _listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except BaseException:
        listener.close()
        raise
    finally:
        os.umask(before)
    listener.listen(16)
    return listener


def _receive(connection: socket.socket, streams: list[int]) -> dict[str, Any]:
    """One request; the streams that came with it are put into ``streams`` at once."""
    size = array.array("i").itemsize
    head, rights, _, _ = connection.recvmsg(4, socket.CMSG_SPACE(3 * size))
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            streams += array.array("i", data[: len(data) // size * size])
    left = int.from_bytes(head, "big") if len(head) == 4 else 0
    body = b""
    while len(body) < left:
        part = connection.recv(min(1 << 16, left - len(body)))
        if not part:
            raise ValueError("half a request")
        body += part
    found = json.loads(body)
    if not isinstance(found, dict):
        raise ValueError("not a request")  # noqa: TRY004 - as any other bad request
    return found


def _answer(connection: socket.socket, answer: dict[str, Any]) -> None:
    connection.sendall(json.dumps(answer).encode() + b"\n")


def _first_query(remote: str, close: Any) -> NoReturn:
    """Write and read a small Iceberg table in a folder of its own, as a command would."""
    code = 1
    try:
        close()
        from sqb.spark.connect import open_remote
        from sqb.spark.kinds import release, sibling

        with tempfile.TemporaryDirectory(prefix="sqb-warm-") as scratch:
            root = open_remote(remote)
            session = sibling(root)
            catalog = "spark.sql.catalog.sqb_warm_up"
            session.conf.set(catalog, "org.apache.iceberg.spark.SparkCatalog")
            session.conf.set(f"{catalog}.type", "hadoop")
            session.conf.set(f"{catalog}.warehouse", scratch)
            for _ in range(3):
                frame = session.sql("SELECT id % 3 AS k, count(*) AS n FROM range(9) GROUP BY 1")
                frame.writeTo("sqb_warm_up.db.t").using("iceberg").createOrReplace()
                session.table("sqb_warm_up.db.t").collect()
            release(session)
            release(root)
        code = 0
    finally:
        os._exit(code)


def main() -> int:
    """``python -m sqb.cli.warm.zygote``: told what to do on its standard input."""
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    # `python -m` puts the folder it was started in first: no project's file may stand in for a
    # package.
    sys.path[:] = [path for path in sys.path if path not in ("", os.sep)]
    answer: dict[str, Any] = {"ready": True}
    zygote = None
    try:
        zygote = Zygote(order)
    except TakenError:
        answer = {"taken": True}
    except SqbError as error:
        answer = {"error": {"message": error.message, "help": error.help}}
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    # The one who started it reads until here; nothing may be printed to a closed pipe.
    os.dup2(2, 1)
    if zygote is None:
        return 1
    zygote.run()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
