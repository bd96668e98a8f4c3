"""A standalone Spark cluster on this machine: one master, two workers, from pyspark's own jars."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pyspark

from sqb.spark.jars import cache_dir
from sqb.spark.java import find_java, java_home_for_spark

_HOST = "127.0.0.1"


class Cluster:
    """Starts when it is entered, is gone when it is left."""

    def __init__(self, folder: Path, environ: Mapping[str, str], workers: int = 2) -> None:
        self._folder, self._environ, self._workers = folder, dict(environ), workers
        self._processes: list[subprocess.Popen[bytes]] = []
        self.master = f"spark://{_HOST}:{_free_port()}"

    def __enter__(self) -> Cluster:  # noqa: PYI034 - Python 3.10 has no Self
        try:
            port = self.master.rpartition(":")[2]
            place = ["--host", _HOST, "--port", port, "--webui-port", str(_free_port())]
            self._start("master", "org.apache.spark.deploy.master.Master", place)
            for number in range(self._workers):
                place = ["--host", _HOST, "--webui-port", str(_free_port())]
                size = ["--cores", "1", "--memory", "1g"]
                work = ["--work-dir", str(self._folder / f"work{number}")]
                self._start(
                    f"worker{number}",
                    "org.apache.spark.deploy.worker.Worker",
                    [*place, *size, *work, self.master],
                )
            self._await_workers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:  # noqa: PERF203 - each gets its chance
                process.kill()
                process.wait()
        for pid in self.executors():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def executors(self) -> list[int]:
        """The process ids of this cluster's executors."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                line = path.read_bytes().split(b"\0")
                if b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in line and any(
                    str(self._folder).encode() in part for part in line
                ):
                    found.append(int(path.parent.name))
        if found:
            return found
        # an executor's command line does not always name the work folder; its own folder does
        for path in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                line = (path.parent / "cmdline").read_bytes()
                if str(path.readlink()).startswith(str(self._folder)) and b"Executor" in line:
                    found.append(int(path.parent.name))
        return found

    def _start(self, name: str, java_class: str, arguments: list[str]) -> None:
        home = java_home_for_spark(find_java(self._environ), cache_dir(self._environ))
        script = Path(pyspark.__file__).parent / "bin" / "spark-class"
        env = {
            **self._environ,
            "JAVA_HOME": home,
            "SPARK_LOCAL_IP": _HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(script), java_class, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=env,
                    cwd=self._folder,
                )
            )

    def _await_workers(self) -> None:
        deadline = time.monotonic() + 90
        log = self._folder / "master.log"
        while len(re.findall("Registering worker", log.read_text())) < self._workers:
            assert time.monotonic() < deadline, log.read_text()[-2000:]
            assert all(process.poll() is None for process in self._processes), log.read_text()
            time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        port: int = probe.getsockname()[1]
        return port
