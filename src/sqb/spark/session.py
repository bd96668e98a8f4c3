"""Classic Spark sessions: start one quietly, check one that was handed in, stop it for good.

What a session is configured with is decided in ``settings``, sharing one among threads is in
``pool``. The JVM's output goes to a file and never to the terminal.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.errors import SqbError
from sqb.spark.jars import cache_dir, drivers_of, resolve_jars
from sqb.spark.java import find_java, java_home_for_spark
from sqb.spark.pool import SessionPool
from sqb.spark.settings import (
    CATALOG_CLASS,
    EXTENSIONS,
    SparkSettings,
    launch_conf,
    redact,
    spark_conf,
)

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

__all__ = [
    "SessionPool",
    "SparkSettings",
    "add_tag",
    "check_session",
    "interrupt",
    "name_jobs",
    "spark_conf",
    "start_session",
    "stop_session",
]

_STOP_SECONDS = 30
_TOLD_LINES = 5
_TELLING = re.compile(r"(?i)exception|error|unrecognized|invalid|unable|can.?not|could not|fail")
_NOISE = re.compile(r"^\s+at |^\s*\.\.\. \d+ more|^\s*$")


class _Running(msgspec.Struct, frozen=True):
    """What a started session leaves to clean up."""

    process: subprocess.Popen[bytes] | None
    scratch: tempfile.TemporaryDirectory[str]


#: By application id. pyspark keeps one context per process, so this holds one entry at most.
_running: dict[str, _Running] = {}
_starting = threading.Lock()


def start_session(
    settings: SparkSettings, *, log_file: Path, app_name: str, environ: Mapping[str, str]
) -> SparkSession:
    """Start a JVM and a session in it; what the JVM prints goes to ``log_file``.

    pyspark's own handler of Ctrl-C is not left in place: it would cancel every job of the
    process, and outlive the session. Interrupting is the caller's business, see ``interrupt``.
    """
    if settings.remote is not None:
        raise SqbError(
            "C011",
            "Spark Connect arrives in release 0.2",
            help="remove `remote` from [spark], and set `master` if Spark is not local",
        )
    java_home = java_home_for_spark(find_java(environ), cache_dir(environ))
    progress = sys.stderr
    jars = resolve_jars(
        settings.packages,
        settings.jars,
        environ=environ,
        progress=progress,
        drivers=drivers_of(settings.catalog_uri),
    )
    scratch = tempfile.TemporaryDirectory(prefix="sqb-spark-", ignore_cleanup_errors=True)
    # Spark's own catalog wants a folder even if unused; the working directory must stay clean.
    defaults = {"spark.app.name": app_name, "spark.sql.warehouse.dir": scratch.name}
    conf = defaults | spark_conf(settings, jars)
    variables = {"JAVA_HOME": java_home}
    if settings.is_local:
        # Python functions must run on the interpreter that pickled them.
        variables["PYSPARK_PYTHON"] = sys.executable
    try:
        with _starting, _environment(variables), _quiet():
            session, process = _launch(conf, log_file)
    except BaseException:
        scratch.cleanup()
        raise
    _running[session.sparkContext.applicationId] = _Running(process, scratch)
    return session


def stop_session(session: SparkSession) -> None:
    """Stop the session, and wait until its JVM has ended."""
    from pyspark import SparkContext

    context = session.sparkContext
    running = _running.pop(context.applicationId, None)
    gateway = context._gateway
    with _quiet():
        session.stop()
    if running is None:
        return
    if running.process is not None and gateway is not None:
        SparkContext._gateway = None
        SparkContext._jvm = None
        _end_jvm(gateway, running.process)
    running.scratch.cleanup()


def check_session(session: SparkSession, settings: SparkSettings) -> None:
    """Refuse a session that was handed in and can't work on the project's lake.

    Names the settings to add. A session with the catalog's cache on would silently read old
    tables, and one that opens another catalog of the same name would write elsewhere.
    """
    prefix = f"spark.sql.catalog.{settings.catalog_name}"
    wanted = spark_conf(settings, ())
    missing: list[str] = []
    extensions = session.conf.get("spark.sql.extensions", "") or ""
    if EXTENSIONS not in (part.strip() for part in extensions.split(",")):
        missing.append(f"spark.sql.extensions={EXTENSIONS}")
    if session.conf.get(prefix, None) != CATALOG_CLASS:
        missing.append(f"{prefix}={CATALOG_CLASS}")
    if (session.conf.get(f"{prefix}.cache-enabled", None) or "true").lower() != "false":
        missing.append(f"{prefix}.cache-enabled=false")
    for name in ("type", "uri"):
        expected = wanted[f"{prefix}.{name}"]
        if session.conf.get(f"{prefix}.{name}", None) != expected:
            missing.append(f"{prefix}.{name}={redact(expected, wanted)}")
    if missing:
        raise SqbError(
            "J004",
            "the Spark session that was handed in lacks settings: " + ", ".join(missing),
            help="set them when the session is built; docs/python.md shows how",
        )


def name_jobs(session: SparkSession, text: str | None) -> None:
    """Describe the Spark jobs that this thread starts from now on; None ends it."""
    # pyspark hands None through, which removes the description; its annotation forgets that.
    session.sparkContext.setJobDescription(text)  # type: ignore[arg-type]


def add_tag(session: SparkSession, tag: str) -> None:
    """Mark the jobs that this thread starts from now on, so that ``interrupt`` finds them."""
    # Not SparkSession.addTag: in a classic session its interruptTag finds only the tags of the
    # thread that calls it, and interrupting is done from another one.
    session.sparkContext.addJobTag(tag)


def interrupt(session: SparkSession, tag: str) -> None:
    """Cancel the running jobs of every thread that carries ``tag``; any thread may call it.

    Jobs that start afterwards under the same tag are not stopped.
    """
    session.sparkContext.cancelJobsWithTag(tag)


def _launch(
    conf: Mapping[str, str], log_file: Path
) -> tuple[SparkSession, subprocess.Popen[bytes] | None]:
    from py4j.protocol import Py4JError
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        raise SqbError(
            "J003",
            "a Spark session already runs in this process",
            help="hand it in: Project(…, spark=session)",
        )
    # A JVM that an earlier, stopped session left behind has another class path.
    SparkContext._gateway = None
    SparkContext._jvm = None
    log_file.parent.mkdir(parents=True, exist_ok=True)
    gateway: JavaGateway | None = None
    try:
        with log_file.open("ab") as log:
            begin = log.tell()
            gateway = launch_gateway(
                SparkConf(loadDefaults=False).setAll(list(launch_conf(conf).items())),
                {"stdout": log, "stderr": subprocess.STDOUT},
            )
        context = SparkContext(
            conf=SparkConf(loadDefaults=False).setAll(list(conf.items())), gateway=gateway
        )
        session = SparkSession(context)
        # The catalog and the extensions are loaded on first use: a bad one shall fail here.
        session.sql("SELECT 1").collect()
    except (PySparkException, Py4JError, OSError, ValueError) as error:
        reason = _reason(error, log_file, begin)
        _abandon(gateway)
        raise SqbError(
            "J003",
            f"Spark did not start: {redact(reason, conf)}",
            help=_start_help(log_file),
            exit_code=1,
        ) from error
    except BaseException:
        _abandon(gateway)
        raise
    return session, gateway.proc


def _abandon(gateway: JavaGateway | None) -> None:
    """End a JVM whose session did not come up, so that a later start is a fresh one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    if SparkContext._active_spark_context is not None:
        SparkContext._active_spark_context.stop()
    SparkContext._gateway = None
    SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None
    if gateway is not None and gateway.proc is not None:
        _end_jvm(gateway, gateway.proc)


