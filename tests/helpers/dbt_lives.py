"""A dbt project on a real warehouse, planned and built by sqb as a user would."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbt_shop import Shop, load_visits, visit
from pyiceberg.catalog.sql import SqlCatalog

from sqb.dbt.plan import DbtPlan
from sqb.dbt.project import DbtProject, DbtResult
from sqb.dbt.request import Request
from sqb.planning.plan import PlannedNode


class Life:
    """One copy of the sample project.

    ``said`` is what dbt printed last, ``asked`` what sqb noted meanwhile.
    """

    def __init__(self, shop: Shop, dbt: Path, uri: str = "", warehouse: str = "") -> None:
        self.shop, self.uri, self.warehouse = shop, uri, warehouse
        shop.environ["DBT_EXECUTABLE"] = str(dbt)
        self.said = ""
        self.asked: list[str] = []
        if uri:
            load_visits(uri, warehouse, [visit(1), visit(2, 2)])

    def open(self, **request: Any) -> DbtProject:
        """The project as one command sees it."""
        self.asked = []
        return DbtProject(
            Request(**request),
            directory=self.shop.root,
            environ=self.shop.environ,
            listener=lambda event: self.asked.append(event.message or event.kind),
        )

    def plan(self, **request: Any) -> DbtPlan:
        """A plan, which touches no file of the project."""
        with self._untouched(), self.open(**request) as project:
            return project.plan()

    def build(self, **request: Any) -> DbtResult:
        """A build, which touches none either."""
        output = io.StringIO()
        with self._untouched(), self.open(**request) as project:
            result = project.build(output=output)
        self.said = output.getvalue()
        return result

    @contextlib.contextmanager
    def _untouched(self) -> Iterator[None]:
        before = self.shop.changed(), self.shop.git("diff")
        yield
        assert (self.shop.changed(), self.shop.git("diff")) == before

    def visits(self, *rows: tuple[Any, ...]) -> None:
        """Rows that someone loads into the source."""
        load_visits(self.uri, self.warehouse, rows)

    def sql(self, statement: str) -> list[list[str | None]]:
        """Someone else's statement, on dbt's own warehouse."""
        with self.open() as project:
            return [list(row) for row in project.asking().rows(statement)]

    def state(
        self, table: str = "_sqlbuild_fingerprints", schema: str = "shop"
    ) -> list[dict[str, Any]]:
        """The rows of a state table, oldest first."""
        catalog = SqlCatalog("lake", uri=self.uri, warehouse=self.warehouse)
        try:
            rows = catalog.load_table((schema, table)).scan().to_arrow().to_pylist()
        finally:
            catalog.engine.dispose()
        return sorted(rows, key=lambda row: str(row.get("ts") or row.get("observed_at")))


def short(name: str) -> str:
    """The name of a model, seed or snapshot without its package."""
    return name.rpartition(".")[2] if not name.startswith(("test.", "unit_test.")) else name


def runs(plan: DbtPlan) -> dict[str, str]:
    """What is handed to dbt beside tests, and why; a finer cause stands for its reason."""
    return {short(n.name): _why(n) for n in plan.nodes if n.action == "run"}


def blocked(plan: DbtPlan) -> dict[str, str]:
    """What can't run, and why."""
    return {short(n.name): n.reason for n in plan.nodes if n.action == "block"}


def checks(plan: DbtPlan) -> list[str]:
    """The tests that are handed to dbt."""
    return sorted(n.name.split(".")[2] for n in plan.tests if n.action == "run")


def ended(result: DbtResult) -> dict[str, str]:
    """How each node beside tests ended, those that were current aside."""
    return {
        short(n.name): n.status
        for n in result.build.nodes
        if n.status != "current" and not n.name.startswith(("test.", "unit_test."))
    }


def _why(node: PlannedNode) -> str:
    if node.reason == "identity_changed" and node.detail is not None:
        return f"{node.detail['kind']} {node.detail['name']}"
    return node.reason
