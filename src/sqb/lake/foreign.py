"""Other Iceberg catalogs that Spark is configured with and that can be opened without a JVM."""

from __future__ import annotations

from collections.abc import Mapping

from sqb.lake import stores
from sqb.lake.catalog import SqlCatalog

_PREFIX = "spark.sql.catalog."
_ICEBERG = "org.apache.iceberg.spark.SparkCatalog"
_JDBC = "org.apache.iceberg.jdbc.JdbcCatalog"
_SQLITE = "jdbc:sqlite:"


def open_foreign(name: str, conf: Mapping[str, str]) -> SqlCatalog | None:
    """The catalog ``name`` of a Spark configuration, if it is an Iceberg one on a SQLite file.

    >>> conf = {"spark.sql.catalog.crm": "org.apache.iceberg.spark.SparkCatalog",
    ...         "spark.sql.catalog.crm.type": "jdbc",
    ...         "spark.sql.catalog.crm.uri": "jdbc:sqlite:/data/crm.db"}
    >>> open_foreign("crm", conf), open_foreign("hive", conf)
    (SqlCatalog('crm', 'sqlite:////data/crm.db'), None)
    """
    start = f"{_PREFIX}{name}"
    if conf.get(start) != _ICEBERG:
        return None
    if conf.get(f"{start}.type") != "jdbc" and conf.get(f"{start}.catalog-impl") != _JDBC:
        return None
    uri = conf.get(f"{start}.uri", "")
    path = uri.removeprefix(_SQLITE).partition("?")[0]
    if not uri.startswith(_SQLITE) or not path.startswith("/"):
        return None
    own = {k.removeprefix(f"{start}."): v for k, v in conf.items() if k.startswith(f"{start}.")}
    warehouse = own.get("warehouse", "")
    stores.use_beside(warehouse, own)
    return SqlCatalog(name, f"sqlite:///{path}", warehouse)
