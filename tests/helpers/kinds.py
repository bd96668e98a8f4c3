"""Models of a kind at work: build one, say how it ended, and how each of its steps came about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.execution.events import NodeResult

COPY_ON_WRITE = (
    " USING iceberg TBLPROPERTIES ('write.delete.mode'='copy-on-write',"
    "'write.update.mode'='copy-on-write','write.merge.mode'='copy-on-write')"
)


def source(bench: Workbench, name: str, columns: str, *rows: str) -> None:
    """A table of someone else."""
    bench.sql(f"CREATE TABLE lake.{{raw}}.{name} ({columns}){COPY_ON_WRITE}")
    insert(bench, name, *rows)


def insert(bench: Workbench, name: str, *rows: str) -> None:
    if rows:
        bench.sql(f"INSERT INTO lake.{{raw}}.{name} VALUES {', '.join(rows)}")


def built(bench: Workbench, name: str = "m", **options: Any) -> NodeResult:
    """Build everything; how one model ended. It must not have failed."""
    result = bench.build(**options)
    node = next(n for n in result.nodes if n.name == name)
    assert node.status in ("success", "unchanged", "current"), node.error
    return node


def refused(bench: Workbench, name: str = "m", **options: Any) -> dict[str, Any]:
    """Build everything; the error of a model that must fail."""
    result = bench.build(**options)
    node = next(n for n in result.nodes if n.name == name)
    assert node.status == "failed", node
    assert node.error is not None
    return dict(node.error)


def counts(node: NodeResult) -> tuple[int | None, int | None, int | None]:
    """Rows that came, went and are there."""
    assert node.rows is not None
    return node.rows.inserted, node.rows.deleted, node.rows.total


def how(node: NodeResult) -> str:
    """The name of the strategy."""
    assert node.strategy is not None
    return node.strategy.name
