"""A lake in a temporary folder, opened by sqb and by pyiceberg at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqb.lake.catalog import Head, SqlCatalog


@pytest.fixture
def lake(tmp_path: Path) -> SqlCatalog:
    return SqlCatalog("lake", f"sqlite:///{tmp_path}/lake/catalog.db", str(tmp_path / "lake"))


@pytest.fixture
def ice(lake: SqlCatalog) -> Any:
    """pyiceberg's view of the same catalog, with a namespace ``db``."""
    from pyiceberg.catalog.sql import SqlCatalog as IceCatalog

    lake.ensure_namespace("db")
    catalog = IceCatalog("lake", uri=lake.uri, warehouse=lake.warehouse)
    yield catalog
    catalog.engine.dispose()


@pytest.fixture
def rows() -> Callable[..., Any]:
    """Arrow rows (id, s) with the given ids."""
    import pyarrow as pa

    def make(*ids: int) -> Any:
        texts = pa.array([f"s{i}" for i in ids], pa.string())
        return pa.table({"id": pa.array(ids, pa.int64()), "s": texts})

    return make


@pytest.fixture
def target(lake: SqlCatalog, ice: Any, rows: Callable[..., Any]) -> Head:
    """The table ``db.t`` with ids 1 and 2."""
    table = ice.create_table("db.t", rows().schema)
    table.append(rows(1, 2))
    head = lake.head("db", "t")
    assert head is not None
    return head


@pytest.fixture
def ids(ice: Any) -> Callable[[str], list[int]]:
    def read(name: str) -> list[int]:
        return sorted(ice.load_table(name).scan().to_arrow()["id"].to_pylist())

    return read


@pytest.fixture
def files(tmp_path: Path) -> Callable[[], set[str]]:
    """Every file below the lake, the catalog aside."""

    def walk() -> set[str]:
        found = (tmp_path / "lake").rglob("*")
        return {str(p) for p in found if p.is_file() and not p.name.startswith("catalog.db")}

    return walk
