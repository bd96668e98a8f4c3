"""How to open the project's lake without sqb: the same settings in other tools' own words.

Pure text. A secret is never printed: it is a reference to an environment variable where the tool
can follow one, else it is left out with a note.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePath

from sqb.project.secrets import MASK, is_secret_key
from sqb.spark.jars import extras_of, missing_defaults, parse_coordinate
from sqb.spark.settings import SparkSettings, redact, spark_conf

FORMATS = ("defaults", "submit", "pyiceberg", "dbt")

#: What a session elsewhere needs so that queries mean the same there.
_SHARED = ("spark.sql.extensions", "spark.sql.defaultCatalog", "spark.sql.ansi.enabled")
_SHARED_PREFIXES = ("spark.sql.catalog.", "spark.sql.session.")
_USERINFO = re.compile(r"(?<=://)([^\s/@:]*):([^\s/@]+)(?=@)")


def conf_elsewhere(settings: SparkSettings) -> dict[str, str]:
    """The Spark settings that open the lake.

    Those with a secret's name hold their value, which the renderers below do not print; a secret
    that hides in another value is masked.
    """
    full = spark_conf(settings, ())
    chosen = {
        name: value
        for name, value in full.items()
        if name in _SHARED or name.startswith(_SHARED_PREFIXES) or name in settings.conf
    }
    if settings.jars:
        chosen["spark.jars"] = ",".join(settings.jars)
    given = [PurePath(jar).name for jar in settings.jars]
    given += [parse_coordinate(text).file_name for text in settings.packages]
    extras = extras_of(settings.catalog_uri, settings.warehouse)
    packages = [*missing_defaults(given, extras), *settings.packages]
    if packages:
        chosen["spark.jars.packages"] = ",".join(packages)
    return {
        name: value if is_secret_key(name) else _without(value, full)
        for name, value in sorted(chosen.items())
    }


def _without(value: str, conf: Mapping[str, str]) -> str:
    return redact(_USERINFO.sub(rf"\1:{MASK}", value), conf)


def variable(name: str) -> str:
    """The environment variable that a printed setting refers to.

    >>> variable("spark.sql.catalog.lake.jdbc.password")
    'LAKE_JDBC_PASSWORD'
    """
    short = re.sub(r"^spark\.(sql\.catalog\.)?", "", name)
    return re.sub(r"\W+", "_", short).upper()


def as_defaults(settings: SparkSettings) -> str:
    """Lines of ``spark-defaults.conf``."""
    conf = conf_elsewhere(settings)
    lines = [f"{name} {value}" for name, value in conf.items() if not is_secret_key(name)]
    lines += [
        f"# {name}: a secret, left out; add the line where only Spark can read it"
        for name in conf
        if is_secret_key(name)
    ]
    return _text(lines)


def as_submit(settings: SparkSettings) -> str:
    """Arguments of ``spark-submit``, ``spark-sql`` or ``pyspark``, quoted for a shell."""
    lines = []
    for name, value in conf_elsewhere(settings).items():
        if is_secret_key(name):
            lines.append(f'--conf "{name}=${variable(name)}" \\')
        else:
            lines.append(f"--conf {shlex.quote(f'{name}={value}')} \\")
    lines[-1] = lines[-1].removesuffix(" \\")
    return _text(lines)


def as_pyiceberg(settings: SparkSettings) -> str:
    """A ``.pyiceberg.yaml``."""
    fields = {
        "type": settings.catalog_type,
        "uri": settings.catalog_uri,
        "warehouse": settings.warehouse,
        **settings.properties,
    }
    name = settings.catalog_name
    lines = [
        f'# load_catalog("{name}") of pyiceberg.catalog reads this from ~/.pyiceberg.yaml',
        "catalog:",
        f"  {name}:",
    ]
    for key, value in fields.items():
        environment = f"PYICEBERG_CATALOG__{name}__{key}".upper().replace("-", "_")
        plain = _USERINFO.sub(rf"\1:{MASK}", value)
        if is_secret_key(key):
            lines.append(f"    # {key}: a secret, left out; set {environment.replace('.', '__')}")
        elif plain != value:
            lines.append(f"    # the password is left out; set {environment} to the whole address")
            lines.append(f"    {key}: {_yaml(plain)}")
        else:
            lines.append(f"    {key}: {_yaml(value)}")
    return _text(lines)


def as_dbt(settings: SparkSettings, target: str, schema: str) -> str:
    """A profile of dbt-spark, with a session in dbt's own process."""
    lines = [
        "sqb:",
        f"  target: {target}",
        "  outputs:",
        f"    {target}:",
        "      type: spark",
        "      method: session",
        "      host: localhost",
        f"      schema: {schema}",
        "      server_side_parameters:",
    ]
    for name, value in conf_elsewhere(settings).items():
        shown = f"{{{{ env_var('{variable(name)}') }}}}" if is_secret_key(name) else value
        lines.append(f"        {_yaml(name)}: {_yaml(shown)}")
    return _text(lines)


def rendered(settings: SparkSettings, format_: str, *, target: str, schema: str) -> str:
    """The settings in one of ``FORMATS``."""
    renderers: Mapping[str, Callable[[], str]] = {
        "defaults": lambda: as_defaults(settings),
        "submit": lambda: as_submit(settings),
        "pyiceberg": lambda: as_pyiceberg(settings),
        "dbt": lambda: as_dbt(settings, target, schema),
    }
    return renderers[format_]()


def _yaml(text: str) -> str:
    """A YAML scalar that is this text, whatever is in it."""
    import json

    return json.dumps(text, ensure_ascii=False)


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
