"""Spark sessions: start one quietly, check one that was handed in, stop it for good.

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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.errors import SqbError
from sqb.spark import jvm
from sqb.spark.jars import cache_dir, extras_of, resolve_jars
from sqb.spark.java import Java, find_java, java_home_for_spark
from sqb.spark.kinds import add_tag, interrupt, is_connect, name_jobs, release
from sqb.spark.pool import SessionPool
from sqb.spark.settings import (
    CATALOG_CLASS,
    EXTENSIONS,
    JAVA_OPTIONS,
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
    settings: SparkSettings,
    *,
    log_file: Path,
    app_name: str,
    environ: Mapping[str, str],
    input_bytes: int | None = None,
    java_options: str | None = None,
) -> SparkSession:
    """Start a JVM and a session in it; what the JVM prints goes to ``log_file``.

    Where ``settings`` name a Spark Connect server, the session is one of that server's.

    pyspark's own handler of Ctrl-C is not left in place: it would cancel every job of the
    process, and outlive the session. Interrupting is the caller's business, see ``interrupt``.

    ``input_bytes`` is what the work ahead reads, if that is known: the JVM is tuned by it.
    ``java_options`` are given instead of chosen ones.
    """
    if settings.remote is not None:
        from sqb.spark.connect import open_remote

        session = open_remote(settings.remote)
        try:
            check_session(session, settings, "the Spark Connect server")
        except BaseException:
            release(session)
            raise
        return session
    java = find_java(environ)
    java_home = java_home_for_spark(java, cache_dir(environ))
    progress = sys.stderr
    jars = resolve_jars(
        settings.packages,
        settings.jars,
        environ=environ,
        progress=progress,
        drivers=extras_of(settings.catalog_uri, settings.warehouse),
    )
    scratch = tempfile.TemporaryDirectory(prefix="sqb-spark-", ignore_cleanup_errors=True)
    # Spark's own catalog wants a folder even if unused; the working directory must stay clean.
    defaults = {"spark.app.name": app_name, "spark.sql.warehouse.dir": scratch.name}
    conf = defaults | spark_conf(settings, jars)
    if java_options is None:
        java_options = _options(settings, java, jars, environ, input_bytes)
    if java_options:
        conf[JAVA_OPTIONS] = java_options
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


def _options(
    settings: SparkSettings,
    java: Java,
    jars: Sequence[Path],
    environ: Mapping[str, str],
    input_bytes: int | None,
) -> str:
    from sqb.spark.archive import archive_path, wanted

    own = settings.conf.get(JAVA_OPTIONS, "")
    if not settings.is_local:
        return own
    archive = archive_path(settings, java, jars, environ) if wanted(settings, environ) else None
    return jvm.java_options(
        own,
        input_bytes=input_bytes,
        small_bytes=settings.small_input_mb * 1_000_000,
        archive=archive if archive is not None and archive.exists() else None,
    )


def stop_session(session: SparkSession, *, seconds: float = _STOP_SECONDS) -> None:
    """Stop the session, and wait until its JVM has ended."""
    if is_connect(session):
        release(session)
        return
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
        _end_jvm(gateway, running.process, seconds)
    running.scratch.cleanup()


def has_ended(session: SparkSession) -> bool:
    """Has the JVM of a session that was started here gone?"""
    running = _running.get(session.sparkContext.applicationId)
    process = running.process if running is not None else None
    return process is not None and process.poll() is not None


def check_session(
    session: SparkSession,
    settings: SparkSettings,
    what: str = "the Spark session that was handed in",
) -> None:
    """Refuse a session that sqb did not configure and that can't work on the project's lake.

    Names the settings to add. A session with the catalog's cache on would silently read old
    tables, and one that opens another catalog of the same name would write elsewhere.
    """
    prefix = f"spark.sql.catalog.{settings.catalog_name}"
    wanted = spark_conf(settings, ())
    # all at once: with Connect each question is a call over the network
    there = session.conf.getAll
    missing: list[str] = []
    extensions = there.get("spark.sql.extensions") or ""
    if EXTENSIONS not in (part.strip() for part in extensions.split(",")):
        missing.append(f"spark.sql.extensions={EXTENSIONS}")
    if there.get(prefix) != CATALOG_CLASS:
        missing.append(f"{prefix}={CATALOG_CLASS}")
    if (there.get(f"{prefix}.cache-enabled") or "true").lower() != "false":
        missing.append(f"{prefix}.cache-enabled=false")
    for name in ("type", "uri"):
        expected = wanted[f"{prefix}.{name}"]
        if there.get(f"{prefix}.{name}") != expected:
            missing.append(f"{prefix}.{name}={redact(expected, wanted)}")
    if missing:
        raise SqbError(
            "J004",
            f"{what} lacks settings: " + ", ".join(missing),
            help="set them where it is built or started; `sqb spark conf` prints all of them",
        )


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


def _end_jvm(
    gateway: JavaGateway, process: subprocess.Popen[bytes], seconds: float = _STOP_SECONDS
) -> None:
    """Close the connection and the pipe whose end tells the JVM to exit, then wait for it."""
    gateway.shutdown()
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(seconds)
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
