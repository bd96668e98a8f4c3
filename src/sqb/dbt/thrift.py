"""A Spark thrift server, asked through the profile's connection.

dbt's own Python speaks to the server (``thrift_worker``), for it has what dbt-spark needs for that;
this is the end of the line that sqb holds.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from sqb.dbt.locate import interpreter_of
from sqb.dbt.profile import Profile
from sqb.dbt.warehouse import Rows
from sqb.errors import SqbError
from sqb.project.secrets import mask, masker

#: Where dbt-spark connects if a profile names no port.
_PORT = 443
_WORKER = Path(__file__).with_name("thrift_worker.py")
#: The first farewell of a server takes many; it ends sessions of clients that went by itself.
_STOP_SECONDS = 3
_TRUE = frozenset({"true", "yes", "on", "1"})

_STACK = re.compile(r"\n\s+at |\nCaused by: ")
_JAVA = re.compile(r"^(?:Error running query: |(?:\[[\w.]+\] )?(?:[a-z]\w*\.)+[A-Z]\w*: )+")
_TAIL = re.compile(r"\s*SQLSTATE: \w+.*$", re.DOTALL)
_HELP = {
    "import": "install what dbt-spark needs for it: pip install 'dbt-spark[PyHive]'",
    "connect": "check that the server runs, and host, port, user and auth of the target; "
    "`dbt debug` tries the same",
}


class _Answer(msgspec.Struct):
    """What the worker says to one request; ``step`` is where it failed."""

    rows: list[list[str | None]] = []
    error: str | None = None
    step: str = ""


class Thrift:
    """One session of a thrift server, opened by the first statement.

    ``executable`` is the dbt whose Python speaks to the server. A session may remember tables as
    they were when it met them first: after others wrote, take a new one.
    """

    def __init__(self, profile: Profile, executable: Path, environ: Mapping[str, str]) -> None:
        self._profile, self._executable, self._environ = profile, executable, dict(environ)
        self._worker: subprocess.Popen[bytes] | None = None
        self._errors: Any = None

    def rows(self, sql: str) -> Rows:
        """The rows of a statement; what gives none is empty."""
        if self._worker is None:
            self._open()
        return self._ask({"sql": sql})

    def close(self) -> None:
        """End the session and the worker."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        assert worker.stdin is not None
        assert worker.stdout is not None
        with contextlib.suppress(OSError):
            worker.stdin.close()
        try:
            worker.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        worker.stdout.close()
        self._errors.close()

    def _open(self) -> None:
        request = {"connect": login(self._profile)}
        interpreter = self._interpreter()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        try:
            self._worker = subprocess.Popen(
                [interpreter, str(_WORKER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env=self._environ,
                # Ctrl-C at the terminal is for sqb to hear
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise SqbError(
                "B011",
                f"dbt's Python can't be started: {error.strerror or error}",
                file=str(interpreter),
                help="check DBT_EXECUTABLE, or install dbt anew",
            ) from None
        try:
            self._ask(request)
        except BaseException:
            self.close()
            raise

    def _interpreter(self) -> str:
        found = interpreter_of(self._executable, self._environ)
        if found is not None:
            return str(found)
        if find_spec("pyhive") is not None:
            return sys.executable
        raise SqbError(
            "B011",
            f"which Python runs {self._executable.name} can't be told, and this one has no PyHive",
            file=str(self._executable),
            help="set DBT_EXECUTABLE to the dbt in its virtual environment, "
            "or install PyHive beside sqb: pip install 'PyHive[hive_pure_sasl]'",
        )

    def _ask(self, request: dict[str, Any]) -> Rows:
        worker = self._worker
        assert worker is not None
        assert worker.stdin is not None
        assert worker.stdout is not None
        try:
            worker.stdin.write(msgspec.json.encode(request) + b"\n")
            worker.stdin.flush()
            line = worker.stdout.readline()
        except BrokenPipeError:
            line = b""
        except BaseException:
            # an answer that nobody waited for would be taken for that of the next statement
            worker.kill()
            self.close()
            raise
        if not line:
            error = self._error(self._last_words(), "worker")
            self.close()
            raise error
        answer = msgspec.json.decode(line, type=_Answer)
        if answer.error is not None:
            raise self._error(answer.error, answer.step)
        return answer.rows

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def _error(self, text: str, step: str) -> SqbError:
        known = masker(None, environ=self._environ, settings=self._profile.fields)
        words = mask(known(told(text)), None, environ=self._environ)
        host, port = self._profile.fields.get("host"), self._profile.fields.get("port", _PORT)
        what = {
            "import": "dbt's Python lacks what speaks to a thrift server",
            "connect": f"the thrift server at {host}:{port} can't be reached or refuses",
            "worker": "dbt's Python ended while the thrift server was asked",
        }.get(step, "the thrift server refused a statement")
        return SqbError("B011", f"{what}: {words}", help=_HELP.get(step))


def login(profile: Profile) -> dict[str, Any]:
    """How to connect, from a target's settings, with what dbt-spark adds to them."""
    fields = profile.fields
    return {
        "host": str(fields.get("host") or "").rstrip("/"),
        "port": _number(profile, "port", _PORT),
        "user": _text(fields.get("user")),
        "auth": _text(fields.get("auth")),
        "kerberos_service_name": _text(fields.get("kerberos_service_name")),
        "password": _text(fields.get("password")),
        "use_ssl": str(fields.get("use_ssl", "")).lower() in _TRUE,
        "configuration": {**profile.conf, "spark.sql.ansi.enabled": "false"},
        "retries": _number(profile, "connect_retries", 0),
        "pause": _number(profile, "connect_timeout", 10),
        "retry_all": str(fields.get("retry_all", "")).lower() in _TRUE,
    }


def told(text: str) -> str:
    """What a server's error says, without Java's stack and the names of its exceptions.

    >>> told("org.apache.hive.service.cli.HiveSQLException: Error running query: "
    ...      "[SCHEMA_NOT_FOUND] a.b.NoSuchThing: [SCHEMA_NOT_FOUND] The schema `a` went. "
    ...      "SQLSTATE: 42704\\n\\tat org.b")
    '[SCHEMA_NOT_FOUND] The schema `a` went.'
    """
    first = _TAIL.sub("", _STACK.split(text.strip(), maxsplit=1)[0])
    return " ".join(_JAVA.sub("", first).split()) or "it does not say why"


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(profile: Profile, key: str, default: int) -> int:
    value = profile.fields.get(key)
    try:
        return default if value is None else int(str(value))
    except ValueError:
        raise SqbError(
            "B003",
            f"`{key}` of the target `{profile.target}` is not a whole number",
            file=profile.file,
        ) from None
