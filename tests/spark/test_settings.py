"""What a session is configured with, without starting one."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from sqb.errors import SqbError
from sqb.spark.jars import drivers_of, extras_of
from sqb.spark.settings import (
    CATALOG_CLASS,
    EXTENSIONS,
    SparkSettings,
    launch_conf,
    redact,
    spark_conf,
)

BASE = SparkSettings(catalog_name="lake", catalog_uri="sqlite:////d/c.db", warehouse="/d")
JARS = (Path("/j/a.jar"), Path("/j/b.jar"))
LAKE = "spark.sql.catalog.lake"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {"spark.master": "local[*]", "spark.driver.extraClassPath": "/j/a.jar:/j/b.jar"}),
        ({}, {"spark.driver.host": "127.0.0.1", "spark.sql.shuffle.partitions": "8"}),
        ({}, {"spark.sql.defaultCatalog": "lake", "spark.sql.extensions": EXTENSIONS}),
        ({}, {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}),
        ({}, {f"{LAKE}.type": "jdbc", f"{LAKE}.uri": "jdbc:sqlite:/d/c.db"}),
        ({}, {f"{LAKE}.jdbc.schema-version": "V1", f"{LAKE}.warehouse": "/d"}),
        ({}, {f"{LAKE}.cache-enabled": "false", "spark.ui.enabled": "false"}),
        ({"master": "yarn"}, {"spark.jars": "/j/a.jar,/j/b.jar", "spark.driver.host": None}),
        ({"master": "yarn"}, {"spark.driver.extraClassPath": None}),
        ({"master": "local-cluster[2,1,1024]"}, {"spark.jars": "/j/a.jar,/j/b.jar"}),
        ({"properties": {"s3.region": "x"}}, {f"{LAKE}.s3.region": "x"}),
        (
            {"catalog_type": "rest", "catalog_uri": "https://host/api"},
            {f"{LAKE}.type": "rest", f"{LAKE}.uri": "https://host/api"},
        ),
        (
            {"catalog_uri": "postgresql+psycopg2://me:p%40ss@db:5432/lake?sslmode=require"},
            {
                f"{LAKE}.uri": "jdbc:postgresql://db:5432/lake?sslmode=require",
                f"{LAKE}.jdbc.user": "me",
                f"{LAKE}.jdbc.password": "p@ss",
            },
        ),
        ({"conf": {"spark.sql.ansi.enabled": "false"}}, {"spark.sql.ansi.enabled": "false"}),
        ({"conf": {f"{LAKE}.cache-enabled": "true"}}, {f"{LAKE}.cache-enabled": "false"}),
        (
            {"conf": {"spark.sql.extensions": "a.B, c.D"}},
            {"spark.sql.extensions": f"a.B,c.D,{EXTENSIONS}"},
        ),
        ({"conf": {"spark.sql.extensions": EXTENSIONS}}, {"spark.sql.extensions": EXTENSIONS}),
        (
            {"conf": {"spark.driver.extraClassPath": "/x.jar"}},
            {"spark.driver.extraClassPath": "/x.jar:/j/a.jar:/j/b.jar"},
        ),
    ],
)
def test_a_session_gets_what_the_lake_needs_and_the_users_settings(
    change: dict[str, object], expected: dict[str, str | None]
) -> None:
    conf = spark_conf(msgspec.structs.replace(BASE, **change), JARS)
    assert {name: conf.get(name) for name in expected} == expected


@pytest.mark.parametrize(
    "change",
    [
        {"catalog_type": "hive"},
        {"catalog_uri": "sqlite:///relative.db"},
        {"catalog_uri": "mysql://me:hunter2@db/lake"},
        {"catalog_uri": "nonsense"},
    ],
)
def test_a_catalog_that_spark_cannot_open_is_refused_without_its_password(
    change: dict[str, str],
) -> None:
    with pytest.raises(SqbError) as caught:
        spark_conf(msgspec.structs.replace(BASE, **change), JARS)
    assert caught.value.code == "C007"
    assert caught.value.help
    assert "hunter2" not in caught.value.message


def test_no_secret_stands_on_a_command_line_or_in_a_message() -> None:
    settings = msgspec.structs.replace(
        BASE,
        catalog_uri="postgresql://me:hunter2@db/lake",
        properties={"s3.secret-access-key": "abcdef"},
        conf={"spark.hadoop.fs.s3a.access.key": "ghijkl", "spark.driver.memory": "2g"},
    )
    conf = spark_conf(settings, JARS)
    line = launch_conf(conf)
    assert not any(secret in str(line) for secret in ("hunter2", "abcdef", "ghijkl"))
    assert line["spark.driver.memory"] == "2g"
    assert "spark.driver.extraClassPath" in line
    assert redact("no hunter2, abcdef", conf) == "no ***, ***"


def test_a_warehouse_in_a_store_gets_its_client_and_a_folder_does_not() -> None:
    io = f"spark.sql.catalog.{BASE.catalog_name}.io-impl"
    store = msgspec.structs.replace(BASE, warehouse="s3://bucket/tables")
    assert spark_conf(store, ())[io] == "org.apache.iceberg.aws.s3.S3FileIO"
    assert io not in spark_conf(BASE, ())
    rest = msgspec.structs.replace(store, catalog_type="rest", catalog_uri="http://rest")
    assert io not in spark_conf(rest, ())
    own = msgspec.structs.replace(store, properties={"io-impl": "my.FileIO"})
    assert spark_conf(own, ())[io] == "my.FileIO"
    bundle = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
    assert extras_of(BASE.catalog_uri, store.warehouse) == (bundle,)
    assert extras_of("postgresql://db/lake", "/lake") == drivers_of("postgresql://db/lake")


def test_no_iceberg_catalog_has_a_cache() -> None:
    other = "spark.sql.catalog.other"
    given = {other: CATALOG_CLASS, f"{other}.cache-enabled": "true", f"{other}2": "x.Y"}
    conf = spark_conf(msgspec.structs.replace(BASE, conf=given), ())
    assert conf[f"{other}.cache-enabled"] == "false"
    assert f"{other}2.cache-enabled" not in conf


def test_a_password_among_the_options_of_an_address_is_taken_out_of_it() -> None:
    settings = SparkSettings("lake", "postgresql://db/lake?user=me&password=pw&ssl=true", "/d")
    conf = spark_conf(settings, ())
    assert conf[f"{LAKE}.uri"] == "jdbc:postgresql://db/lake?ssl=true"
    assert (conf[f"{LAKE}.jdbc.user"], conf[f"{LAKE}.jdbc.password"]) == ("me", "pw")
