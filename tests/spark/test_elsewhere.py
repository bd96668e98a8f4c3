"""The printed settings: whole, in each tool's own form, and without a secret."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sqb.spark.elsewhere import FORMATS, conf_elsewhere, rendered
from sqb.spark.jars import cache_dir
from sqb.spark.java import find_java, java_home_for_spark
from sqb.spark.settings import SparkSettings

SECRETS = ("hunter2", "s3cr3tvalue", "t0psecret")

POSTGRES = SparkSettings(
    catalog_name="lake",
    catalog_uri="postgresql+psycopg2://me:hunter2@db:5432/lake",
    warehouse="s3://bucket/lake",
    packages=("org.postgresql:postgresql:42.7.4",),
    conf={"spark.my.token": "t0psecret", "spark.sql.shuffle.partitions": "8"},
    properties={"s3.secret-access-key": "s3cr3tvalue", "s3.endpoint": "http://s3:9000"},
)


def text(format_: str, settings: SparkSettings = POSTGRES) -> str:
    return rendered(settings, format_, target="dev", schema="dev_me")


@pytest.mark.parametrize("format_", FORMATS)
def test_no_secret_is_printed(format_: str) -> None:
    found = text(format_)
    assert not any(secret in found for secret in SECRETS)
    assert "lake" in found


def test_a_secret_that_hides_in_another_value_is_masked() -> None:
    settings = SparkSettings(
        catalog_name="lake",
        catalog_uri="http://me:hunter2@rest:8181",
        warehouse="w",
        catalog_type="rest",
        properties={"token": "t0psecret"},
        conf={"spark.x": "prefix-t0psecret"},
    )
    for format_ in FORMATS:
        assert not any(secret in text(format_, settings) for secret in SECRETS)


def test_defaults_are_a_setting_per_line_and_name_what_is_left_out() -> None:
    lines = text("defaults").splitlines()
    settings = dict(line.split(" ", 1) for line in lines if not line.startswith("#"))
    assert settings["spark.sql.catalog.lake.uri"] == "jdbc:postgresql://db:5432/lake"
    assert settings["spark.sql.catalog.lake.cache-enabled"] == "false"
    assert settings["spark.sql.shuffle.partitions"] == "8"
    assert "spark.master" not in settings
    left_out = [line for line in lines if line.startswith("#")]
    assert [line.split()[1] for line in left_out] == [
        "spark.my.token:",
        "spark.sql.catalog.lake.jdbc.password:",
        "spark.sql.catalog.lake.s3.secret-access-key:",
    ]


def test_arguments_of_spark_submit_survive_a_shell_and_refer_to_variables() -> None:
    words = shlex.split(text("submit").replace("\\\n", " "))
    assert words[::2] == ["--conf"] * (len(words) // 2)
    settings = dict(word.split("=", 1) for word in words[1::2])
    assert settings["spark.sql.catalog.lake.jdbc.password"] == "$LAKE_JDBC_PASSWORD"
    assert settings.keys() == conf_elsewhere(POSTGRES).keys()


def test_a_dbt_profile_refers_to_variables() -> None:
    profile: dict[str, Any] = yaml.safe_load(text("dbt"))["sqb"]["outputs"]["dev"]
    assert (profile["method"], profile["schema"]) == ("session", "dev_me")
    told = profile["server_side_parameters"]
    assert told["spark.sql.catalog.lake.jdbc.password"] == "{{ env_var('LAKE_JDBC_PASSWORD') }}"
    assert told["spark.sql.catalog.lake"] == "org.apache.iceberg.spark.SparkCatalog"


def test_default_jars_are_named_by_coordinate_unless_their_files_are_given() -> None:
    conf = conf_elsewhere(POSTGRES)
    assert conf["spark.jars.packages"].count(":") == 8
    given = SparkSettings(
        catalog_name="lake",
        catalog_uri="sqlite:////l/c.db",
        warehouse="/l",
        jars=("/j/iceberg-spark-runtime-4.1_2.13-1.12.0.jar", "/j/sqlite-jdbc-3.jar"),
    )
    conf = conf_elsewhere(given)
    assert "spark.jars.packages" not in conf
    assert conf["spark.jars"].startswith("/j/iceberg")


@pytest.fixture(scope="module")
def answer(spark: Any) -> str:
    """A table in the shared lake."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.elsewhere")
    spark.sql("CREATE OR REPLACE TABLE lake.elsewhere.t AS SELECT 41 + 1 AS answer")
    return "elsewhere.t"


def test_spark_opens_the_lake_with_the_printed_defaults(
    answer: str, spark_settings: SparkSettings, tmp_path: Path
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(text("defaults", spark_settings))
    script = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').getOrCreate()\n"
        f"print(spark.table('{answer}').collect())\n"
    )
    home = java_home_for_spark(find_java(os.environ), cache_dir(os.environ))
    # pyspark leaves word of a Connect session in the environment
    plain = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**plain, "SPARK_CONF_DIR": str(tmp_path), "JAVA_HOME": home},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "[Row(answer=42)]\n", done.stderr[-2000:]


def test_pyiceberg_opens_the_lake_with_the_printed_file(
    answer: str, spark_settings: SparkSettings
) -> None:
    from pyiceberg.catalog import load_catalog

    properties = yaml.safe_load(text("pyiceberg", spark_settings))["catalog"]["lake"]
    catalog = load_catalog("lake", **properties)
    rows = catalog.load_table(answer).scan().to_arrow().to_pylist()
    catalog.engine.dispose()
    assert rows == [{"answer": 42}]
