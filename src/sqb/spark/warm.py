"""The warm server that a command may use: offered to the process, taken if the settings fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from sqb.errors import SqbError
from sqb.hashing import digest
from sqb.spark.settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Variables that a JVM reads when it starts: another value needs another JVM.
_READ_BY_JVM = re.compile(
    r"(AWS|SPARK|HADOOP|JAVA|JDK|GOOGLE|AZURE)_\w+|SQB_JAVA_HOME|TZ|LANG|LC_ALL"
)
#: The server is on this machine: it answers at once or it is gone.
_RETRIES = 4
_REACH_SECONDS = 2.0


class Offer(msgspec.Struct, frozen=True):
    """A running server, and what it was started with."""

    remote: str
    fits: str


_offers: list[Offer] = []


def offer(server: Offer) -> None:
    """Let the sessions of this process be opened on ``server``."""
    _offers[:] = [server]


def needs(settings: SparkSettings, environ: Mapping[str, str]) -> str:
    """A digest of all that a server's JVM was started with, so that two can be compared."""
    variables = {name: environ[name] for name in sorted(environ) if _READ_BY_JVM.fullmatch(name)}
    encoded = msgspec.json.encode([settings, variables], order="deterministic")
    return digest(encoded.decode())


def borrow(settings: SparkSettings, environ: Mapping[str, str]) -> SparkSession | None:
    """A session on the warm server, None if there is none that fits and answers."""
    for server in _offers:
        if server.fits != needs(settings, environ):
            return None
        from sqb.spark.connect import open_remote

        try:
            return open_remote(server.remote, retries=_RETRIES, reach_seconds=_REACH_SECONDS)
        except SqbError:
            _offers.clear()
    return None
