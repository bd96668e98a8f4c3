"""Models of sqb's own that read what dbt builds: what a reference means, and what it is worth."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.compile.compiler import compile_project
from sqb.compile.nodes import Compiled, DbtRefs
from sqb.dbt.border import refs_of
from sqb.dbt.nodes import DbtNode
from sqb.errors import SqbError
from sqb.project.config import load_config
from sqb.project.layout import read_files


def node(kind: str, name: str, materialized: str = "", *parents: str) -> DbtNode:
    unique_id = f"{kind}.shop.{name}"
    relation = None if materialized == "ephemeral" else f"dev.{name}"
    return DbtNode(
        unique_id,
        name,
        kind,
        "shop",
        f"{name}.sql",
        materialized,
        "dev",
        name,
        relation,
        parents=parents,
    )


NODES = {
    n.unique_id: n
    for n in (
        node("source", "raw"),
        node("seed", "codes", "seed"),
        node("model", "stg", "view", "source.shop.raw", "seed.shop.codes"),
        node("model", "totals", "ephemeral", "model.shop.stg"),
        node("model", "fct", "table", "model.shop.stg"),
        node("model", "top", "view", "model.shop.fct"),
        node("snapshot", "history", "snapshot", "model.shop.stg"),
    )
}


def compiled(folder: Path, sql: str) -> Compiled:
    (folder / "sqlbuild_project.toml").write_text('name = "own"\n[targets.dev]\nschema = "own"\n')
    (folder / "models").mkdir()
    (folder / "models" / "report.sql").write_text(sql)
    config = load_config(folder, target=None, cli_vars={}, environ={})

    def find(wanted: object) -> DbtRefs:
        return refs_of(wanted, NODES)  # type: ignore[arg-type]

    return compile_project(config, read_files(folder), {}, None, find)


def test_a_reference_is_a_source_and_views_are_seen_through(tmp_path: Path) -> None:
    found = compiled(
        tmp_path,
        'SELECT * FROM __dbt_ref("shop", "top") t JOIN __dbt_ref("shop", "history") AS h ON TRUE',
    )
    assert found.parents["report"] == ("model.shop.top", "snapshot.shop.history")
    assert {n: s.through for n, s in found.sources.items()} == {
        "model.shop.top": ("model.shop.fct",),
        "model.shop.fct": None,
        "snapshot.shop.history": None,
    }
    top = found.sources["model.shop.top"]
    assert (top.namespace, top.table) == ("dev", "top")


def test_a_view_over_a_view_rests_on_all_tables_below() -> None:
    found = refs_of([("shop", "stg")], NODES)
    assert set(found.sources) == {"model.shop.stg", "source.shop.raw", "seed.shop.codes"}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('__dbt_ref("shop", "nothing")', "there is no node `nothing` in the dbt package `shop`"),
        ('__dbt_ref("shop", "totals")', "`totals` is ephemeral, not a relation"),
        ('__dbt_ref("shop")', "takes two quoted names"),
        ("__dbt_ref(shop, fct)", "takes two quoted names"),
        ('__dbt_ref("shop" "fct")', "takes two quoted names"),
    ],
)
def test_a_reference_that_means_nothing_is_told(tmp_path: Path, call: str, words: str) -> None:
    with pytest.raises(SqbError) as caught:
        compiled(tmp_path, f"SELECT 1 AS one\nFROM {call}")
    assert (caught.value.code, caught.value.file) == ("P005", "models/report.sql")
    assert caught.value.line == 2
    assert words in caught.value.message
