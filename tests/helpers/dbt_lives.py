"""A dbt project on a real warehouse, planned and built from the command line as a user would."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
from dbt_shop import Shop, load_visits, visit
from pyiceberg.catalog.sql import SqlCatalog

from sqb.dbt.project import DbtProject
from sqb.dbt.request import Request

_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Told:
    """What a command answered: its exit code, its document, and all that it and dbt said."""

    code: int
    document: dict[str, Any]
    said: str

    @property
    def dbt_code(self) -> int | None:
        """dbt's own exit code; None if it was not started."""
        code: int | None = self.document["dbt"]["exit_code"]
        return code

    @property
    def error(self) -> dict[str, Any]:
        """Why nothing was done at all."""
        assert self.code == 2, self
        error: dict[str, Any] = self.document["error"]
        return error

    def node(self, name: str) -> dict[str, Any]:
        """The node whose last part is the name."""
        (found,) = [n for n in self.document["nodes"] if short(n["name"]) == name]
        return dict(found)

    def doing(self, action: str) -> list[dict[str, Any]]:
        """The nodes to which this happens, tests aside."""
        nodes = self.document["nodes"]
        return [n for n in nodes if n["action"] == action and n["type"] != "dbt_test"]


class Life:
    """One copy of the sample project."""

    def __init__(self, shop: Shop, dbt: Path, uri: str = "", warehouse: str = "") -> None:
        self.shop, self.uri, self.warehouse = shop, uri, warehouse
        shop.environ["DBT_EXECUTABLE"] = str(dbt)
        if uri:
            load_visits(uri, warehouse, [visit(1), visit(2, 2)])

    @property
    def environ(self) -> dict[str, str]:
        """What a process of sqb in the project sees."""
        return {**self.shop.environ, "PYTHONPATH": str(_ROOT / "src")}

    def command(self, *words: str) -> list[str]:
        """The words of a process of sqb."""
        return [sys.executable, "-m", "sqb", *words]

    def sqb(self, *words: str) -> Told:
        """A command in the dbt project, which touches no file that git knows of."""
        with self._untouched():
            ran = subprocess.run(
                self.command(*words, "--json"),
                cwd=self.shop.root,
                env=self.environ,
                capture_output=True,
                text=True,
                check=False,
            )
        assert ran.stdout, ran.stderr
        document = json.loads(ran.stdout)
        if words[0] == "dbt" and "error" not in document:
            name = "build" if words[1] == "run" else words[1]
            rules = json.loads((_ROOT / f"docs/json/dbt-{name}.schema.json").read_text())
            jsonschema.validate(document, rules)
        return Told(ran.returncode, document, ran.stderr)

    def plan(self, *words: str) -> Told:
        """``sqb dbt plan``"""
        return self.sqb("dbt", "plan", *words)

    def build(self, *words: str) -> Told:
        """``sqb dbt build``"""
        return self.sqb("dbt", "build", *words)

    @contextlib.contextmanager
    def _untouched(self) -> Iterator[None]:
        before = self.shop.changed(), self.shop.git("diff")
        yield
        assert (self.shop.changed(), self.shop.git("diff")) == before

    def open(self, **request: Any) -> DbtProject:
        """The project as one command sees it."""
        return DbtProject(Request(**request), directory=self.shop.root, environ=self.shop.environ)

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


def runs(told: Told) -> dict[str, str]:
    """What is handed to dbt beside tests, and why; a finer cause stands for its reason."""
    return {short(n["name"]): _why(n) for n in told.doing("run")}


def blocked(told: Told) -> dict[str, str]:
    """What can't run, and why."""
    return {short(n["name"]): n["reason"] for n in told.doing("block")}


def checks(told: Told) -> list[str]:
    """The tests that are handed to dbt."""
    nodes = told.document["nodes"]
    return sorted(
        n["name"].split(".")[2] for n in nodes if n["type"] == "dbt_test" and n["action"] == "run"
    )


def ended(told: Told) -> dict[str, str]:
    """How each node beside tests ended, those that were current aside."""
    return {
        short(n["name"]): n["status"]
        for n in told.document["nodes"]
        if n["status"] != "current" and n["type"] != "dbt_test"
    }


def idle(told: Told) -> bool:
    """Was nothing to do, and nobody asked for anything?"""
    return (told.code, runs(told), checks(told), told.said) == (0, {}, [], "")


def _why(node: dict[str, Any]) -> str:
    if node["reason"] == "identity_changed" and node["detail"] is not None:
        return f"{node['detail']['kind']} {node['detail']['name']}"
    return str(node["reason"])
