"""A project in a folder of its own, on the shared session's lake, in schemas of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqb.api import Project
from sqb.execution.events import BuildResult
from sqb.planning.plan import Plan, PlanWarning
from sqb.spark.session import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count(1)

#: Warnings that tell of an error inside a refresh by rows, or while it was foreseen.
ROW_ERRORS = ("S313", "S314")


class Workbench:
    """A user at work: writes files, loads sources, builds, looks at tables."""

    def __init__(self, root: Path, spark: SparkSession, settings: SparkSettings) -> None:
        number = next(_numbers)
        self.root, self.spark, self.settings = root, spark, settings
        self.schema, self.raw = f"dev{number}", f"raw{number}"
        self.environ: dict[str, str] = {k: v for k, v in os.environ.items() if k != "SQB_TARGET"}
        self.may_warn = False
        self.write("sqlbuild_project.toml", self.toml())
        self.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{self.raw}")

    def toml(self, more: str = "") -> str:
        return (
            f'name = "bench"\n[targets.dev]\nschema = "{self.schema}"\n[catalog]\n'
            f'type = "{self.settings.catalog_type}"\nuri = "{self.settings.catalog_uri}"\n'
            + (f'warehouse = "{self.settings.warehouse}"\n' if self.settings.warehouse else "")
            + '[defaults]\nmaterialized = "table"\n'
            + more
        )

    def write(self, path: str, text: str) -> None:
        """Write a project file; ``{raw}`` stands for the schema of the sources."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("{raw}", self.raw))

    def model(self, name: str, text: str) -> None:
        self.write(f"models/{name}.sql", text)

    def project(self, **options: object) -> Project:
        return Project(self.root, spark=self.spark, environ=self.environ, **options)  # type: ignore[arg-type]

    def plan(self, *select: str, **options: object) -> Plan:
        plan = self.project().plan(select, **options)  # type: ignore[arg-type]
        self._heed(plan.warnings)
        return plan

    def build(self, *select: str, **options: object) -> BuildResult:
        result = self.project().build(select, **options)  # type: ignore[arg-type]
        self._heed(warning for node in result.nodes for warning in node.warnings)
        return result

    def _heed(self, warnings: Iterable[PlanWarning]) -> None:
        """An error inside a refresh by rows is a mistake, although users get a right table."""
        found = [warning for warning in warnings if warning.code in ROW_ERRORS]
        assert self.may_warn or not found, found

    def told(self, *select: str, **options: object) -> dict[str, tuple[str, str]]:
        """Build, and say of every node that did something: (status, reason)."""
        result = self.build(*select, **options)
        for node in result.nodes:
            if node.status == "failed" and not options.get("may_fail"):
                raise AssertionError(node.error)
        return {
            n.name: (n.status, n.reason)
            for n in result.nodes
            if (n.status, n.reason) != ("current", "no_change")
        }

    def sql(self, text: str) -> list[tuple[object, ...]]:
        text = text.replace("{raw}", self.raw).replace("{dev}", self.schema)
        return [tuple(row) for row in self.spark.sql(text).collect()]

    def rows(self, name: str, columns: str = "*") -> list[tuple[object, ...]]:
        return sorted(
            self.sql(f"SELECT {columns} FROM lake.{self.schema}.{name}"),
            key=lambda row: tuple((v is not None, v) for v in row),
        )


@pytest.fixture
def bench(tmp_path: Path, spark: SparkSession, spark_settings: SparkSettings) -> Workbench:
    return Workbench(tmp_path, spark, spark_settings)


@pytest.fixture(scope="module")
def shared_bench(
    tmp_path_factory: pytest.TempPathFactory, spark: SparkSession, spark_settings: SparkSettings
) -> Workbench:
    """One project for all tests of a module."""
    return Workbench(tmp_path_factory.mktemp("bench"), spark, spark_settings)


@pytest.fixture
def shop(bench: Workbench) -> Workbench:
    """raw.orders -> stg (view) -> totals (table) -> top (table), and a seed joined in."""
    bench.sql("CREATE TABLE lake.{raw}.orders (id INT, customer STRING, amount INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (1, 'a', 10), (2, 'b', 20), (3, 'a', 5)")
    bench.sql("CREATE TABLE lake.{raw}.events (id INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.events VALUES (7)")
    bench.write("seeds/names.csv", "customer,name\na,Anna\nb,Bert\n")
    bench.model("stg", "MODEL (materialized view);\nSELECT id, customer, amount FROM {raw}.orders")
    bench.model(
        "totals",
        "SELECT s.customer, n.name, sum(s.amount) AS total\n"
        "FROM stg AS s JOIN names AS n ON n.customer = s.customer\n"
        "GROUP BY s.customer, n.name",
    )
    bench.model("top", "SELECT name, total FROM totals WHERE total > 10")
    bench.model("counted", "SELECT count(*) AS n FROM {raw}.events")
    return bench
