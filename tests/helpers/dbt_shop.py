"""The sample dbt project ``tests/dbt/shop`` as a user has it: in a folder of its own, under git."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.sql import SqlCatalog

from sqb.spark.elsewhere import conf_elsewhere
from sqb.spark.settings import SparkSettings

SHOP = Path(__file__).parents[1] / "dbt" / "shop"
_VENV = Path(__file__).parents[2] / ".venv-dbt"

#: A port at which nothing listens: dbt can read a project, but not connect.
NOWHERE = 9


def dbt_executable() -> Path:
    """The dbt that tests run: ``SQB_TEST_DBT``, else the one that ``make`` installed."""
    named = os.environ.get("SQB_TEST_DBT")
    if named:
        assert os.access(named, os.X_OK), f"SQB_TEST_DBT={named}"
        return Path(named).absolute()
    found = _VENV / "bin" / "dbt"
    if not found.exists():
        pytest.skip("there is no .venv-dbt: `make install-dbt`")
    return found


def thrift_target(port: int, schema: str = "shop") -> dict[str, Any]:
    """A target of ``profiles.yml`` on a Spark thrift server of this machine."""
    return {
        "type": "spark",
        "method": "thrift",
        "host": "127.0.0.1",
        "port": port,
        "schema": schema,
        "threads": 2,
        "connect_retries": 0,
    }


def session_target(settings: SparkSettings, schema: str = "shop") -> dict[str, Any]:
    """A target whose Spark is in dbt's own process, with every setting in the profile."""
    conf = {
        **conf_elsewhere(settings),
        "spark.master": "local[2]",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.catalogImplementation": "in-memory",
    }
    return {
        "type": "spark",
        "method": "session",
        "host": "NA",
        "schema": schema,
        "threads": 1,
        "server_side_parameters": conf,
    }


class Shop:
    """One copy of the project, with its profiles beside it."""

    def __init__(self, folder: Path, targets: Mapping[str, Mapping[str, Any]]) -> None:
        self.root = folder / "shop"
        self.profiles = folder / "profiles"
        shutil.copytree(SHOP, self.root)
        # what `dbt deps` does with a local package
        shutil.copytree(self.root / "packages" / "money", self.root / "dbt_packages" / "money")
        self.profiles.mkdir()
        profile = {"target": next(iter(targets)), "outputs": targets}
        # JSON is YAML too
        (self.profiles / "profiles.yml").write_text(json.dumps({"shop": profile}, indent=1))
        self.environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("DBT_", "SHOP_", "SPARK_", "PYTHONPATH"))
        }
        self.environ["DBT_PROFILES_DIR"] = str(self.profiles)
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "shop")

    def git(self, *words: str) -> str:
        """What git prints, run in the project."""
        command = ["git", *words]
        ran = subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True)
        return ran.stdout

    def changed(self) -> list[str]:
        """What ``git status`` shows."""
        return self.git("status", "--porcelain").splitlines()

    def write(self, path: str, text: str) -> None:
        """Replace a file of the project."""
        (self.root / path).write_text(text)

    def replace(self, path: str, old: str, new: str) -> None:
        """Edit a file of the project."""
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))


def load_visits(
    uri: str, warehouse: str, rows: Iterable[tuple[int, int, str, datetime]], schema: str = "app"
) -> None:
    """Add rows to the table of the source ``app.visits``, which is made if it is not there."""
    columns = pa.schema(
        [
            ("visit_id", pa.int64()),
            ("customer_id", pa.int64()),
            ("page", pa.string()),
            ("loaded_at", pa.timestamp("us", tz="UTC")),
        ]
    )
    names = columns.names
    records = [dict(zip(names, row, strict=True)) for row in rows]
    catalog = SqlCatalog("lake", uri=uri, warehouse=warehouse)
    try:
        # PyHive enters `default` before anything else
        for namespace in ("default", schema):
            catalog.create_namespace_if_not_exists(namespace)
        table = catalog.create_table_if_not_exists(f"{schema}.visits", columns)
        table.append(pa.Table.from_pylist(records, schema=columns))
    finally:
        catalog.engine.dispose()


def visit(number: int, customer: int = 1, at: datetime | None = None) -> tuple[Any, ...]:
    """One row of the source."""
    return number, customer, f"/page/{number}", at or datetime.now(timezone.utc)
