"""``merge``: the rows of the query by a unique key; with ``deletes keep`` what vanished stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kinds import built, counts, how, insert, refused, source

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof

PLAIN = "SELECT id, amount * 2 AS twice FROM {raw}.t WHERE amount > 0"


def merged(bench: Workbench, sql: str = PLAIN, header: str = "unique_key [id]") -> None:
    source(bench, "t", "id INT, amount INT", "(1, 10)", "(2, 20)", "(3, 30)")
    bench.model("m", f"MODEL (materialized merge, {header});\n{sql}")


def test_changed_keys_are_replaced_and_vanished_ones_deleted(bench: Workbench) -> None:
    merged(bench)
    assert counts(built(bench)) == (3, 0, 3)
    bench.sql("UPDATE lake.{raw}.t SET amount = 25 WHERE id = 2")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    insert(bench, "t", "(4, 40)")
    node = built(bench, refresh="rows")
    assert (how(node), counts(node)) == ("affected_key", (2, 2, 3))
    assert bench.rows("m") == [(2, 50), (3, 60), (4, 80)]
    bench.sql("DELETE FROM lake.{raw}.t WHERE true")
    assert counts(built(bench)) == (0, 3, 0)
    assert bench.told() == {}


def test_a_key_that_is_null_or_there_twice_is_refused_before_anything_is_written(
    bench: Workbench,
) -> None:
    merged(bench)
    insert(bench, "t", "(1, 11)")
    first = refused(bench)
    assert first["code"] == "X007"
    assert "id = 1 (2 rows)" in str(first["message"])
    assert bench.project().catalog.head(bench.schema, "m") is None
    bench.sql("DELETE FROM lake.{raw}.t WHERE amount = 11")
    built(bench)
    before = bench.rows("m")
    for row, told in (("(2, 7)", "id = 2 (2 rows)"), ("(NULL, 7)", "id = NULL (1 row)")):
        insert(bench, "t", row)
        error = refused(bench, refresh="rows")
        assert (error["code"], told in str(error["message"])) == ("X007", True), error
        assert bench.rows("m") == before
        bench.sql("DELETE FROM lake.{raw}.t WHERE amount = 7")
    # the key moves: what held it before gives it up in the same step
    bench.sql("UPDATE lake.{raw}.t SET id = CASE id WHEN 1 THEN 2 WHEN 2 THEN 1 ELSE id END")
    built(bench, refresh="rows")
    assert bench.rows("m") == [(1, 40), (2, 20), (3, 60)]


def test_kept_rows_stay_and_only_keys_that_come_are_markers(bench: Workbench) -> None:
    sql = "SELECT t.id, t.amount, c.name FROM {raw}.t AS t JOIN {raw}.c AS c ON c.k = t.id % 2"
    merged(bench, sql, "unique_key [id], deletes keep")
    source(bench, "c", "k INT, name STRING", "(0, 'even')", "(1, 'odd')")
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    node = built(bench, refresh="rows")
    assert (node.status, counts(node)) == ("unchanged", (0, 0, 3))
    # another row of the same join key: the kept one must not go with it
    bench.sql("UPDATE lake.{raw}.c SET name = 'uneven' WHERE k = 1")
    node = built(bench, refresh="rows")
    assert bench.rows("m") == [(1, 10, "odd"), (2, 20, "even"), (3, 30, "uneven")]
    assert counts(node) == (1, 1, 3)
    insert(bench, "t", "(1, 99)")
    built(bench)
    assert bench.rows("m")[0] == (1, 99, "uneven")
    bench.sql("DELETE FROM lake.{raw}.t WHERE true")
    built(bench, force=True)
    assert len(bench.rows("m")) == 3


@pytest.mark.parametrize("row", ["(2, 20)", "(2, 21)"])
def test_a_key_that_comes_twice_is_refused_also_where_rows_are_kept(
    bench: Workbench, row: str
) -> None:
    merged(bench, header="unique_key [id], deletes keep")
    built(bench)
    before = bench.rows("m")
    insert(bench, "t", row)
    assert refused(bench, refresh="rows")["code"] == "X007"
    assert bench.rows("m") == before


def test_kept_rows_are_never_rebuilt_by_our_own_decision(bench: Workbench) -> None:
    merged(bench, header="unique_key [id], deletes keep")
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    built(bench, refresh="full")
    assert len(bench.rows("m")) == 3
    bench.sql("INSERT INTO lake.{dev}.m VALUES (77, 7)")
    insert(bench, "t", "(4, 40)")
    error = refused(bench)
    assert error["code"] == "X008"
    assert "--full-refresh" in str(error["help"])
    assert "3 rows" in str(error["help"])
    assert len(bench.rows("m")) == 4
    built(bench, full_refresh=True)
    assert bench.rows("m") == [(2, 40), (3, 60), (4, 80)]
    # becoming a plain table would drop it too
    bench.model("m", PLAIN)
    assert refused(bench)["code"] == "X008"
    bench.sql("DROP TABLE lake.{dev}.m")
    bench.model("m", f"MODEL (materialized merge, unique_key [id], deletes keep);\n{PLAIN}")
    node = built(bench)
    assert [w.code for w in node.warnings] == ["S310"]


def test_a_new_definition_is_the_new_query_unless_it_goes_forward(bench: Workbench) -> None:
    merged(bench)
    built(bench)
    other = PLAIN.replace("* 2", "* 3")
    bench.model("m", f"MODEL (materialized merge, unique_key [id]);\n{other}")
    built(bench)
    assert bench.rows("m") == [(1, 30), (2, 60), (3, 90)]
    header = "MODEL (materialized merge, unique_key [id], replay_on_change forward);\n"
    bench.model("m", header + PLAIN)
    assert [w.code for w in bench.plan().warnings] == ["S311"]
    assert built(bench).status == "unchanged"
    bench.sql("UPDATE lake.{raw}.t SET amount = 5 WHERE id = 2")
    assert [w.code for w in bench.plan().warnings] == ["S311"]
    built(bench)
    assert bench.rows("m") == [(1, 30), (2, 10), (3, 90)]
    built(bench, full_refresh=True)
    assert bench.rows("m") == [(1, 20), (2, 10), (3, 60)]
    assert bench.plan().warnings == ()


def test_a_key_that_the_query_does_not_give_is_an_error(bench: Workbench) -> None:
    merged(bench, header="unique_key [nothing]")
    error = refused(bench)
    assert (error["code"], "`nothing`" in str(error["message"])) == ("X007", True)


def test_kept_rows_outlive_another_key_another_layout_and_columns_that_leave(
    bench: Workbench,
) -> None:
    source(bench, "t", "id INT, g INT, n INT", "(1, 1, 1)", "(10, 1, 2)")
    header = "MODEL (materialized merge, unique_key [{}], deletes keep);\n"
    query = "SELECT id, g, n FROM {raw}.t"
    bench.model("m", header.format("id") + query)
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    built(bench)
    # a key by which the rows that stand are not told apart
    bench.model("m", header.format("g") + query)
    error = refused(bench)
    assert (error["code"], "DEFINITION_CHANGED" in str(error["message"])) == ("X008", True)
    assert bench.rows("m") == [(1, 1, 1), (10, 1, 2)]
    # one by which they are, and another layout
    by_n = header.format("n").replace(");", ", partitioned_by [g]);")
    bench.model("m", by_n + query)
    assert counts(built(bench)) == (0, 0, 2)
    assert bench.project().observe().relations["m"].partitioning == ("g",)
    assert bench.rows("m") == [(1, 1, 1), (10, 1, 2)]
    # a column that the query no longer gives stays what it was, where there was a row
    bench.model("m", by_n + "SELECT g, n FROM {raw}.t")
    insert(bench, "t", "(11, 2, 3)")
    built(bench)
    assert bench.rows("m") == [(None, 2, 3), (1, 1, 1), (10, 1, 2)]
    bench.sql("UPDATE lake.{raw}.t SET g = 5 WHERE n = 2")
    node = built(bench)
    assert (counts(node), node.warnings) == ((1, 1, 3), ())
    assert bench.rows("m") == [(None, 2, 3), (1, 1, 1), (10, 5, 2)]


def test_a_key_may_be_named_as_anything(bench: Workbench) -> None:
    source(bench, "t", "n INT, v INT", "(1, 1)")
    bench.model("m", "MODEL (materialized merge, unique_key [n]);\nSELECT n, v FROM {raw}.t")
    built(bench)
    insert(bench, "t", "(2, 2)")
    node = built(bench, refresh="rows")
    assert (counts(node), node.warnings) == ((1, 0, 2), ())


@pytest.mark.parametrize("refresh", ["rows", "full"])
@pytest.mark.parametrize("kind", ["merge", "merge, deletes keep", "scd2"])
def test_keys_that_python_has_no_value_for_are_told(
    bench: Workbench, kind: str, refresh: str
) -> None:
    source(bench, "t", "at TIMESTAMP, v INT", "(TIMESTAMP'0001-01-01 00:00:00', 1)")
    bench.model("m", f"MODEL (materialized {kind}, unique_key [at]);\nSELECT at, v FROM {{raw}}.t")
    built(bench)
    for first in ("0001-01-01", "-0005-01-01", "+12026-01-01"):
        insert(bench, "t", f"(TIMESTAMP'{first} 00:00:00', 2)")
        insert(bench, "t", f"(TIMESTAMP'{first} 00:00:00', 3)")
        error = refused(bench, refresh=refresh)
        assert (error["code"], f"at = {first}" in str(error["message"])) == ("X007", True)
        bench.sql(f"DELETE FROM lake.{{raw}}.t WHERE at = TIMESTAMP'{first} 00:00:00'")


@pytest.mark.parametrize("kind", ["append", "merge, unique_key [id], deletes keep"])
def test_a_column_that_a_table_is_laid_out_by_has_to_stay(bench: Workbench, kind: str) -> None:
    source(bench, "t", "id INT, v INT", "(1, 1)")
    header = f"MODEL (materialized {kind}, on_schema_change sync_all_columns"
    bench.model("m", f"{header}, partitioned_by [bucket(2, v)]);\nSELECT * FROM {{raw}}.t")
    built(bench)
    bench.model("m", f"{header}, partitioned_by [bucket(2, v)]);\nSELECT id FROM {{raw}}.t")
    error = refused(bench)
    assert (error["code"], "`v`" in str(error["message"])) == ("X007", True)
    assert bench.rows("m") == [(1, 1)]
    bench.model("m", f"{header});\nSELECT id FROM {{raw}}.t")
    built(bench)
    assert bench.rows("m") == [(1,)]


def test_only_what_is_replaced_whole_is_called_so(bench: Workbench) -> None:
    source(bench, "t", "id INT, v INT", "(1, 1)", "(2, 2)")
    for name, more in (("m", ", unique_key [id], deletes keep"), ("n", ", unique_key [id]")):
        bench.model(
            name, f"MODEL (materialized merge{more}, partitioned_by [id]);\nSELECT * FROM {{raw}}.t"
        )
    built(bench)
    bench.sql("UPDATE lake.{raw}.t SET v = 3 WHERE id = 1")
    nodes = {node.name: node for node in bench.build(refresh="rows").nodes}
    assert how(nodes["m"]) == "affected_key"
    assert how(nodes["n"]) != "partition_overwrite"


def test_what_vanishes_while_deletes_keep_is_added_stays(bench: Workbench) -> None:
    merged(bench)
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    bench.model("m", f"MODEL (materialized merge, unique_key [id], deletes keep);\n{PLAIN}")
    built(bench)
    assert bench.rows("m") == [(1, 20), (2, 40), (3, 60)]
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 2")
    built(bench)
    assert bench.rows("m") == [(1, 20), (2, 40), (3, 60)]


def test_a_key_that_is_null_is_not_mended_by_more_columns(bench: Workbench) -> None:
    merged(bench)
    insert(bench, "t", "(NULL, 7)")
    assert str(refused(bench)["help"]) == "nothing was written; leave out rows without a key"
