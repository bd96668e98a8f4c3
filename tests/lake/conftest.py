"""A lake in a temporary folder, opened by sqb and by pyiceberg at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqb.lake.catalog import Head, SqlCatalog
from sqb.lake.iceberg import open_iceberg

_numbers = itertools.count(1)


@pytest.fixture
def lake(tmp_path: Path, catalog_kind: str, request: pytest.FixtureRequest) -> SqlCatalog:
    """A SQL catalog of its own, on the database that the run of the suite is about."""
    uri = f"sqlite:///{tmp_path}/lake/catalog.db"
    if catalog_kind == "postgres":
        uri = request.getfixturevalue("postgres_server").uri(f"t{next(_numbers)}")
    return SqlCatalog("lake", uri, str(tmp_path / "lake"))


@pytest.fixture
def ice(lake: SqlCatalog) -> Any:
    """pyiceberg's view of the same catalog, with a namespace ``db``."""
    lake.ensure_namespace("db")
    catalog = open_iceberg("lake", lake.uri, lake.warehouse)
    yield catalog
    catalog.close()


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
