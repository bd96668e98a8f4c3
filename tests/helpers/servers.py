"""Real servers for tests: PostgreSQL, Iceberg's own REST catalog, and an object store.

The first two are fetched from Maven Central into sqb's cache like Spark's jars. All listen on a
free port and live as long as the ``with`` block.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

from sqb.spark.jars import resolve_jars
from sqb.spark.java import find_java

POSTGRES_VERSION = "18.6.0"
ICEBERG_VERSION = "1.10.1"
NOBODY = 65534
_WAIT_S = 60

_JETTY = "11.0.26"
_REST_JARS = (
    f"org.apache.iceberg:iceberg-core:{ICEBERG_VERSION}",
    f"org.apache.iceberg:iceberg-api:{ICEBERG_VERSION}",
    f"org.apache.iceberg:iceberg-common:{ICEBERG_VERSION}",
    f"org.apache.iceberg:iceberg-bundled-guava:{ICEBERG_VERSION}",
    # Their tests hold the server itself. A Maven path is all that a coordinate is made into.
    f"org.apache.iceberg:iceberg-core:{ICEBERG_VERSION}:tests",
    f"org.apache.iceberg:iceberg-open-api:{ICEBERG_VERSION}:test-fixtures",
    *(
        f"org.eclipse.jetty:jetty-{part}:{_JETTY}"
        for part in ("server", "servlet", "security", "http", "io", "util")
    ),
    "org.eclipse.jetty.toolchain:jetty-jakarta-servlet-api:5.0.2",
    "com.github.ben-manes.caffeine:caffeine:2.9.3",
    "org.apache.httpcomponents.client5:httpclient5:5.6",
    "org.apache.httpcomponents.core5:httpcore5:5.4",
    "org.apache.httpcomponents.core5:httpcore5-h2:5.4",
    "dev.failsafe:failsafe:3.3.2",
)
_SPARK_JARS = ("RoaringBitmap", "aircompressor", "avro-1", "hadoop-client", "jackson-", "slf4j-api")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _fetched(*coordinates: str) -> list[Path]:
    """Jars from sqb's cache, fetched and checked if need be."""
    return resolve_jars(coordinates, (), environ=os.environ, progress=sys.stderr)


class Postgres:
    """A running server: one database per caller, made on demand."""

    def __init__(self, port: int) -> None:
        self.port = port

    def uri(self, database: str) -> str:
        """The address of a database, which is created if it is missing."""
        import psycopg

        address = f"postgresql://sqb:hunter2@127.0.0.1:{self.port}"
        with psycopg.connect(f"{address}/postgres", autocommit=True) as db:
            there = db.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
            if there.fetchone() is None:
                db.execute(f'CREATE DATABASE "{database}"'.encode())
        return f"{address}/{database}"


@contextlib.contextmanager
def postgres(port: int) -> Iterator[Postgres]:
    """A PostgreSQL server with password log-in for the user ``sqb``."""
    machine = {"x86_64": "amd64", "aarch64": "arm64v8", "arm64": "arm64v8"}[platform.machine()]
    system = "darwin" if sys.platform == "darwin" else "linux"
    artifact = f"embedded-postgres-binaries-{system}-{machine}"
    jar = next(
        path
        for path in _fetched(f"io.zonky.test.postgres:{artifact}:{POSTGRES_VERSION}")
        if path.name.startswith(artifact)
    )
    # PostgreSQL refuses to run as root: then as nobody, in a folder that nobody can reach.
    other = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
    root = Path(tempfile.mkdtemp(prefix="sqb-postgres-"))
    try:
        root.chmod(0o755)
        with zipfile.ZipFile(jar) as outer:
            (inner,) = [name for name in outer.namelist() if name.endswith(".txz")]
            with tarfile.open(fileobj=io.BytesIO(outer.read(inner)), mode="r:xz") as archive:
                archive.extractall(root, filter="data")
        data, password = root / "data", root / "password"
        data.mkdir()
        password.write_text("hunter2")
        if other:
            os.chown(data, NOBODY, NOBODY)
        subprocess.run(
            [root / "bin/initdb", "-D", data, "-U", "sqb", "--pwfile", password, "-A",
             "scram-sha-256", "-E", "UTF8", "--no-locale", "--no-sync"],
            check=True, stdout=subprocess.DEVNULL, **other,
        )  # fmt: skip
        server = subprocess.Popen(
            [root / "bin/postgres", "-D", data, "-p", str(port), "-h", "127.0.0.1", "-k", "",
             "-c", "fsync=off", "-c", "log_min_messages=fatal"],
            stderr=subprocess.DEVNULL, **other,
        )  # fmt: skip
        try:
            _until(lambda: _answers(port), server)
            yield Postgres(port)
        finally:
            # "Fast": clients that are still connected are not waited for.
            server.send_signal(signal.SIGINT)
            server.wait(_WAIT_S)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@contextlib.contextmanager
def rest_catalog(warehouse: Path, port: int) -> Iterator[str]:
    """Iceberg's REST catalog server on a folder; its address."""
    import pyspark

    java = Path(find_java(os.environ).home) / "bin/java"
    bundled = Path(pyspark.__file__).parent / "jars"
    borrowed = [p for name in _SPARK_JARS for p in bundled.glob(f"{name}*.jar")]
    # The runtime for Spark has Iceberg's classes under other names; only the driver is of use.
    jars = [p for p in _fetched(*_REST_JARS) if not p.name.startswith("iceberg-spark-runtime")]
    settings = {
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{warehouse / 'rest.db'}",
        "CATALOG_WAREHOUSE": str(warehouse),
        "CATALOG_JDBC_SCHEMA__VERSION": "V1",
        "CATALOG_REST_PORT": str(port),
    }
    log = (warehouse / "rest.log").open("wb")
    server = subprocess.Popen(
        [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp",
         os.pathsep.join(str(path) for path in [*jars, *borrowed]),
         "org.apache.iceberg.rest.RESTCatalogServer"],
        env={**os.environ, **settings}, stdout=log, stderr=log,
    )  # fmt: skip
    try:
        address = f"http://127.0.0.1:{port}"
        opener = build_opener(ProxyHandler({}))

        def up() -> bool:
            with opener.open(f"{address}/v1/config", timeout=5):
                return True

        _until(up, server)
        yield address
    finally:
        server.terminate()
        server.wait(_WAIT_S)
        log.close()


@contextlib.contextmanager
def object_store() -> Iterator[dict[str, str]]:
    """A server of the S3 API in this process; the properties that open it."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        yield {
            "s3.endpoint": f"http://127.0.0.1:{port}",
            "s3.access-key-id": "AKIAOFTHETESTS",
            "s3.secret-access-key": "s3cr3t-of-the-tests",
        }
    finally:
        server.stop()


def _answers(port: int) -> bool:
    import psycopg

    try:
        psycopg.connect(f"postgresql://sqb:hunter2@127.0.0.1:{port}/postgres").close()
    except psycopg.OperationalError as error:
        raise OSError from error
    return True


def _until(ready: object, server: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _WAIT_S
    while time.monotonic() < end:
        if server.poll() is not None:
            raise AssertionError(f"the server ended with {server.returncode}")
        with contextlib.suppress(OSError):
            if ready():  # type: ignore[operator]
                return
        time.sleep(0.1)
    raise AssertionError("the server did not come up")
