"""Files and marks of deleted rows, as Spark and pyiceberg write them into manifests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_lakes import SmallLake, numbers

from sqb.lake.catalog import SqlCatalog
from sqb.lake.data_files import Files, files_of
from sqb.lake.metadata import read_document
from sqb.lake.versions import versions

# pyspark leaves the sockets of its results to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def history(location: str) -> list[str]:
    """The manifest lists of a table's versions, in the order of their commits."""
    document = read_document(location)
    found = versions(document)
    return [found[snapshot["snapshot-id"]].manifests for snapshot in document["snapshots"]]


def test_every_version_has_its_files_and_each_says_what_is_in_it(tmp_path: Path) -> None:
    lake = SmallLake(tmp_path)
    table = lake.ice.create_table("dev.t", numbers([]).schema)
    table.append(numbers([3, 1, 2]))
    table.append(numbers([7, 9]))
    found = files_of(history(table.metadata_location), 10)
    assert found is not None
    first, second = found
    assert [len(version.data) for version in found] == [1, 2]
    assert first.data[0] in second.data
    told = {
        (f.rows, f.sequence, f.low[1][0], f.high[1][0], f.nulls[1], f.size > 0) for f in second.data
    }
    assert told == {(3, 1, 1, 3, 0, True), (2, 2, 7, 9, 0, True)}
    assert second.deletes == ()


def test_more_files_than_asked_for_are_not_listed(tmp_path: Path) -> None:
    table = SmallLake(tmp_path).ice.create_table("dev.t", numbers([]).schema)
    for number in range(3):
        table.append(numbers([number]))
    assert files_of(history(table.metadata_location), 2) is None
    assert files_of(history(table.metadata_location), 3) is not None


def test_a_manifest_that_is_gone_is_an_error(tmp_path: Path) -> None:
    table = SmallLake(tmp_path).ice.create_table("dev.t", numbers([]).schema)
    table.append(numbers([1]))
    lists = history(table.metadata_location)
    Path(lists[0].removeprefix("file://")).unlink()
    with pytest.raises(FileNotFoundError):
        files_of(lists, 10)


@pytest.fixture
def files(
    spark: Any, spark_settings: Any, request: pytest.FixtureRequest
) -> Callable[..., list[Files]]:
    """Make a table of format 2 or 3 with rows 0 to 9 in two files and do things to it."""
    if spark_settings.catalog_type != "sql":
        pytest.skip("reads the catalog's own rows")
    catalog = SqlCatalog("lake", spark_settings.catalog_uri, spark_settings.warehouse)
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.files")

    def made(version: int, *statements: str, by: str = "", more: str = "") -> list[Files]:
        name = f"t{abs(hash(request.node.name)):x}"
        properties = ", ".join(
            f"'write.{w}.mode'='merge-on-read'" for w in ("delete", "update", "merge")
        )
        spark.sql(f"DROP TABLE IF EXISTS lake.files.{name}")
        spark.sql(
            f"CREATE TABLE lake.files.{name} (id INT, g INT) USING iceberg {by}"
            f" TBLPROPERTIES ('format-version'='{version}', {properties}{more})"
        )
        for start in (0, 5):
            spark.sql(
                f"INSERT INTO lake.files.{name} SELECT CAST(id AS INT), CAST(id % 2 AS INT)"
                f" FROM range({start}, {start + 5}, 1, 1)"
            )
        for statement in statements:
            spark.sql(statement.replace("{t}", f"lake.files.{name}"))
        head = catalog.head("files", name)
        assert head is not None
        found = files_of(history(head.location), 100)
        assert found is not None
        return found

    return made


def test_position_deletes_name_their_file(files: Callable[..., list[Files]]) -> None:
    _, before, after = files(2, "DELETE FROM {t} WHERE id = 7")
    assert before.data == after.data
    (mark,) = after.deletes
    assert mark.target in {file.path for file in after.data}
    assert mark.offset is None


def test_position_deletes_of_a_partition_name_no_file(files: Callable[..., list[Files]]) -> None:
    more = ", 'write.delete.granularity'='partition'"
    _, _, after = files(2, "DELETE FROM {t} WHERE id IN (2, 6)", by="PARTITIONED BY (g)", more=more)
    (mark,) = after.deletes
    assert mark.target is None
    assert mark.place in {file.place for file in after.data}
    assert len({file.place for file in after.data}) == 2


def test_delete_vectors_name_their_file_and_their_place(files: Callable[..., list[Files]]) -> None:
    _, _, first, second = files(
        3, "DELETE FROM {t} WHERE id IN (1, 7)", "DELETE FROM {t} WHERE id = 8"
    )
    assert {mark.target for mark in first.deletes} == {file.path for file in first.data}
    assert len({(mark.path, mark.offset) for mark in first.deletes}) == 2
    stays = set(first.deletes) & set(second.deletes)
    assert len(stays) == 1
    assert len(second.deletes) == 2
