"""The class-data archive: Spark's classes as a JVM wants them in memory, for a quicker start.

Made once per Java, Spark and set of jars, by a quiet process of its own after a build, and kept in
the user's cache. A JVM that can't use an archive says so in its log and starts without.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from sqb.hashing import digest
from sqb.spark.jars import cache_dir
from sqb.spark.java import Java
from sqb.spark.settings import CLASS_PATH, SparkSettings

#: Set to anything but 0, it keeps archives from being made and used.
SWITCH = "SQB_NO_CLASS_ARCHIVE"
_KEPT = 3
#: Writing the archive is part of the JVM's end, and takes its time on a busy machine.
_DUMP_SECONDS = 900
_NICE = 19


class Request(msgspec.Struct, frozen=True):
    """What the maker is told: the jars in their order, and where the archive shall be."""

    jars: tuple[str, ...]
    class_path: str
    target: str


def wanted(settings: SparkSettings, environ: Mapping[str, str]) -> bool:
    """Are archives used at all?"""
    off = environ.get(SWITCH, "") not in ("", "0", "false")
    return settings.class_archive and settings.is_local and settings.remote is None and not off


def archive_path(
    settings: SparkSettings, java: Java, jars: Sequence[Path], environ: Mapping[str, str]
) -> Path:
    """Where the archive of this Java, Spark and class path is kept, if it was made."""
    release = Path(java.home, "release")
    parts = [java.home, str(java.version), version("pyspark"), environ.get("SPARK_HOME", "")]
    parts.append(settings.conf.get(CLASS_PATH, ""))
    with contextlib.suppress(OSError):
        parts.append(release.read_text(encoding="utf-8", errors="replace"))
    for jar in jars:
        status = jar.stat()
        parts += [str(jar), str(status.st_size), str(status.st_mtime_ns)]
    return cache_dir(environ) / "classes" / f"{digest(*parts)[:24]}.jsa"


def make_later(settings: SparkSettings, environ: Mapping[str, str]) -> None:
    """Let a process of its own make the archive, if it is wanted and not there."""
    if not wanted(settings, environ):
        return
    from sqb.spark.jars import extras_of, resolve_jars
    from sqb.spark.java import find_java

    jars = resolve_jars(
        settings.packages,
        settings.jars,
        environ=environ,
        progress=None,
        drivers=extras_of(settings.catalog_uri, settings.warehouse),
    )
    target = archive_path(settings, find_java(environ), jars, environ)
    if target.exists() or target.with_suffix(".failed").exists():
        return
    request = Request(
        tuple(str(jar) for jar in jars), settings.conf.get(CLASS_PATH, ""), str(target)
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "sqb.spark.archive"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=dict(environ),
        start_new_session=True,
    )
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError), process.stdin:
        process.stdin.write(msgspec.json.encode(request))
    # It outlives this process: no warning that it was not waited for.
    process.returncode = 0


def make(request: Request, environ: Mapping[str, str]) -> bool:
    """Make an archive by running a small build's statements; True if it is there afterwards.

    One at a time per machine's cache. A Java that can't write archives is remembered.
    """
    target = Path(request.target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        if target.exists():
            return True
        with tempfile.TemporaryDirectory(dir=target.parent, prefix="making-") as folder:
            part = Path(folder) / target.name
            _train(request, Path(folder), part, environ)
            if part.exists():
                part.replace(target)
            else:
                target.with_suffix(".failed").touch()
        _prune(target.parent)
    return target.exists()


def _train(request: Request, folder: Path, part: Path, environ: Mapping[str, str]) -> None:
    from sqb.spark.session import start_session, stop_session

    conf = {CLASS_PATH: request.class_path} if request.class_path else {}
    settings = SparkSettings(
        catalog_name="lake",
        catalog_uri=f"sqlite:///{folder / 'catalog.db'}",
        warehouse=str(folder / "lake"),
        master="local[2]",
        jars=request.jars,
        conf=conf,
    )
    session = start_session(
        settings,
        log_file=folder / "spark.log",
        app_name="sqb class archive",
        environ=environ,
        java_options=f"-XX:ArchiveClassesAtExit={part} -XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    )
    try:
        session.sql("CREATE NAMESPACE lake.db")
        for name in ("a", "b"):
            frame = session.sql(
                "SELECT id % 7 AS k, count(*) AS n, sum(id) AS s, current_date() AS d "
                "FROM range(100) GROUP BY 1 ORDER BY 1"
            )
            frame.writeTo(f"lake.db.{name}").using("iceberg").createOrReplace()
        session.sql("MERGE INTO lake.db.a USING lake.db.b ON a.k = b.k WHEN MATCHED THEN DELETE")
        session.sql("SELECT * FROM lake.db.a JOIN lake.db.b USING (k)").toArrow()
        session.newSession().table("lake.db.b").collect()
    finally:
        stop_session(session, seconds=_DUMP_SECONDS)


def _prune(folder: Path) -> None:
    """Archives are large, and those of Javas and jars of the past are never used again."""
    found = sorted(folder.glob("*.jsa"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in found[_KEPT:]:
        path.unlink(missing_ok=True)


def main() -> int:
    """``python -m sqb.spark.archive``: the maker."""
    os.nice(_NICE)
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=Request)
    return 0 if make(request, os.environ) else 1


if __name__ == "__main__":
    raise SystemExit(main())
