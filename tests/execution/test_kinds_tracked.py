"""``tracked``: the rows of the query; only groups whose content changed are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kinds import built, counts, how, insert, refused, source

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof


@pytest.mark.parametrize("way", ["rows", "full"])
def test_changed_groups_are_replaced_and_vanished_ones_deleted(bench: Workbench, way: str) -> None:
    source(bench, "t", "g INT, v INT", "(1, 1)", "(1, 1)", "(2, 2)", "(3, 3)", "(NULL, 9)")
    bench.model("m", "MODEL (materialized tracked, group_key [g]);\nSELECT g, v FROM {raw}.t")
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE g = 2 OR g IS NULL")
    insert(bench, "t", "(3, 4)", "(NULL, 8)", "(4, NULL)")
    node = built(bench, refresh=way)
    assert how(node) == ("affected_key" if way == "rows" else "group_hash")
    assert counts(node) == (3, 2, 6)
    assert bench.rows("m") == [(None, 8), (1, 1), (1, 1), (3, 3), (3, 4), (4, None)]
    # one copy of two goes: the group is another
    bench.sql("DELETE FROM lake.{raw}.t WHERE g = 1")
    insert(bench, "t", "(1, 1)")
    assert counts(built(bench, refresh=way)) == (0, 1, 5)
    # the same rows in other files
    bench.sql("INSERT OVERWRITE lake.{raw}.t SELECT * FROM lake.{raw}.t")
    assert built(bench, refresh=way).status == "unchanged"
    assert bench.told() == {}
    bench.sql("DELETE FROM lake.{raw}.t WHERE true")
    assert counts(built(bench, refresh=way)) == (0, 5, 0)


@pytest.mark.parametrize(
    "kind",
    ["table", "append", "merge, unique_key g", "tracked, group_key g", "scd2, unique_key g"],
)
def test_every_kind_says_that_it_is_built_for_the_first_time(bench: Workbench, kind: str) -> None:
    source(bench, "t", "g INT, v INT", "(1, 1)")
    bench.model("m", f"MODEL (materialized {kind});\nSELECT g, v FROM {{raw}}.t")
    foreseen = bench.plan().nodes[0].strategy
    strategy = built(bench).strategy
    assert foreseen is not None
    assert strategy is not None
    assert (strategy.name, strategy.code) == ("full", "FIRST_BUILD")
    assert (foreseen.name, foreseen.code) == ("full", "FIRST_BUILD")
    strategy = built(bench, full_refresh=True).strategy
    assert strategy is not None
    assert (strategy.name, strategy.code) == ("full", "FORCED")


def test_a_new_definition_is_the_new_query(bench: Workbench) -> None:
    source(bench, "t", "g INT, v INT", "(1, 1)")
    bench.model("m", "MODEL (materialized tracked, group_key [g]);\nSELECT g, v FROM {raw}.t")
    built(bench)
    bench.model("m", "MODEL (materialized tracked, group_key [g]);\nSELECT g FROM {raw}.t")
    built(bench)
    assert bench.rows("m") == [(1,)]
    bench.model("m", "MODEL (materialized tracked, group_key [v]);\nSELECT g FROM {raw}.t")
    assert refused(bench)["code"] == "X007"


@pytest.mark.parametrize(
    ("kind", "value"), [("tracked, group_key g", "v"), ("append", "v"), ("append", "array(v)")]
)
def test_a_zero_keeps_its_sign_when_all_rows_are_compared(
    bench: Workbench, kind: str, value: str
) -> None:
    source(bench, "t", "g INT, v DOUBLE", "(1, 0.0D)", "(2, 1.0D)")
    bench.model("m", f"MODEL (materialized {kind});\nSELECT g, {value} AS v FROM {{raw}}.t")
    built(bench)
    insert(bench, "t", "(1, CAST('-0.0' AS DOUBLE))")
    built(bench, refresh="full")
    texts = bench.sql("SELECT CAST(v AS STRING) FROM lake.{dev}.m WHERE g = 1")
    assert sorted(text.strip("[]") for (text,) in texts) == ["-0.0", "0.0"]


MISTAKES = {
    "append": "SELECT v AS __w FROM {raw}.t",
    "tracked, group_key [k]": "SELECT k, v AS __N FROM {raw}.t",
    "scd2, unique_key [k], check_columns [k]": "SELECT k, v AS __w FROM {raw}.t",
    "merge, unique_key [k], deletes keep": "SELECT k, v AS __n FROM {raw}.t",
    "append, append_from [nope]": "SELECT v FROM {raw}.t",
    "scd2, unique_key [k], check_columns [nope]": "SELECT k, v FROM {raw}.t",
    "scd2, unique_key [k]": "SELECT k, map(1, v) AS x FROM {raw}.t",
    "merge, unique_key k, deletes keep": "SELECT k, array(CAST(v AS DOUBLE)) AS x FROM {raw}.t",
    "scd2, unique_key k": (
        "SELECT * FROM (SELECT k, v, current_date() AS d FROM {raw}.t) PIVOT (max(v) FOR v IN (1))"
    ),
}


def test_mistakes_are_told_before_anything_is_written(bench: Workbench) -> None:
    source(bench, "t", "k INT, v INT", "(1, 1)")
    for at, (kind, query) in enumerate(MISTAKES.items()):
        bench.model(f"m{at}", f"MODEL (materialized {kind});\n{query}")
    nodes = {node.name: node for node in bench.build().nodes}
    for at, kind in enumerate(MISTAKES):
        node = nodes[f"m{at}"]
        assert node.error is not None, kind
        assert node.error["code"] == ("X002" if " AS x FROM" in MISTAKES[kind] else "X007"), kind
        assert bench.project().catalog.head(bench.schema, f"m{at}") is None


@pytest.mark.parametrize("kind", ["scd2", "merge, deletes keep"])
def test_keys_are_told_apart_as_the_table_holds_them(bench: Workbench, kind: str) -> None:
    source(bench, "t", "s STRING, v INT", "('a', 1)", "('A', 1)")
    query = "SELECT s COLLATE UTF8_LCASE AS s, v FROM {raw}.t"
    bench.model("m", f"MODEL (materialized {kind}, unique_key [s]);\n{query}")
    built(bench)
    bench.sql("UPDATE lake.{raw}.t SET v = 2 WHERE s = 'a'")
    built(bench)
    rows = [("A", 1), ("a", 1), ("a", 2)] if kind == "scd2" else [("A", 1), ("a", 2)]
    assert bench.rows("m", "s, v") == rows


def test_groups_may_be_named_as_anything(bench: Workbench) -> None:
    source(bench, "t", "n INT, h0_0 INT, sqb_1 INT", "(1, 1, 1)", "(2, 2, 2)")
    keys = "n, h0_0, sqb_1"
    bench.model("m", f"MODEL (materialized tracked, group_key [{keys}]);\nSELECT * FROM {{raw}}.t")
    built(bench)
    insert(bench, "t", "(2, 2, 2)", "(3, 3, 3)")
    node = built(bench, refresh="full")
    assert (how(node), counts(node)) == ("group_hash", (2, 0, 4))
