"""Upkeep beside real builds: Spark reads, time-travels and writes on whatever upkeep has left."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqb.api import Project
from sqb.lake.metadata import read_document, read_facts
from sqb.spark.session import SparkSettings
from sqb.upkeep.census import stamp_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "upkeep_life"


def project(folder: Path, spark: SparkSession) -> Project:
    return Project(folder, spark=spark)


@pytest.fixture
def folder(tmp_path: Path, spark_settings: SparkSettings) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "t.sql").write_text(f"SELECT id FROM {SCHEMA}_raw.src")
    (tmp_path / "models" / "u.sql").write_text("SELECT sum(id) AS total FROM t")
    (tmp_path / "sqlbuild_project.toml").write_text(
        f'[targets.dev]\nschema = "{SCHEMA}"\n[catalog]\nuri = "{spark_settings.catalog_uri}"\n'
        f'warehouse = "{spark_settings.warehouse}"\n[defaults]\nmaterialized = "table"\n'
        '[janitor]\nkeep_snapshots = 1\nreader_grace = "1m"\nretention_days = 0\n'
    )
    return tmp_path


def test_builds_and_upkeep_take_turns(
    folder: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    luck = random.Random(7)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{SCHEMA}_raw")
    spark.sql(f"CREATE TABLE lake.{SCHEMA}_raw.src (id INT) USING iceberg")
    later = [0.0]
    monkeypatch.setattr("sqb.upkeep.census.wall_clock", lambda: time.time() + later[0])
    for turn in range(1, 6):
        spark.sql(f"INSERT INTO lake.{SCHEMA}_raw.src VALUES ({turn})")
        later[0] = luck.choice((0.0, 3600.0))
        with project(folder, spark) as here:
            assert not here.build().failed
        with project(folder, spark) as here:
            if luck.random() < 0.5:
                later[0] = 3600.0
                here.upkeep.remove(here.upkeep.survey())
        with project(folder, spark) as here:
            assert not here.plan().work
            check(here, spark, turn)
    with project(folder, spark) as here:
        head = here.catalog.head(SCHEMA, "t")
        assert head is not None
        assert len(read_document(head.location)["snapshots"]) < 5
        dates = spark.sql(f"SELECT made_current_at FROM lake.{SCHEMA}.t.history").collect()
        assert len(dates) == len(read_document(head.location)["snapshot-log"]) >= 1
        # someone else writes, and the next build puts it right
        spark.sql(f"INSERT INTO lake.{SCHEMA}.t VALUES (100)")
        assert [n.status for n in here.build().nodes] == ["success", "current"]
        check(here, spark, 5)


def check(here: Project, spark: SparkSession, turn: int) -> None:
    rows = [row.id for row in spark.sql(f"SELECT id FROM lake.{SCHEMA}.t ORDER BY id").collect()]
    assert rows == list(range(1, turn + 1))
    heads = here.catalog.heads([SCHEMA])
    kept = {}
    for name in ("t", "u"):
        document = read_document(heads[SCHEMA, name].location)
        kept[name] = [s["snapshot-id"] for s in document["snapshots"]]
        for snapshot in kept[name]:
            spark.sql(f"SELECT * FROM lake.{SCHEMA}.{name} VERSION AS OF {snapshot}").collect()
    record = stamp_of(read_facts(heads[SCHEMA, "u"].location))
    assert record is not None
    assert record.pins["t"] in kept["t"]
