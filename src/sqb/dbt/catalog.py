"""Which Iceberg catalog a dbt project writes to, from what Spark is configured with.

``[catalog]`` of sqb's own config comes first, then the profile's ``server_side_parameters``, then
``spark-defaults.conf``. None is the answer where sqb can't read the catalog without Spark.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from sqb.project.config_values import CatalogConfig
from sqb.project.secrets import is_secret_key
from sqb.project.stores import completed, is_store

_PREFIX = "spark.sql.catalog."
_ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
_TYPES = {
    "org.apache.iceberg.jdbc.JdbcCatalog": "jdbc",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
}
#: What speaks to Spark alone.
_ENGINE_ONLY = re.compile(
    r"(?:type|catalog-impl|uri|warehouse|io-impl|default-namespace|clients|use-nullable-query-schema"
    r"|cache-enabled|cache\..*|jdbc\..*|table-default\..*|table-override\..*)$"
)
_LOCAL = frozenset({"", "na", "localhost", "127.0.0.1", "::1", "0.0.0.0"})
_POSTGRES = "jdbc:postgresql://"
_SQLITE = "jdbc:sqlite:"


def spark_defaults_file(environ: Mapping[str, str]) -> Path | None:
    """The ``spark-defaults.conf`` that a Spark of this machine reads, if there is one."""
    folder = environ.get("SPARK_CONF_DIR")
    if not folder:
        home = environ.get("SPARK_HOME")
        folder = f"{home}/conf" if home else None
    path = Path(folder, "spark-defaults.conf") if folder else None
    return path if path is not None and path.is_file() else None


def parse_spark_defaults(text: str) -> dict[str, str]:
    """The settings of a ``spark-defaults.conf``.

    >>> parse_spark_defaults("# note\\nspark.a  b c \\nspark.d=e\\nspark.f : g")
    {'spark.a': 'b c', 'spark.d': 'e', 'spark.f': 'g'}
    """
    found: dict[str, str] = {}
    for line in text.splitlines():
        written = line.strip()
        if not written or written.startswith(("#", "!")):
            continue
        parts = re.match(r"([^\s=:]+)\s*[\s=:]\s*(.*)$", written)
        if parts is not None:
            found[parts[1]] = parts[2].strip()
    return found


def catalog_of(
    explicit: CatalogConfig | None,
    *,
    method: str,
    host: str,
    conf: Mapping[str, str],
    defaults: Mapping[str, str],
    root: Path,
) -> CatalogConfig | None:
    """The catalog of a project at ``root``: the one that is written down, else Spark's own.

    ``conf`` are the profile's settings, ``defaults`` those of this machine's Spark; the latter say
    nothing about a server elsewhere.
    """
    if explicit is not None:
        return explicit
    local = method == "session" or host.lower() in _LOCAL
    merged = {**(defaults if local else {}), **conf}
    return catalog_from_conf(merged, root if method == "session" else None)


def catalog_from_conf(conf: Mapping[str, str], root: Path | None) -> CatalogConfig | None:
    """The default catalog of a Spark configuration, if sqb can read it itself.

    ``root`` is the folder that relative paths start from; without one they lead nowhere.

    >>> conf = {"spark.sql.defaultCatalog": "lake",
    ...         "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    ...         "spark.sql.catalog.lake.type": "jdbc",
    ...         "spark.sql.catalog.lake.uri": "jdbc:sqlite:/data/catalog.db",
    ...         "spark.sql.catalog.lake.warehouse": "/data"}
    >>> catalog_from_conf(conf, None).uri
    'sqlite:////data/catalog.db'
    """
    name = conf.get("spark.sql.defaultCatalog", "spark_catalog")
    start = f"{_PREFIX}{name}"
    if conf.get(start) != _ICEBERG:
        return None
    own = {k.removeprefix(f"{start}."): v for k, v in conf.items() if k.startswith(f"{start}.")}
    kind = own.get("type") or _TYPES.get(own.get("catalog-impl", ""), "")
    properties = {key: value for key, value in own.items() if not _ENGINE_ONLY.match(key)}
    uri, warehouse = own.get("uri", ""), own.get("warehouse", "")
    if kind == "rest":
        if not uri.startswith(("http://", "https://")):
            return None
        return CatalogConfig(name, "rest", uri, warehouse, properties)
    address = _address(uri, own, root) if kind == "jdbc" else None
    place = _warehouse(warehouse, root)
    if address is None or place is None:
        return None
    if is_store(place):
        properties = completed(properties)
    return CatalogConfig(name, "sql", address, place, properties)


def has_secret(catalog: CatalogConfig) -> bool:
    """Whether a catalog's settings hold something that must not be written down.

    >>> has_secret(CatalogConfig(uri="postgresql://me:pw@db/lake")), has_secret(CatalogConfig())
    (True, False)
    """
    return "@" in catalog.uri or any(map(is_secret_key, catalog.properties))


def _address(uri: str, own: Mapping[str, str], root: Path | None) -> str | None:
    """A JDBC address in Python's form."""
    if uri.startswith(_SQLITE):
        file = uri.removeprefix(_SQLITE).removeprefix("file:").partition("?")[0]
        if not file or ":memory:" in file or (root is None and not file.startswith("/")):
            return None
        path = file if root is None else os.path.normpath(root / file)
        return f"sqlite:///{path}"
    if not uri.startswith(_POSTGRES):
        return None
    from urllib.parse import parse_qsl, quote, urlencode

    place, _, query = uri.removeprefix(_POSTGRES).partition("?")
    if not place.partition("/")[0]:
        return None
    options = dict(parse_qsl(query))
    user = own.get("jdbc.user") or options.pop("user", "")
    password = own.get("jdbc.password") or options.pop("password", "")
    options.pop("user", None)
    options.pop("password", None)
    login = quote(user, safe="") + (f":{quote(password, safe='')}" if password else "")
    rest = f"?{urlencode(options)}" if options else ""
    return f"postgresql://{login}@{place}{rest}" if login else f"postgresql://{place}{rest}"


def _warehouse(text: str, root: Path | None) -> str | None:
    """A warehouse that sqb can read: a folder or an object store."""
    if is_store(text):
        return text.rstrip("/")
    if text.startswith("file:"):
        return text
    if not text or "://" in text or text.startswith("hdfs:"):
        return None
    if text.startswith("/"):
        return os.path.normpath(text)
    return os.path.normpath(root / text) if root is not None else None
