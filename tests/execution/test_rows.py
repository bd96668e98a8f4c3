"""Row-level refresh on real tables: the rows of a rebuild, by the strategy that is expected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.execution.events import NodeResult

ORDERS = (
    "CREATE TABLE lake.{raw}.orders (id INT, customer INT, amount DECIMAL(18,2), d DATE) "
    "USING iceberg TBLPROPERTIES ('write.delete.mode'='copy-on-write',"
    "'write.update.mode'='copy-on-write','write.merge.mode'='copy-on-write')"
)


def orders(bench: Workbench) -> None:
    bench.sql(ORDERS)
    bench.sql(
        "INSERT INTO lake.{raw}.orders SELECT id, id % 10, id * 1.5, "
        "DATE'2026-01-01' + CAST(id % 7 AS INT) "
        "FROM range(1, 101)"
    )


def refreshed(bench: Workbench, name: str, sql: str, **options: object) -> NodeResult:
    """Build one model by rows; its table then holds what its query gives."""
    result = bench.build(refresh="rows", **options)
    node = next(n for n in result.nodes if n.name == name)
    assert node.status in ("success", "unchanged"), node.error
    same(bench, name, sql)
    return node


def same(bench: Workbench, name: str, sql: str) -> None:
    table = Counter(bench.sql(f"SELECT * FROM lake.{bench.schema}.{name}"))
    text = sql.replace("FROM ", "FROM lake.").replace("JOIN ", "JOIN lake.")
    assert table == Counter(bench.sql(text))


QUERIES = {
    "append": "SELECT id, amount * 2 AS twice FROM {raw}.orders WHERE customer > 3",
    "group_merge": (
        "SELECT customer, SUM(amount) AS total, COUNT(amount) AS n, COUNT(*) AS rows "
        "FROM {raw}.orders GROUP BY customer"
    ),
    "affected_key": (
        "SELECT customer, COUNT(DISTINCT d) AS days, MAX(amount) AS most "
        "FROM {raw}.orders GROUP BY customer"
    ),
}


@pytest.mark.parametrize("strategy", QUERIES)
def test_rows_that_came(bench: Workbench, strategy: str) -> None:
    orders(bench)
    sql = QUERIES[strategy]
    bench.model("m", sql)
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (200, 4, 10.25, DATE'2026-02-01')")
    node = refreshed(bench, "m", sql)
    assert node.strategy is not None
    assert node.strategy.name == strategy, node.strategy
    assert node.rows is not None
    assert node.rows.inserted == 1
    assert bench.told() == {}


@pytest.mark.parametrize("strategy", QUERIES)
def test_rows_that_went(bench: Workbench, strategy: str) -> None:
    orders(bench)
    sql = QUERIES[strategy]
    bench.model("m", sql)
    bench.build()
    bench.sql("DELETE FROM lake.{raw}.orders WHERE id IN (4, 14, 77) OR customer = 9")
    node = refreshed(bench, "m", sql)
    assert node.strategy is not None
    expected = "affected_key" if strategy == "append" else strategy
    assert node.strategy.name == expected, node.strategy
    assert bench.told() == {}


def test_a_change_that_two_models_read_is_compared_once(bench: Workbench) -> None:
    orders(bench)
    for name in ("group_merge", "affected_key"):
        bench.model(name, QUERIES[name])
    bench.build()
    bench.sql("UPDATE lake.{raw}.orders SET amount = amount + 1 WHERE id = 7")
    result = bench.build(refresh="rows", concurrency=2)
    for node in result.nodes:
        assert node.strategy is not None
        assert node.strategy.name == node.name, node.strategy
        same(bench, node.name, QUERIES[node.name])


def test_a_column_that_nobody_reads_changes_nothing(bench: Workbench) -> None:
    orders(bench)
    bench.model("m", "SELECT id, customer FROM {raw}.orders WHERE customer < 5")
    bench.build()
    bench.sql("UPDATE lake.{raw}.orders SET amount = 0 WHERE id < 50")
    node = refreshed(bench, "m", "SELECT id, customer FROM {raw}.orders WHERE customer < 5")
    assert (node.status, node.strategy and node.strategy.code) == ("unchanged", "NET_CHANGE_EMPTY")
    assert bench.told() == {}


def test_results_may_be_named_by_spark(bench: Workbench) -> None:
    orders(bench)
    sql = "SELECT customer, SUM(amount), COUNT(amount), COUNT(*) FROM {raw}.orders GROUP BY 1"
    bench.model("m", sql)
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (200, 4, 10.25, DATE'2026-02-01')")
    node = refreshed(bench, "m", sql)
    assert node.strategy is not None
    assert node.strategy.name == "group_merge", node.strategy


def test_a_day_that_passed_moves_the_rows_of_a_window(bench: Workbench) -> None:
    orders(bench)
    sql = "SELECT id, d FROM {raw}.orders WHERE d >= current_date() - 3"
    bench.model("m", sql)
    bench.environ["SQB_NOW"] = "2026-01-05T10:00:00Z"
    bench.build()
    bench.environ["SQB_NOW"] = "2026-01-07T10:00:00Z"
    node = refreshed(bench, "m", sql.replace("current_date()", "DATE'2026-01-07'"))
    assert node.reason == "constant_changed"
    assert node.strategy is not None
    assert node.strategy.name == "affected_key"
    assert node.rows is not None
    assert node.rows.inserted == 0
    assert bench.told() == {}


def test_rows_flow_through_views_and_tables(bench: Workbench) -> None:
    orders(bench)
    bench.model("v", "MODEL (materialized view);\nSELECT id, customer, amount FROM {raw}.orders")
    bench.model("doubled", "SELECT id, customer, amount * 2 AS twice FROM v WHERE amount > 10")
    bench.model("summed", "SELECT customer, SUM(twice) AS s, COUNT(*) AS n FROM doubled GROUP BY 1")
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (300, 4, 99, DATE'2026-02-01')")
    result = bench.build(refresh="rows")
    ways = {n.name: n.strategy.name for n in result.nodes if n.strategy is not None}
    assert ways == {"doubled": "append", "summed": "group_merge"}
    assert bench.sql("SELECT SUM(s), SUM(n) FROM lake.{dev}.summed") == bench.sql(
        "SELECT SUM(amount * 2), COUNT(*) FROM lake.{raw}.orders WHERE amount > 10"
    )


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_were_marked_as_deleted_in_files_that_stay(
    bench: Workbench, version: int
) -> None:
    orders(bench)
    marks = ", ".join(f"'write.{what}.mode'='merge-on-read'" for what in ("delete", "update"))
    bench.sql(
        "CREATE TABLE lake.{raw}.marked USING iceberg TBLPROPERTIES "
        f"('format-version'='{version}', {marks}) AS SELECT * FROM lake.{{raw}}.orders"
    )
    sql = QUERIES["group_merge"].replace("orders", "marked")
    bench.model("m", sql)
    bench.build()
    bench.sql("DELETE FROM lake.{raw}.marked WHERE id IN (4, 14, 77)")
    bench.sql("UPDATE lake.{raw}.marked SET amount = -1 WHERE id = 5")
    node = refreshed(bench, "m", sql)
    assert node.strategy is not None
    assert node.strategy.name == "group_merge", node.strategy
    assert node.rows is not None
    assert (node.rows.inserted, node.rows.deleted) == (3, 3)


def test_files_that_came_beside_files_that_never_change(bench: Workbench) -> None:
    bench.write("data/one.csv", "k,v\n1,10\n2,20\n")
    bench.write(
        "sources/s.yml",
        "sources:\n  - name: events\n    path: data\n    format: csv\n    immutable_files: true\n",
    )
    bench.model("m", "SELECT k, SUM(v) AS total FROM events GROUP BY k")
    bench.build()
    bench.write("data/two.csv", "k,v\n2,5\n3,7\n")
    result = bench.build(refresh="rows")
    (node,) = (n for n in result.nodes if n.name == "m")
    assert node.strategy is not None
    assert node.strategy.name == "group_merge", node.strategy
    assert bench.rows("m") == [(1, 10), (2, 25), (3, 7)]
    (bench.root / "data/one.csv").unlink()
    result = bench.build(refresh="rows")
    (node,) = (n for n in result.nodes if n.name == "m")
    assert node.strategy is not None
    assert node.strategy.code == "NO_CHANGE_SET"
    assert node.strategy.why.startswith("events: not all of the files that were read are there")
    assert bench.rows("m") == [(2, 5), (3, 7)]


def test_partitions_that_changed_are_replaced_whole(bench: Workbench) -> None:
    orders(bench)
    sql = "SELECT d, COUNT(DISTINCT customer) AS customers FROM {raw}.orders GROUP BY d"
    bench.model("m", f"MODEL (materialized table, partitioned_by [d]);\n{sql}")
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (300, 44, 1, DATE'2026-01-02')")
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (301, 45, 1, NULL)")
    bench.sql("DELETE FROM lake.{raw}.orders WHERE d = DATE'2026-01-04'")
    node = refreshed(bench, "m", sql)
    assert node.strategy is not None
    assert node.strategy.name == "partition_overwrite", node.strategy
    assert node.rows is not None
    assert (node.rows.inserted, node.rows.deleted) == (2, 2)
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (302, 44, 1, DATE'2026-01-02')")
    node = refreshed(bench, "m", sql)
    assert node.status == "unchanged"
    assert bench.told() == {}


def test_rows_that_are_put_in_order_are_counted_once(bench: Workbench) -> None:
    orders(bench)
    queries = {
        "rows": "SELECT id, amount FROM {raw}.orders",
        "days": "SELECT d, COUNT(DISTINCT customer) AS n FROM {raw}.orders GROUP BY d",
    }
    bench.model("rows", f"MODEL (sorted_by [amount]);\n{queries['rows']}")
    bench.model("days", f"MODEL (partitioned_by [d], sorted_by [n]);\n{queries['days']}")
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders SELECT id, 7, 1, DATE'2026-01-02' FROM range(50)")
    node = refreshed(bench, "rows", queries["rows"])
    assert node.rows is not None
    assert (node.rows.inserted, node.rows.deleted, node.rows.total) == (50, 0, 150)
    bench.sql("DELETE FROM lake.{raw}.orders WHERE d = DATE'2026-01-02' AND customer <> 3")
    node = refreshed(bench, "days", queries["days"])
    assert (node.strategy and node.strategy.name) == "partition_overwrite", node.strategy
    assert node.rows is not None
    assert (node.rows.inserted, node.rows.deleted) == (1, 1)
    for found in bench.project().verify(full=True):
        assert found.equal


def test_names_that_differ_in_case_alone_are_left_to_spark(bench: Workbench) -> None:
    orders(bench)
    conf = '[spark.conf]\n"spark.sql.caseSensitive" = "true"\n'
    bench.write("sqlbuild_project.toml", bench.toml(conf))
    bench.model("m", "SELECT id, customer FROM {raw}.orders")
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (300, 44, 1, DATE'2026-01-02')")
    node = refreshed(bench, "m", "SELECT id, customer FROM {raw}.orders")
    assert (node.strategy and node.strategy.code) == "UNSUPPORTED"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT n.id, n.s, o.amount FROM {raw}.notes n LEFT JOIN {raw}.orders o ON n.s = o.id",
        (
            "SELECT n.id, max(o.id) AS last FROM {raw}.notes n JOIN {raw}.orders o ON n.day = o.d"
            " GROUP BY n.id"
        ),
    ],
)
def test_strings_that_are_joined_as_numbers_and_days(bench: Workbench, sql: str) -> None:
    orders(bench)
    bench.sql("CREATE TABLE lake.{raw}.notes (id INT, s STRING, day STRING) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.notes VALUES (1, '1', '2026-01-01'), (2, '2', NULL)")
    bench.model("m", sql)
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.notes VALUES (3, '9', '2026-1-2'), (4, '10', '2026-01-1')")
    bench.sql("DELETE FROM lake.{raw}.notes WHERE id = 1")
    node = refreshed(bench, "m", sql)
    assert (node.strategy and node.strategy.name) == "affected_key"


def test_a_sub_query_whose_value_stays_is_no_change(bench: Workbench) -> None:
    orders(bench)
    sql = (
        "SELECT id, amount FROM {raw}.orders "
        "WHERE amount > (SELECT MAX(amount) / 2 FROM {raw}.orders)"
    )
    bench.model("m", sql)
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (300, 4, 120, NULL), (301, 4, 2, NULL)")
    node = refreshed(bench, "m", sql)
    assert node.strategy is not None
    assert node.strategy.name == "append", node.strategy
    assert node.rows is not None
    assert node.rows.inserted == 1
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (302, 4, 1000, NULL)")
    node = refreshed(bench, "m", sql)
    assert (node.strategy and node.strategy.code) == "SCALAR_SUBQUERY_CHANGED"


def test_a_sub_query_is_not_written_as_a_literal_beside_floating_point_numbers(
    bench: Workbench,
) -> None:
    """Iceberg leaves out files by literals, as if -0.0 were less than 0.0 and NaN less than all;
    Spark, which compares with the value of a sub-query, finds their rows."""
    bench.sql("CREATE TABLE lake.{raw}.f (id INT, f DOUBLE) USING iceberg")
    bench.sql("CREATE TABLE lake.{raw}.p (z INT) USING iceberg")
    first = "VALUES (1, -1D), (2, -0D), (3, double('NaN'))"
    bench.sql(f"INSERT INTO lake.{{raw}}.f SELECT /*+ COALESCE(1) */ * FROM {first}")
    bench.sql("INSERT INTO lake.{raw}.p VALUES (0)")
    sql = (
        "SELECT id, count(*) OVER (PARTITION BY f) AS n FROM {raw}.f"
        " WHERE f >= (SELECT max(z) FROM {raw}.p)"
    )
    bench.model("m", sql)
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.p VALUES (-5)")
    bench.sql("INSERT INTO lake.{raw}.f VALUES (4, 0D), (5, double('NaN'))")
    node = refreshed(bench, "m", sql)
    assert (node.strategy and node.strategy.code) == "UNSUPPORTED"
    assert sorted(bench.rows("m")) == [(2, 2), (3, 2), (4, 2), (5, 2)]


def test_keys_that_are_zero_meet_both_zeros(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.f (id INT, f DOUBLE) USING iceberg")
    bench.sql("CREATE TABLE lake.{raw}.p (k INT, name STRING) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.f SELECT /*+ COALESCE(1) */ * FROM VALUES (1, -1D), (2, -0D)")
    bench.sql("INSERT INTO lake.{raw}.p VALUES (0, 'zero'), (1, 'one')")
    sql = "SELECT f.id, f.f, p.name FROM {raw}.p JOIN {raw}.f ON f.f = p.k"
    bench.model("m", sql)
    bench.build()
    bench.sql("UPDATE lake.{raw}.p SET name = 'nil' WHERE k = 0")
    node = refreshed(bench, "m", sql)
    assert (node.strategy and node.strategy.name) == "affected_key"
    assert bench.rows("m") == [(2, -0.0, "nil")]


def test_a_plan_that_can_not_tell_the_strategy_says_so(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders(bench)
    bench.model("m", QUERIES["group_merge"])
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (200, 4, 10.25, DATE'2026-02-01')")

    def fails(*_: object) -> None:
        raise RuntimeError("no such luck\nat the end of a long trace")

    bench.may_warn = True
    monkeypatch.setattr("sqb.execution.foreseeing.understand", fails)
    plan = bench.plan()
    assert [(n.action, n.strategy) for n in plan.nodes] == [("run", None)]
    (warning,) = plan.warnings
    assert (warning.code, warning.node) == ("S314", "m")
    assert warning.message.endswith("could not be foreseen: RuntimeError: no such luck")


def test_a_refresh_that_fails_is_a_rebuild_and_a_warning(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders(bench)
    bench.model("m", QUERIES["group_merge"])
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (200, 4, 10.25, DATE'2026-02-01')")

    def fails(*_: object) -> None:
        raise RuntimeError("no such luck\nat the end of a long trace")

    bench.may_warn = True
    monkeypatch.setattr("sqb.execution.rows.measured", fails)
    (node,) = bench.build(refresh="rows").nodes
    assert node.status == "success"
    assert node.strategy is not None
    assert (node.strategy.name, node.strategy.code) == ("full", "ROW_ERROR")
    (warning,) = node.warnings
    assert warning.code == "S313"
    assert warning.message.endswith("in full: RuntimeError: no such luck")


def test_all_rows_of_a_file_go_from_a_table_with_row_ids(bench: Workbench) -> None:
    bench.sql(
        "CREATE TABLE lake.{raw}.t (k INT, v INT) USING iceberg TBLPROPERTIES"
        " ('format-version'='3', 'write.delete.mode'='merge-on-read')"
    )
    bench.sql("INSERT INTO lake.{raw}.t SELECT 1 AS k, CAST(id AS INT) AS v FROM range(3)")
    bench.sql("INSERT INTO lake.{raw}.t SELECT 2 AS k, CAST(id AS INT) AS v FROM range(3)")
    bench.sql("DELETE FROM lake.{raw}.t WHERE v = 2 AND k = 1")
    bench.model("m", "SELECT k, v FROM {raw}.t")
    bench.build()
    bench.sql("DELETE FROM lake.{raw}.t WHERE k = 2")
    (node,) = bench.build(refresh="rows").nodes
    assert node.strategy is not None
    assert node.strategy.name in ("affected_key", "bag_merge")
    assert sorted(tuple(row) for row in bench.rows("m")) == [(1, 0), (1, 1)]