def _end_jvm(gateway: JavaGateway, process: subprocess.Popen[bytes]) -> None:
    """Close the connection and the pipe whose end tells the JVM to exit, then wait for it."""
    gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _reason(error: Exception, log_file: Path, begin: int) -> str:
    """Why Spark did not start: Java's own words, else the last telling lines of its log."""
    java = getattr(error, "java_exception", None)
    if java is not None:
        return str(java.toString()).splitlines()[0]
    with log_file.open("rb") as log:
        log.seek(begin)
        lines = log.read().decode("utf-8", errors="replace").splitlines()
    lines = [line.strip() for line in lines if not _NOISE.match(line)]
    telling = [line for line in lines if _TELLING.search(line)] or lines
    return "\n".join(telling[-_TOLD_LINES:]) or str(error)


def _start_help(log_file: Path) -> str:
    text = f"the whole log is in {log_file}"
    if os.environ.get("SPARK_HOME"):
        text += "; SPARK_HOME is set, and its Spark must be the version of the pyspark package"
    return text


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """pyspark reads the process environment and takes no other."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Python's warnings off the terminal, and the handler of Ctrl-C as it was."""
    in_main = threading.current_thread() is threading.main_thread()
    handler: Any = signal.getsignal(signal.SIGINT) if in_main else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
