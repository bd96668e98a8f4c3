"""What a Spark session is configured with, as a pure function of the project's settings.

No Spark here: this says which settings a session gets, ``session`` starts one with them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from sqb.errors import SqbError
from sqb.project.config import Config
from sqb.project.stores import is_store

EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
CATALOG_CLASS = "org.apache.iceberg.spark.SparkCatalog"
S3_CLASS = "org.apache.iceberg.aws.s3.S3FileIO"
CLASS_PATH = "spark.driver.extraClassPath"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"

_SECRET = re.compile(r"password|token|secret|credential|key", re.IGNORECASE)


class SparkSettings(msgspec.Struct, frozen=True):
    """The ``[spark]`` and ``[catalog]`` sections of a target, with paths made absolute."""

    catalog_name: str
    catalog_uri: str
    warehouse: str
    master: str = "local[*]"
    remote: str | None = None
    packages: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    conf: dict[str, str] = {}
    catalog_type: str = "sql"
    properties: dict[str, str] = {}
    #: Work that reads no more than this starts on a JVM tuned for small work; 0 never does.
    small_input_mb: int = 256
    class_archive: bool = True

    @property
    def is_local(self) -> bool:
        """Whether driver and executors are one process on this machine."""
        return self.master == "local" or self.master.startswith("local[")


def settings_of(config: Config) -> SparkSettings:
    """The settings that a project's target asks for."""
    catalog, spark = config.catalog, config.spark
    return SparkSettings(
        catalog_name=catalog.name,
        catalog_uri=catalog.uri,
        warehouse=catalog.warehouse,
        master=spark.master,
        remote=spark.remote,
        packages=spark.packages,
        jars=spark.jars,
        conf=spark.conf,
        catalog_type=catalog.type,
        properties=catalog.properties,
        small_input_mb=spark.small_input_mb,
        class_archive=spark.class_archive,
    )


def spark_conf(settings: SparkSettings, jar_paths: Sequence[Path]) -> dict[str, str]:
    """Every setting of a session: sqb's own, the user's over them, then what must hold anyway.

    Whatever the user says, the Iceberg extensions stay and the catalogs' caches stay off: with
    them on, a session serves tables as they were before someone else's commit.
    """
    own = {
        "spark.master": settings.master,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.defaultCatalog": settings.catalog_name,
        **_catalog_conf(settings),
    }
    if settings.is_local:
        own |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.sql.shuffle.partitions": "8",
            # Fewer, fuller files matter more here than keeping a few cores equally busy.
            "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        }
    conf = own | settings.conf
    conf[f"spark.sql.catalog.{settings.catalog_name}.cache-enabled"] = "false"
    # Tables of other Iceberg catalogs are pinned too: a cache would not know the pinned snapshot.
    conf |= {f"{k}.cache-enabled": "false" for k, v in conf.items() if v == CATALOG_CLASS}
    conf["spark.sql.extensions"] = _joined(conf.get("spark.sql.extensions"), [EXTENSIONS], ",")
    paths = [str(path) for path in jar_paths]
    if settings.is_local:
        # One class loader for everything, and no copy of the jars into a work folder.
        name, separator = CLASS_PATH, os.pathsep
    else:
        name, separator = "spark.jars", ","
    if paths:
        conf[name] = _joined(conf.get(name), paths, separator)
    return conf


def launch_conf(conf: Mapping[str, str]) -> dict[str, str]:
    """The part of ``conf`` that may stand on the launcher's command line.

    The rest reaches the context later, through the connection to the JVM: a command line is
    visible to every user of the machine, so no secret may be on it.
    """
    return {
        name: value
        for name, value in conf.items()
        if not name.startswith("spark.sql.") and not _SECRET.search(name)
    }


def redact(text: str, conf: Mapping[str, str]) -> str:
    """``text`` without the values of those settings that are secret by their name."""
    secrets = {value for name, value in conf.items() if _SECRET.search(name) and len(value) > 3}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text


def _catalog_conf(settings: SparkSettings) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{settings.catalog_name}"
    if settings.catalog_type == "sql":
        fields = {"type": "jdbc", "jdbc.schema-version": "V1", **_jdbc(settings.catalog_uri)}
    elif settings.catalog_type == "rest":
        fields = {"type": "rest", "uri": settings.catalog_uri}
    else:
        raise SqbError(
            "C007",
            f"catalogs of type `{settings.catalog_type}` are not supported",
            help='set `type` of [catalog] to "sql" or "rest"',
        )
    if settings.warehouse:
        fields["warehouse"] = settings.warehouse
    if settings.catalog_type == "sql" and is_store(settings.warehouse):
        fields["io-impl"] = S3_CLASS  # a REST server says itself what opens its files
    fields |= settings.properties
    return {prefix: CATALOG_CLASS, **{f"{prefix}.{name}": fields[name] for name in fields}}


def _jdbc(uri: str) -> dict[str, str]:
    """The address in Java's form, with name and password taken out of it.

    >>> _jdbc("sqlite:////data/catalog.db")
    {'uri': 'jdbc:sqlite:/data/catalog.db'}
    >>> _jdbc("postgresql://me:pw@db:5432/lake")["uri"]
    'jdbc:postgresql://db:5432/lake'
    """
    from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

    parts = urlsplit(uri)
    # SQLAlchemy's form: the dialect may name its Python driver, as in postgresql+psycopg.
    dialect = parts.scheme.partition("+")[0]
    if dialect == "sqlite" and uri.startswith(f"{parts.scheme}:////"):
        return {"uri": f"jdbc:sqlite:{uri.removeprefix(f'{parts.scheme}:///')}"}
    if dialect in {"postgresql", "postgres"} and parts.hostname:
        host = parts.netloc.rpartition("@")[2]
        options = dict(parse_qsl(parts.query))
        login = {
            "jdbc.user": unquote(parts.username or "") or options.pop("user", ""),
            "jdbc.password": unquote(parts.password or "") or options.pop("password", ""),
        }
        query = f"?{urlencode(options)}" if options else ""
        # every session has a catalog of its own and uses it from one thread
        address = {"uri": f"jdbc:postgresql://{host}{parts.path}{query}", "clients": "1"}
        return address | {key: value for key, value in login.items() if value}
    raise SqbError(
        "C007",
        f"a SQL catalog can't be opened at an address of the form `{dialect or '?'}:…`",
        help="`uri` of [catalog] takes sqlite:////absolute/path.db or postgresql://host/database",
    )


def _joined(present: str | None, added: Sequence[str], separator: str) -> str:
    parts = [part.strip() for part in (present or "").split(separator) if part.strip()]
    return separator.join([*parts, *(part for part in added if part not in parts)])
