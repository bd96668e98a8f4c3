"""A real Spark thrift server on this machine, without Iceberg or with a catalog of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
from pyiceberg.catalog.sql import SqlCatalog
from servers import free_port

from sqb.dbt.profile import Profile
from sqb.spark.jars import cache_dir
from sqb.spark.java import find_java, java_home_for_spark

_HOST = "127.0.0.1"
_WAIT_S = 120
_EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


class ThriftServer:
    """Starts when it is entered, is gone when it is left.

    ``kind`` is ``plain``: Spark's own catalog, in memory, with Parquet tables; or ``iceberg``: a
    JDBC catalog on SQLite as the default, and ``files``, a Hadoop catalog, which has no views. A
    session remembers Iceberg tables that it met, as it does by default.
    """

    def __init__(self, kind: str, folder: Path, jars: Sequence[Path]) -> None:
        self.kind, self._folder = kind, folder
        self.port = free_port()
        self.warehouse = folder / "warehouse"
        self.uri = f"sqlite:///{folder / 'catalog.db'}"
        #: Holds its settings, as ``SPARK_CONF_DIR`` would.
        self.conf_folder = folder / "conf"
        self._conf = self._settings(jars)
        self._process: subprocess.Popen[bytes] | None = None

    def target(self, schema: str = "shop", **fields: Any) -> dict[str, Any]:
        """A target of ``profiles.yml``."""
        return {
            "type": "spark",
            "method": "thrift",
            "host": _HOST,
            "port": self.port,
            "user": "dbt",
            "schema": schema,
            "threads": 2,
            "connect_retries": 0,
            **fields,
        }

    def profile(self, schema: str = "shop", **fields: Any) -> Profile:
        """The same, as sqb reads it."""
        return Profile("profiles.yml", "shop", "dev", self.target(schema, **fields))

    def __enter__(self) -> ThriftServer:  # noqa: PYI034 - Python 3.10 has no Self
        self.warehouse.mkdir(parents=True)
        if self.kind == "iceberg":
            # PyHive enters `default` before anything else
            catalog = SqlCatalog("lake", uri=self.uri, warehouse=str(self.warehouse))
            catalog.create_namespace("default")
            catalog.engine.dispose()
        settings = self.conf_folder / "spark-defaults.conf"
        settings.parent.mkdir()
        settings.write_text("".join(f"{k} {v}\n" for k, v in self._conf.items()))
        home = Path(pyspark.__file__).parent
        log = self._folder / "server.log"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    str(home / "bin" / "spark-submit"),
                    *("--properties-file", str(settings)),
                    *("--class", "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"),
                    "spark-internal",
                    *("--hiveconf", f"hive.server2.thrift.port={self.port}"),
                    *("--hiveconf", f"hive.server2.thrift.bind.host={_HOST}"),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**_environment(), "SPARK_HOME": str(home)},
                cwd=self._folder,
                start_new_session=True,
            )
        try:
            self._await(log)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is None:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None

    def _settings(self, jars: Sequence[Path]) -> dict[str, str]:
        conf = {
            "spark.master": "local[2]",
            "spark.driver.memory": "1g",
            "spark.driver.host": _HOST,
            "spark.driver.bindAddress": _HOST,
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": str(self.warehouse),
        }
        if self.kind == "plain":
            return conf
        assert self.kind == "iceberg", self.kind
        lake = "spark.sql.catalog.lake"
        return {
            **conf,
            # not spark.jars: sessions other than the first would not find the classes
            "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
            "spark.sql.extensions": _EXTENSIONS,
            "spark.sql.defaultCatalog": "lake",
            lake: "org.apache.iceberg.spark.SparkCatalog",
            f"{lake}.type": "jdbc",
            f"{lake}.uri": self.uri.replace("sqlite:///", "jdbc:sqlite:"),
            f"{lake}.jdbc.schema-version": "V1",
            f"{lake}.warehouse": str(self.warehouse),
            "spark.sql.catalog.files": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.files.type": "hadoop",
            "spark.sql.catalog.files.warehouse": str(self._folder / "files"),
        }

    def _await(self, log: Path) -> None:
        deadline = time.monotonic() + _WAIT_S
        while True:
            assert self._process is not None
            assert self._process.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            try:
                socket.create_connection((_HOST, self.port), 1).close()
            except OSError:
                time.sleep(0.2)
            else:
                return


def _environment() -> Mapping[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    home = java_home_for_spark(find_java(os.environ), cache_dir(os.environ))
    return {**kept, "JAVA_HOME": home, "SPARK_LOCAL_IP": _HOST}
