"""Small files are packed by the build that has Spark running; nobody below becomes stale."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from small_lakes import SmallLake, numbers

from sqb.api import Project
from sqb.execution.events import Event
from sqb.lake.catalog import Head
from sqb.lake.metadata import read_document, read_facts
from sqb.project.config import JanitorConfig
from sqb.spark.session import SparkSettings
from sqb.upkeep.compaction import Candidate, choose, counted, files_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MB = 1 << 20


def chosen(*files: tuple[str, int, int], **settings: int | bool) -> list[str]:
    known = JanitorConfig(**{"compact_min_files": 10, "compact_target_mb": 1, **settings})  # type: ignore[arg-type]
    candidates = [Candidate(Head("dev", name, "table", ""), n, size) for name, n, size in files]
    return [c.head.name for c in choose(candidates, known)]


def test_what_is_packed() -> None:
    assert chosen(("few", 9, 0), ("many", 10, 0)) == ["many"]
    assert chosen(("large", 10, 8 * MB), ("small", 10, 3 * MB)) == ["small"]
    assert chosen(*((f"t{n}", 10 + n, 0) for n in range(5))) == ["t4", "t3", "t2"]
    assert chosen(("many", 100, 0), compact=False) == []
    assert chosen(("empty", 0, 0)) == []


@pytest.mark.parametrize(("partitions", "expected"), [(5, True), (6, False)])
def test_every_partition_keeps_a_file(partitions: int, expected: bool) -> None:
    candidate = Candidate(Head("dev", "t", "table", ""), 10, 0, partitions)
    assert bool(choose([candidate], JanitorConfig(compact_min_files=10))) is expected


def test_partitions_are_counted_from_the_manifests(lake: SmallLake) -> None:
    table = lake.ice.create_table("dev.parted", numbers([]).schema)
    with table.update_spec() as spec:
        spec.add_identity("id")
    table.append(numbers([1, 2]))
    table.append(numbers([2, 3]))
    head = lake.head("parted")
    candidate = counted(files_of(head, read_document(head.location)))
    assert (candidate.files, candidate.partitions) == (4, 3)


def test_a_scattered_table_is_packed_by_the_next_build(
    tmp_path: Path, spark: SparkSession, spark_settings: SparkSettings
) -> None:
    schema = "packed"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "scattered.sql").write_text(
        "MODEL (table_properties (write.distribution-mode 'none'));\n"
        "SELECT /*+ REPARTITION(8) */ id FROM range(16)"
    )
    (tmp_path / "models" / "reader.sql").write_text("SELECT sum(id) AS s FROM scattered")
    toml = (
        f'[targets.dev]\nschema = "{schema}"\n[catalog]\nuri = "{spark_settings.catalog_uri}"\n'
        f'warehouse = "{spark_settings.warehouse}"\n[defaults]\nmaterialized = "table"\n[janitor]\n'
    )
    config = tmp_path / "sqlbuild_project.toml"
    config.write_text(f"{toml}compact = false\n")
    project = Project(tmp_path, spark=spark)
    assert not project.build().failed
    before = project.catalog.head(schema, "scattered")
    assert before is not None
    count = files_of(before, read_document(before.location)).files
    if count < 4:
        pytest.fail(f"the table has only {count} files")
    config.write_text(f"{toml}compact_min_files = 4\n")
    project = Project(tmp_path, spark=spark)
    told: list[Event] = []
    result = project.build(force=True, select=["scattered"], listener=told.append)
    assert not result.failed
    assert [e.message for e in told if e.kind == "note"] == []
    after = project.catalog.head(schema, "scattered")
    assert after is not None
    assert files_of(after, read_document(after.location)).files == 1
    old, new = read_facts(before.location), read_facts(after.location)
    assert old.data_snapshot_id == new.data_snapshot_id != new.snapshot_id
    assert old.stamp == new.stamp
    assert old.properties == new.properties
    again = Project(tmp_path, spark=spark)
    assert not again.plan().work
    assert [tuple(r) for r in spark.sql(f"SELECT s FROM lake.{schema}.reader").collect()] == [
        (120,)
    ]
    rows = spark.sql(f"SELECT count(*), sum(id) FROM lake.{schema}.scattered").collect()
    assert [tuple(r) for r in rows] == [(16, 120)]
    assert not project.catalog.heads([f"{schema}__sqb_stage"])
    # an edit is built on top of it
    (tmp_path / "models" / "scattered.sql").write_text("SELECT id FROM range(3)")
    result = Project(tmp_path, spark=spark).build()
    assert [(n.name, n.status) for n in result.nodes] == [
        ("scattered", "success"),
        ("reader", "success"),
    ]
