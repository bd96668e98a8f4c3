"""Asks a Spark thrift server: JSON lines in, JSON lines out.

This file is run as a script by the Python that dbt runs on, which has PyHive; it imports nothing of
sqb. It connects as dbt-spark does, and learns how, passwords among it, through its standard input.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from typing import IO, Any

#: Seconds between two looks at a running statement: short ones are answered at once.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5


class RefusedError(Exception):
    """The server's own words about a statement."""


def main() -> int:
    """Answer each line, until there are no more."""
    # the modules beside this file have names that others have too
    here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - before any import
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]  # noqa: PTH100
    # whatever a library prints must not be taken for an answer
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # whatever the locale says
    with os.fdopen(os.dup(0), encoding="utf-8") as requests:
        return serve(requests, answers)


def serve(requests: IO[str], answers: IO[str]) -> int:
    """The first request says how to connect, each further one has a statement."""
    connection: Any = None
    try:
        for line in requests:
            request = json.loads(line)
            step = "connect" if "connect" in request else "statement"
            try:
                if step == "connect":
                    connection = connect(request["connect"])
                    answer: dict[str, Any] = {"rows": []}
                else:
                    answer = {"rows": run(connection, request["sql"])}
            except ImportError as error:
                answer = {"error": str(error), "step": "import"}
            except Exception as error:  # noqa: BLE001 - whatever it is, the asker is told
                answer = {"error": message(error), "step": step}
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    finally:
        if connection is not None:
            # a server that went needs no farewell
            with contextlib.suppress(Exception):
                connection.close()
    return 0


def connect(given: dict[str, Any]) -> Any:
    """A session of the server, tried as often as dbt-spark would."""
    from pyhive import hive

    # values stay the texts that Spark sends
    hive.TYPES_CONVERTER.clear()
    for retries_left in range(given["retries"], -1, -1):
        try:
            return opened(hive, given)
        except Exception as error:  # noqa: PERF203 - a handful of attempts
            text = str(error).lower()
            passing = "pending" in text or "temporarily_unavailable" in text
            if not retries_left or not (passing or given["retry_all"]):
                raise
            time.sleep(given["pause"])
    raise AssertionError("unreachable")


def opened(hive: Any, given: dict[str, Any]) -> Any:
    """One attempt, with the arguments that dbt-spark gives."""
    if given["use_ssl"]:
        return hive.connect(thrift_transport=encrypted(given), configuration=given["configuration"])
    return hive.connect(
        host=given["host"],
        port=given["port"],
        username=given["user"],
        auth=given["auth"],
        kerberos_service_name=given["kerberos_service_name"],
        password=given["password"],
        configuration=given["configuration"],
    )


def encrypted(given: dict[str, Any]) -> Any:
    """A transport over TLS; as in dbt-spark, the server's certificate is not checked."""
    import ssl

    import thrift_sasl
    from pyhive.sasl_compat import PureSASLClient
    from thrift.transport.TSSLSocket import TSSLSocket
    from thrift.transport.TTransport import TBufferedTransport

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host, auth = given["host"], given["auth"] or "NONE"
    socket = TSSLSocket(host, given["port"], ssl_context=context)
    if auth == "NOSASL":
        return TBufferedTransport(socket)
    if auth not in {"LDAP", "KERBEROS", "NONE", "CUSTOM"}:
        raise NotImplementedError(
            f"only NONE, NOSASL, LDAP, KERBEROS and CUSTOM authentication are supported, got {auth}"
        )
    mechanism = "GSSAPI" if auth == "KERBEROS" else "PLAIN"

    def client() -> Any:
        if mechanism == "GSSAPI":
            return PureSASLClient(host, given["kerberos_service_name"], mechanism=mechanism)
        # neither matters where the server asks for none, but both must be there
        user, password = given["user"], given["password"]
        return PureSASLClient(
            host,
            mechanism=mechanism,
            username="dbt" if user is None else user,
            password="x" if password is None else password,
        )

    return thrift_sasl.TSaslClientTransport(client, mechanism, socket)


def run(connection: Any, sql: str) -> list[list[str | None]]:
    """The rows of a statement; none for one that gives none."""
    from TCLIService.ttypes import TOperationState

    waiting = {
        TOperationState.INITIALIZED_STATE,
        TOperationState.PENDING_STATE,
        TOperationState.RUNNING_STATE,
    }
    with contextlib.closing(connection.cursor()) as cursor:
        # a request that waits for its answer for minutes may be dropped on the way
        cursor.execute(sql, async_=True)
        pause = _FIRST_PAUSE
        status = cursor.poll()
        while status.operationState in waiting:
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
            status = cursor.poll()
        if status.errorMessage or status.operationState != TOperationState.FINISHED_STATE:
            state = TOperationState._VALUES_TO_NAMES.get(status.operationState)
            raise RefusedError(status.errorMessage or f"the statement ended as {state}")
        if cursor.description is None:
            return []
        return [[shown(value) for value in row] for row in cursor.fetchall()]


def shown(value: object) -> str | None:
    """A value as text.

    >>> shown(None), shown(True), shown(7), shown("7")
    (None, 'true', '7', '7')
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value).lower() if isinstance(value, bool) else str(value)


def message(error: Exception) -> str:
    """What an error says; those of PyHive hold the server's whole answer."""
    status = getattr(error.args[0], "status", None) if error.args else None
    told = str(error) if isinstance(error, RefusedError) else getattr(status, "errorMessage", None)
    return str(told or f"{type(error).__name__}: {error}".removesuffix(": "))


if __name__ == "__main__":
    raise SystemExit(main())
