"""Sessions on a Spark Connect server: reach it, check it, open a session.

The server's own settings are its operator's business; a server that can't work on the project's
lake is refused with what it lacks.
"""

from __future__ import annotations

import contextlib
import re
import socket
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec

from sqb.errors import SqbError
from sqb.spark.kinds import ended_by_hand, release

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEFAULT_PORT = 15002
_REACH_SECONDS = 10.0
#: How often a call is tried again; with pyspark's waits, three minutes for eight times.
_RETRIES = 8
_VERSION = re.compile(r"4\.(\d+)")
#: Spark 4.1 is the first that can clone a session, which is how a build gets its siblings.
_OLDEST_MINOR = 1


class Address(msgspec.Struct, frozen=True):
    """``sc://host:port/;name=value``; the parameters hold the token and are not shown."""

    host: str
    port: int
    parameters: dict[str, str]

    @property
    def shown(self) -> str:
        return f"sc://{self.host}:{self.port}"


def parse_address(remote: str) -> Address:
    """
    >>> parse_address("sc://spark.example.com/;use_ssl=true;token=abc").shown
    'sc://spark.example.com:15002'
    """
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(remote)
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    path, _, rest = parts.path.partition(";")
    if parts.scheme != "sc" or not host or path not in ("", "/") or parts.query:
        raise SqbError(
            "C004",
            "`remote` of [spark] is not the address of a Spark Connect server",
            help='write remote = "sc://host:15002"; parameters follow as /;use_ssl=true;token=…',
        )
    pairs = [item.partition("=") for item in rest.split(";") if item]
    return Address(host, port or DEFAULT_PORT, {name: unquote(value) for name, _, value in pairs})


def open_remote(
    remote: str, *, retries: int = _RETRIES, reach_seconds: float = _REACH_SECONDS
) -> SparkSession:
    """A new session on the server at ``remote``; says clearly what is wrong if there is none."""
    address = parse_address(remote)
    _reach(address, reach_seconds)
    with _connecting(address):
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.client.retries import DefaultPolicy

        session: SparkSession = ended_by_hand(SparkSession.builder.remote(remote).create())
        cast("Any", session).client.set_retry_policies([DefaultPolicy(max_retries=retries)])
        version = session.version
    found = _VERSION.match(version)
    if found is None or int(found.group(1)) < _OLDEST_MINOR:
        release(session)
        raise SqbError(
            "J005",
            f"the server at {address.shown} runs Spark {version}",
            help="sqb needs a server of Spark 4.1 or a newer 4",
            exit_code=1,
        )
    return session


def _reach(address: Address, seconds: float) -> None:
    """Knock first: gRPC itself would go on trying for minutes."""
    try:
        socket.create_connection((address.host, address.port), timeout=seconds).close()
    except OSError as error:
        raise SqbError(
            "J005",
            f"the Spark Connect server at {address.shown} can't be reached: "
            f"{error.strerror or error}",
            help="check `remote` of [spark], and that the server is up",
            exit_code=1,
        ) from error


@contextlib.contextmanager
def _connecting(address: Address) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError as error:
        raise SqbError(
            "J005",
            "the packages of the Spark Connect client are not installed",
            help="pip install 'sqb[connect]'",
        ) from error
    except Exception as error:
        if not type(error).__module__.startswith(("pyspark", "grpc")):
            raise
        raise SqbError(
            "J005",
            f"the Spark Connect server at {address.shown} refused the session: {_details(error)}",
            help="check the parameters of `remote` in [spark]: token, use_ssl",
            exit_code=1,
        ) from error


def _details(error: Exception) -> str:
    """gRPC's own sentence, out of the long text around it."""
    found = re.search(r'details = "(.*)"', str(error))
    text = found.group(1) if found else str(error)
    return " ".join(text.split())[:300]
