"""Running dbt, always as a process of its own: asking it, and letting it build.

The process has a session of its own, so that Ctrl-C reaches it once, from here, and not a second
time from the terminal: dbt then cancels its queries and writes down what it did.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO, Any, TextIO

import msgspec

from sqb.dbt.selection import SOURCES_FILE
from sqb.errors import SqbError

PARSED_FILE = "partial_parse.msgpack"

#: After so many requests to stop, dbt is not asked any more.
_PATIENCE = 3
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_CLOCK = re.compile(r"^\d\d:\d\d:\d\d {2}")
_ERROR = "Encountered an error:"
_FILE = re.compile(r"\(([^()\s]+\.(?:sql|py|csv|yml|yaml|md))\)")


class Ended(msgspec.Struct, frozen=True):
    """How a run of dbt ended; ``code`` is its exit code, as a shell would tell it."""

    code: int
    interrupted: bool = False


class Folders(msgspec.Struct, frozen=True):
    """Where dbt writes when it is only asked: never into the user's folders."""

    target: Path
    logs: Path
    states: Path

    @property
    def manifest(self) -> Path:
        """What the last question wrote."""
        return self.target / "manifest.json"

    @property
    def parsed(self) -> Path:
        """What dbt keeps from one parse to the next."""
        return self.target / PARSED_FILE


def folders_in(work: Path) -> Folders:
    """The folders in sqb's own, usually ``.sqb/dbt``."""
    return Folders(work / "target", work / "logs", work / "states")


def make_ready(folders: Folders, artifacts: Path) -> None:
    """Let a question start from what dbt left in the user's target folder, which is only read.

    A parse that dbt can continue saves it from reading everything again, and what it found about
    sources is needed by selectors.
    """
    folders.target.mkdir(parents=True, exist_ok=True)
    for name, newer_only in ((PARSED_FILE, True), (SOURCES_FILE, False)):
        theirs, own = artifacts / name, folders.target / name
        if newer_only and _changed(own) >= _changed(theirs):
            continue
        try:
            temporary = own.with_name(f"{name}.{os.getpid()}.tmp")
            shutil.copyfile(theirs, temporary)
            temporary.replace(own)
        except FileNotFoundError:
            if not newer_only:
                own.unlink(missing_ok=True)


def newer_parse(folders: Folders, artifacts: Path) -> Path | None:
    """What a run may begin to parse from: the last question's, if it is newer than the user's."""
    newer = _changed(folders.parsed) > _changed(artifacts / PARSED_FILE)
    return folders.parsed if newer else None


def with_java(environ: Mapping[str, str], cache: Path) -> dict[str, str]:
    """The environment for a Spark in dbt's process: on a machine without Java, sqb's own."""
    found = dict(environ)
    if found.get("JAVA_HOME") or shutil.which("java", path=found.get("PATH", os.defpath)):
        return found
    from sqb.spark.java import find_java, java_home_for_spark

    # without any, the better message is that of Spark
    with contextlib.suppress(SqbError):
        found["JAVA_HOME"] = java_home_for_spark(find_java(environ), cache)
    return found


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return -1


