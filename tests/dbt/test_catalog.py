"""Which catalog a dbt project writes to, from what Spark is configured with."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.dbt.catalog import catalog_from_conf, catalog_of, has_secret, spark_defaults_file
from sqb.project.config_values import CatalogConfig

ROOT = Path("/shop")
ICEBERG = "org.apache.iceberg.spark.SparkCatalog"


def conf(name: str = "lake", kind: str = ICEBERG, **settings: str) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    named = {f"{prefix}.{key.replace('__', '.')}": value for key, value in settings.items()}
    return {"spark.sql.defaultCatalog": name, prefix: kind, **named}


JDBC = {"type": "jdbc", "warehouse": "/data"}

READABLE: list[tuple[str, dict[str, str], CatalogConfig]] = [
    (
        "a file of SQLite",
        conf(**JDBC, uri="jdbc:sqlite:/data/c.db"),
        CatalogConfig("lake", "sql", "sqlite:////data/c.db", "/data"),
    ),
    (
        "by class, with options and a relative path",
        conf(
            **{"catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog"},
            warehouse="lake",
            uri="jdbc:sqlite:file:lake/c.db?cache=shared",
        ),
        CatalogConfig("lake", "sql", "sqlite:////shop/lake/c.db", "/shop/lake"),
    ),
    (
        "PostgreSQL with a login beside the address",
        conf(**JDBC, uri="jdbc:postgresql://db:5432/c", jdbc__user="me", jdbc__password="p@w"),
        CatalogConfig("lake", "sql", "postgresql://me:p%40w@db:5432/c", "/data"),
    ),
    (
        "PostgreSQL with a login in the address",
        conf(**JDBC, uri="jdbc:postgresql://db/c?user=me&password=pw&sslmode=require"),
        CatalogConfig("lake", "sql", "postgresql://me:pw@db/c?sslmode=require", "/data"),
    ),
    (
        "a warehouse by URI",
        conf(type="jdbc", warehouse="file:///data", uri="jdbc:sqlite:/c.db"),
        CatalogConfig("lake", "sql", "sqlite:////c.db", "file:///data"),
    ),
    (
        "a REST server",
        conf(
            "main",
            type="rest",
            uri="https://host/catalog",
            warehouse="w",
            token="t",
            **{"cache-enabled": "false", "io-impl": "x"},
        ),
        CatalogConfig("main", "rest", "https://host/catalog", "w", {"token": "t"}),
    ),
]


@pytest.mark.parametrize(
    ("settings", "expected"), [case[1:] for case in READABLE], ids=[case[0] for case in READABLE]
)
def test_catalogs_that_sqb_reads_itself(settings: dict[str, str], expected: CatalogConfig) -> None:
    assert catalog_from_conf(settings, ROOT) == expected


def test_a_bucket_gets_what_all_clients_need() -> None:
    settings = conf(
        type="jdbc", warehouse="s3://b/w/", uri="jdbc:sqlite:/c.db", s3__endpoint="http://x"
    )
    found = catalog_from_conf(settings, ROOT)
    assert found is not None
    assert (found.warehouse, found.properties["client.region"]) == ("s3://b/w", "us-east-1")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        conf(kind="org.apache.iceberg.spark.SparkSessionCatalog", **JDBC, uri="jdbc:sqlite:/c.db"),
        conf("spark_catalog", kind="org.apache.iceberg.spark.SparkSessionCatalog", type="hive"),
        conf(type="hive", uri="thrift://host:9083"),
        conf(type="hadoop", warehouse="/data"),
        conf(**{"catalog-impl": "org.apache.iceberg.aws.glue.GlueCatalog"}, warehouse="s3://b/w"),
        conf(**JDBC, uri="jdbc:mysql://db/c"),
        conf(**JDBC, uri="jdbc:sqlite::memory:"),
        conf(**JDBC),
        conf(type="jdbc", uri="jdbc:sqlite:/c.db"),
        conf(type="jdbc", uri="jdbc:sqlite:/c.db", warehouse="hdfs://name/w"),
        conf(type="rest"),
        conf("delta", kind="org.apache.spark.sql.delta.catalog.DeltaCatalog"),
    ],
)
def test_other_catalogs_are_left_to_spark(settings: dict[str, str]) -> None:
    assert catalog_from_conf(settings, ROOT) is None


LAKE = conf(**JDBC, uri="jdbc:sqlite:/lake/c.db")
OTHER = conf("other", **JDBC, uri="jdbc:sqlite:/other/c.db")
WRITTEN = CatalogConfig("written")


@pytest.mark.parametrize(
    ("explicit", "method", "host", "own", "defaults", "expected"),
    [
        (WRITTEN, "session", "NA", LAKE, OTHER, "written"),
        (None, "session", "NA", LAKE, OTHER, "lake"),
        (None, "session", "NA", {}, OTHER, "other"),
        (None, "session", "NA", {"spark.sql.defaultCatalog": "lake"}, {**OTHER, **LAKE}, "lake"),
        (None, "thrift", "localhost", {}, OTHER, "other"),
        (None, "thrift", "spark.example.com", LAKE, {}, "lake"),
        # what this machine's Spark reads says nothing about a server elsewhere
        (None, "thrift", "spark.example.com", {}, OTHER, None),
        (None, "session", "NA", {}, {}, None),
    ],
)
def test_which_settings_count(
    explicit: CatalogConfig | None,
    method: str,
    host: str,
    own: dict[str, str],
    defaults: dict[str, str],
    expected: str | None,
) -> None:
    found = catalog_of(explicit, method=method, host=host, conf=own, defaults=defaults, root=ROOT)
    assert (found.name if found else None) == expected


def test_a_relative_path_leads_nowhere_on_a_server() -> None:
    settings = conf(**JDBC, uri="jdbc:sqlite:c.db")
    assert catalog_from_conf(settings, None) is None


def test_settings_with_secrets_are_told_from_others() -> None:
    assert [has_secret(case[2]) for case in READABLE] == [False, False, True, True, False, True]


def test_where_spark_reads_its_defaults(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "conf"
    for place in (home / "conf", folder):
        place.mkdir(parents=True)
        (place / "spark-defaults.conf").write_text("")
    both = {"SPARK_HOME": str(home), "SPARK_CONF_DIR": str(folder)}
    assert spark_defaults_file(both) == folder / "spark-defaults.conf"
    assert spark_defaults_file({"SPARK_HOME": str(home)}) == home / "conf" / "spark-defaults.conf"
    assert spark_defaults_file({}) is None
    assert spark_defaults_file({"SPARK_CONF_DIR": str(tmp_path)}) is None
