"""The same short life of a project on each catalog, in each publish mode, through Spark."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from sqb.api import Project
from sqb.lake.iceberg import open_iceberg

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqb.spark.session import SparkSettings

SERVERS = {
    "pglake": ("postgres_server", "alias"),
    "restlake": ("rest_server", "alias"),
    "branchlake": ("branch_server", "branch"),
    "replacelake": ("replace_server", "replace"),
}
#: All of them when the run is about catalogs, else the two that have least in common.
TESTED = [*SERVERS] if "SQB_TEST_CATALOG" in os.environ else ["pglake", "branchlake"]


class Life:
    """A project on one of the other catalogs of the shared session."""

    def __init__(
        self, root: Path, spark: SparkSession, settings: SparkSettings, name: str = "life"
    ) -> None:
        self.root, self.spark, self.lake = root, spark, settings.catalog_name
        self.schema, raw = f"{name}_{self.lake}", f"raw_{name}_{self.lake}"
        self.source = f"{self.lake}.{raw}.t"
        warehouse = f'warehouse = "{settings.warehouse}"\n' if settings.warehouse else ""
        self.write(
            "sqlbuild_project.toml",
            f'[targets.dev]\nschema = "{self.schema}"\n[catalog]\nname = "{self.lake}"\n'
            f'type = "{settings.catalog_type}"\nuri = "{settings.catalog_uri}"\n{warehouse}'
            '[defaults]\nmaterialized = "table"\n',
        )
        self.sql(f"CREATE NAMESPACE IF NOT EXISTS {self.lake}.{raw}")
        self.sql(f"CREATE TABLE {self.source} (id INT, v STRING) USING iceberg")
        self.sql(f"INSERT INTO {self.source} VALUES (1, 'a'), (2, 'b')")
        self.write("models/v.sql", f"MODEL (materialized view);\nSELECT * FROM {raw}.t")
        self.write("models/t.sql", "SELECT id, v FROM v")
        self.write("seeds/s.csv", "id,name\n1,x\n")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self.spark.sql(text).collect()]

    def rows(self, name: str = "t") -> list[tuple[Any, ...]]:
        return sorted(self.sql(f"SELECT * FROM {self.lake}.{self.schema}.{name}"))

    def project(self) -> Project:
        return Project(self.root, spark=self.spark, environ=dict(os.environ))

    def build(self) -> dict[str, tuple[str, str]]:
        with self.project() as project:
            result = project.build()
            for node in result.nodes:
                assert node.error is None, node.error
            stage = f"{self.schema}__sqb_stage"
            left = project.catalog.namespace_properties(stage)
            assert project.catalog.heads([stage]) == {}
            assert [key for key in left if key.startswith("sqb.")] == []
            assert project.build().run_id is None
        current = ("current", "no_change")
        nodes = result.nodes
        return {n.name: (n.status, n.reason) for n in nodes if (n.status, n.reason) != current}


@pytest.mark.parametrize("catalog", TESTED)
def test_a_project_lives_on_every_catalog(
    catalog: str,
    tmp_path: Path,
    spark: SparkSession,
    settings_of_others: dict[str, SparkSettings],
    request: pytest.FixtureRequest,
) -> None:
    server, mode = SERVERS[catalog]
    request.getfixturevalue(server)
    life = Life(tmp_path, spark, settings_of_others[catalog])
    first = ("success", "first_run")
    assert life.build() == {"v": first, "t": first, "s": first}
    assert life.rows() == [(1, "a"), (2, "b")]
    # other rows, same columns
    life.sql(f"INSERT INTO {life.source} VALUES (3, 'c')")
    assert life.build()["t"] == ("success", "upstream_changed")
    assert life.rows() == [(1, "a"), (2, "b"), (3, "c")]
    with life.project() as project:
        assert project.plan().publish_mode == project.catalog.mode == mode
    # other columns, partitions and order
    life.write(
        "models/t.sql",
        "MODEL (partitioned_by [bucket(2, id)], sorted_by [v]);\nSELECT id, v, id * 2 AS w FROM v",
    )
    assert life.build() == {"t": ("success", "query_changed")}
    assert life.rows() == [(1, "a", 2), (2, "b", 4), (3, "c", 6)]
    with life.project() as project:
        head = project.catalog.head(life.schema, "t")
        assert head is not None
        facts = project.facts.get(head.location)
        assert facts.partitioning == ("bucket(2, id)",)
        assert facts.sort_order == ("v ASC NULLS FIRST",)
    # a table becomes a view, which some catalogs can't do at once
    life.write("models/t.sql", "MODEL (materialized view);\nSELECT id FROM v WHERE id < 3")
    with life.project() as project:
        codes = {warning.code for warning in project.plan().warnings}
        assert ("S308" in codes) == (catalog != "pglake")
    assert life.build()["t"][0] == "success"
    assert life.rows() == [(1,), (2,)]
    assert {row["node_name"] for row in life.project().history()} == {"v", "t", "s"}


@pytest.mark.usefixtures("branch_server")
def test_a_branch_that_is_written_at_the_same_moment_fails_no_build(
    tmp_path: Path,
    spark: SparkSession,
    settings_of_others: dict[str, SparkSettings],
    rest_server: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Branches share the sequence numbers of their table, and Spark gives up when one is taken."""
    life = Life(tmp_path, spark, settings_of_others["branchlake"], "busy")
    life.build()
    ice: Any = open_iceberg("direct", rest_server, "", "rest")
    happened: list[str] = []

    def other_branch(_: str, path: str, body: bytes) -> None:
        if happened or f"/{life.schema}/tables/t" not in path or b'"add-snapshot"' not in body:
            return
        happened.append(path)
        table = ice.load_table((life.schema, "t"))
        at = table.current_snapshot().snapshot_id
        table.manage_snapshots().create_branch(at, "theirs").commit()
        table.append(table.scan().to_arrow(), branch="theirs")

    monkeypatch.setattr("proxy.MEANWHILE", [other_branch])
    life.sql(f"INSERT INTO {life.source} VALUES (3, 'c')")
    assert life.build()["t"] == ("success", "upstream_changed")
    assert happened
    assert life.rows() == [(1, "a"), (2, "b"), (3, "c")]
    refs = ice.load_table((life.schema, "t")).metadata.refs
    assert sorted(refs) == ["main", "theirs"]
    ice._session.close()