def ask_dbt(
    executable: Path, arguments: Sequence[str], *, root: Path, environ: Mapping[str, str]
) -> str:
    """What dbt prints; an error in its own words if it fails."""
    with _listening() as signals:
        process = _start(
            executable, arguments, root, environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        signals.go_to(process)
        output, errors = process.communicate()
    if signals.heard:
        raise KeyboardInterrupt
    if process.returncode:
        said = complaint(f"{output}\n{errors}")
        place = _FILE.search(said)
        raise SqbError(
            "B010",
            f"`dbt {arguments[0]}` ended with {_code(process.returncode)}: {said}",
            file=place[1] if place is not None else None,
            help="mend the project until `dbt parse` passes",
        )
    return str(output)


def run_dbt(
    executable: Path,
    arguments: Sequence[str],
    *,
    root: Path,
    environ: Mapping[str, str],
    output: TextIO,
    stopping: Callable[[int], None] | None = None,
) -> Ended:
    """Run dbt with its output on ``output``, and wait for it whatever happens.

    dbt may take long to stop, since it waits for what its threads have begun. ``stopping`` is told
    of each request to stop, with the number of further ones after which dbt is killed; it is called
    by a signal handler, so it may write to a descriptor but not to a buffered stream.
    """
    output.flush()
    number = _descriptor(output)
    with _listening(stopping) as signals:
        if number is not None:
            # dbt itself sees whether it writes to a terminal
            process = _start(executable, arguments, root, environ, stdout=number, stderr=None)
        else:
            process = _start(
                executable,
                arguments,
                root,
                environ,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        signals.go_to(process)
        try:
            for line in process.stdout or ():
                output.write(line)
                output.flush()
            process.wait()
        except BaseException:
            # nobody reads any more; dbt must not go on unseen
            process.send_signal(signal.SIGINT)
            raise
        finally:
            process.communicate()
    code = _code(process.returncode)
    stopped = process.returncode in {-signal.SIGINT, -signal.SIGTERM}
    return Ended(code, bool(signals.heard) or stopped)


def complaint(output: str) -> str:
    """What dbt says about an error, without times and colours.

    >>> complaint("09:00:01  Running\\n09:00:02  Encountered an error:\\nBad\\n  x\\n")
    'Bad\\n  x'
    """
    lines = [_CLOCK.sub("", line) for line in _COLOURS.sub("", output).splitlines()]
    start = next((at for at, line in enumerate(lines) if line.strip() == _ERROR), None)
    told = lines[start + 1 :] if start is not None else lines[-20:]
    return "\n".join(told).strip() or "it said nothing"


class _Signals:
    """Passes requests to stop on to a process."""

    def __init__(self, told: Callable[[int], None] | None) -> None:
        self.heard = 0
        self._told = told
        self._process: subprocess.Popen[str] | None = None

    def go_to(self, process: subprocess.Popen[str]) -> None:
        """From now on signals go to this process; one that came before goes there first."""
        self._process = process
        if self.heard:
            self._send()

    def hear(self, _number: int, _frame: FrameType | None) -> None:
        """A request to stop."""
        self.heard += 1
        if self._process is not None:
            self._send()
        if self._told is not None:
            self._told(max(_PATIENCE - self.heard, 0))

    def pause(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: dbt and its Spark rest while this process does."""
        process = self._process
        group = process.pid if process is not None and process.returncode is None else None
        with contextlib.suppress(ProcessLookupError):
            if group is not None:
                os.killpg(group, signal.SIGSTOP)
            os.kill(os.getpid(), signal.SIGSTOP)
            if group is not None:
                os.killpg(group, signal.SIGCONT)

    def _send(self) -> None:
        process = self._process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            if self.heard < _PATIENCE:
                process.send_signal(signal.SIGINT)
            else:
                os.killpg(process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _listening(told: Callable[[int], None] | None = None) -> Iterator[_Signals]:
    """Hear requests to stop, if this is the main thread; others never hear one."""
    signals = _Signals(told)
    before: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in _STOPPING:
            handler = signal.getsignal(number)
            # A handler that does nothing stands in for an ignored Ctrl-C: dbt would inherit that,
            # and could not be stopped in a way that lets it write its results.
            ignored = handler is signal.SIG_IGN
            if not ignored or number is signal.SIGINT:
                before[number] = handler
                signal.signal(number, _pass if ignored else signals.hear)
        if signal.getsignal(signal.SIGTSTP) is signal.SIG_DFL:
            before[signal.SIGTSTP] = signal.signal(signal.SIGTSTP, signals.pause)
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _pass(_number: int, _frame: FrameType | None) -> None:
    """Do nothing."""


def _start(
    executable: Path,
    arguments: Sequence[str],
    root: Path,
    environ: Mapping[str, str],
    *,
    stdout: int,
    stderr: int | None,
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            [str(executable), *arguments],
            cwd=root,
            env=dict(environ),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise SqbError(
            "B002",
            f"dbt can't be started: {error.strerror or error}",
            file=str(executable),
            help="check DBT_EXECUTABLE, or install dbt anew",
        ) from None


def _descriptor(output: IO[str]) -> int | None:
    try:
        return output.fileno()
    except (OSError, AttributeError, ValueError):
        return None


def _code(returned: int) -> int:
    return 128 - returned if returned < 0 else returned
