"""A Spark Connect server of one's own: a JVM behind a small process that ends with its owner.

The process runs an ordinary classic session with Connect's plugin in it. It learns what to do, the
token among it, through its standard input, and ends when that input ends: an owner that dies,
however it dies, leaves no JVM behind.
"""

from __future__ import annotations

import os
import secrets
import select
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from sqb.errors import SqbError
from sqb.spark.settings import SparkSettings

PLUGIN = "org.apache.spark.sql.connect.SparkConnectPlugin"
_HOST = "127.0.0.1"
_STOP_SECONDS = 40
#: How often the server process looks whether its JVM is still there.
_LOOK_SECONDS = 1.0


class Request(msgspec.Struct, frozen=True):
    """What the server process is told."""

    settings: SparkSettings
    log_file: str
    app_name: str
    port: int
    token: str


class Answer(msgspec.Struct, frozen=True):
    """What the server process says once it is up, or that it can't be."""

    error: dict[str, object] | None = None


class ConnectServer:
    """A server as its owner sees it: its address at once, ``wait`` until it can be used."""

    def __init__(
        self,
        settings: SparkSettings,
        *,
        log_file: Path,
        app_name: str,
        environ: Mapping[str, str],
    ) -> None:
        token = secrets.token_urlsafe(24)
        request = Request(settings, str(log_file), app_name, _free_port(), token)
        # The name, not the number: pyspark sends a token without TLS to `localhost` alone.
        self.remote = f"sc://localhost:{request.port}/;token={token}"
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sqb.spark.server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            # Ctrl-C at the owner's terminal is the owner's business.
            start_new_session=True,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode(request) + b"\n")
        self.process.stdin.flush()

    def wait(self) -> None:
        """Return when the server is up; raise what kept it from it."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        answer = msgspec.json.decode(line, type=Answer) if line else Answer({})
        if answer.error is None:
            return
        self.stop()
        told = answer.error
        raise SqbError(
            "J003",
            str(told.get("message") or "Spark did not start: its process ended"),
            help=str(told["help"]) if told.get("help") else None,
            exit_code=1,
        )

    def stop(self) -> None:
        """End the server and wait until its JVM has gone."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


def server_conf(port: int, token: str) -> dict[str, str]:
    """The settings that make a classic session serve Connect on this machine alone."""
    return {
        "spark.plugins": PLUGIN,
        "spark.connect.grpc.binding.address": _HOST,
        "spark.connect.grpc.binding.port": str(port),
        "spark.connect.authenticate.token": token,
        # A client that was killed leaves its query behind; nobody comes back for it.
        "spark.connect.execute.manager.detachedTimeout": "30s",
        # a statement is interrupted when its first tasks are told
        "spark.connect.progress.reportInterval": "500ms",
    }


def _free_port() -> int:
    """A port that is free now. If someone takes it first, the server says so and does not start."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def main() -> int:
    """The server process."""
    from sqb.spark.session import has_ended, start_session, stop_session

    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=Request)
    settings = request.settings
    conf = {**settings.conf, **server_conf(request.port, request.token)}
    plugins = settings.conf.get("spark.plugins")
    if plugins:
        conf["spark.plugins"] = f"{plugins},{PLUGIN}"
    try:
        session = start_session(
            msgspec.structs.replace(settings, conf=conf),
            log_file=Path(request.log_file),
            app_name=request.app_name,
            environ=os.environ,
        )
    except SqbError as error:
        _tell(Answer({"code": error.code, "message": error.message, "help": error.help}))
        return error.exit_code
    _tell(Answer())
    while not select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
        if has_ended(session):
            return 1
    stop_session(session)
    return 0


def _tell(answer: Answer) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    raise SystemExit(main())
