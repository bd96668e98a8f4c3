"""pyiceberg's own client of the project's catalog, for what needs more than rows and documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.catalog.sql import SqlCatalog

_ATTEMPTS = 4


def open_iceberg(
    name: str,
    uri: str,
    warehouse: str,
    kind: str = "sql",
    properties: Mapping[str, str] | None = None,
) -> Catalog:
    """pyiceberg's catalog of this address; importing it takes over a second the first time."""
    options = {**(properties or {}), "uri": uri}
    if warehouse:
        options["warehouse"] = warehouse
    if kind == "rest":
        from pyiceberg.catalog.rest import RestCatalog

        if "oauth2-server-uri" not in options and {"token", "credential"} & options.keys():
            # The default, spelled out: left out, pyiceberg warns with the whole address.
            options["oauth2-server-uri"] = f"{uri.rstrip('/')}/v1/oauth/tokens"
        return RestCatalog(name, **options)
    from sqlalchemy import NullPool, create_engine

    opened = _open_sql(name, options | {"uri": sqlalchemy_address(uri)})
    # a pool would hold connections while Spark works, and those of a server are for everyone
    pooled = opened.engine
    opened.engine = create_engine(pooled.url, echo=pooled.echo, poolclass=NullPool)
    pooled.dispose()
    return opened


def _open_sql(name: str, options: Mapping[str, str]) -> SqlCatalog:
    from pyiceberg.catalog.sql import SqlCatalog
    from sqlalchemy.exc import DBAPIError

    for _ in range(_ATTEMPTS - 1):
        try:
            return SqlCatalog(name, **options)
        except DBAPIError as error:  # noqa: PERF203 - next to opening it costs nothing
            # it makes its tables where they are missing; someone else did so at the same moment
            if "already exists" not in str(error):
                raise
    return SqlCatalog(name, **options)


def sqlalchemy_address(uri: str) -> str:
    """The address with the driver that sqb brings along.

    >>> sqlalchemy_address("postgres://me@db/lake")
    'postgresql+psycopg://me@db/lake'
    """
    dialect, colon, rest = uri.partition(":")
    if dialect.partition("+")[0] in {"postgresql", "postgres"}:
        return f"postgresql+psycopg{colon}{rest}"
    return uri
