"""Builds in processes of their own that can be killed, on the Spark of the test process.

Run as a script it is a fork server: it imports everything once, then forks a child for every
request. A child attaches to the JVM of the tests through its py4j gateway, so that all of sqb's own
code runs, and dies, in the child, at the price of a fork instead of a JVM.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from sqb.spark.kinds import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Child:
    """A child at work: ``pid`` at once, its end through ``wait``."""

    def __init__(self, pid: int, answers: IO[str]) -> None:
        self.pid = pid
        self._answers = answers

    def wait(self) -> dict[str, Any]:
        """``status`` (exit code, or minus the signal) and the ``result``, if it lived to tell."""
        answer: dict[str, Any] = json.loads(self._answers.readline())
        return answer


class Children:
    """The fork server as the tests see it; one child at a time."""

    def __init__(self, spark: SparkSession) -> None:
        env = {k: v for k, v in os.environ.items() if not k.startswith("SQB_")}
        if is_connect(spark):
            env["SQB_TEST_REMOTE"] = os.environ["SQB_TEST_REMOTE"]
        else:
            gateway = spark.sparkContext._gateway
            assert gateway is not None
            parameters = gateway.java_parameters
            env["PYSPARK_GATEWAY_PORT"] = str(parameters.port)
            env["PYSPARK_GATEWAY_SECRET"] = parameters.auth_token
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=env,
        )

    def start(
        self,
        root: Path,
        *,
        select: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        cli: Sequence[str] | None = None,
    ) -> Child:
        """Build in a child: through ``Project``, or as the command line ``sqb *cli``."""
        request = {"root": str(root), "select": [*select], "env": {**(env or {})}, "cli": cli}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        pid = json.loads(self._process.stdout.readline())["pid"]
        return Child(pid, self._process.stdout)

    def close(self) -> None:
        """End the server; it leaves when its input ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0
        self._process.stdout.close()


def attach() -> SparkSession:
    """A session on the server or in the JVM that the environment names."""
    if os.environ.get("SQB_TEST_REMOTE"):
        from sqb.spark.connect import open_remote

        return open_remote(os.environ["SQB_TEST_REMOTE"])
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway
    from pyspark.sql import SparkSession

    gateway = launch_gateway()
    shared = gateway.jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get()
    context = gateway.jvm.org.apache.spark.api.java.JavaSparkContext(shared.sparkContext())
    conf = SparkConf(_jconf=context.getConf())
    return SparkSession(SparkContext(conf=conf, gateway=gateway, jsc=context), shared.newSession())


def _work(request: dict[str, Any]) -> tuple[int, object]:
    import signal

    from sqb.api import Project

    os.environ.update(request["env"])
    # pyspark puts its own handler of Ctrl-C in place, which a session that sqb starts does not have
    handler = signal.getsignal(signal.SIGINT)
    spark = attach()
    signal.signal(signal.SIGINT, handler)
    if request["cli"] is not None:
        from sqb.cli.main import run

        Project.session = lambda *_, **__: spark  # type: ignore[method-assign]
        return run([*request["cli"], "--project-dir", request["root"]]), None
    result = Project(request["root"], spark=spark).build(request["select"])
    nodes = {n.name: [n.status, n.reason, n.error] for n in result.nodes}
    return 0, {"run_id": result.run_id, "interrupted": result.interrupted, "nodes": nodes}


def _child(request: dict[str, Any], pipe: int) -> None:
    code: int = 1
    try:
        sys.stdin.close()
        # the server's own output is a protocol
        os.dup2(2, 1)
        code, result = _work(request)
        os.write(pipe, json.dumps(result).encode())
    except BaseException:  # noqa: BLE001 - nothing may get back into the server's loop
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def serve() -> None:
    """Fork a child for every line of the input; answer its pid, then how it ended."""
    import pyarrow.parquet  # noqa: F401 - imported once, for all children
    import pyiceberg.catalog.sql
    import pyiceberg.io.pyarrow  # noqa: F401
    import pyspark.sql  # noqa: F401

    import sqb.execution.build  # noqa: F401
    from sqb.sql import expand, references  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            _child(request, write)
        os.close(write)
        print(json.dumps({"pid": pid}), flush=True)
        with os.fdopen(read) as file:
            told = file.read()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        result = json.loads(told) if told else None
        print(json.dumps({"status": status, "result": result}), flush=True)


if __name__ == "__main__":
    serve()
