"""What a thrift server shows of a schema, read from answers of real servers."""

from __future__ import annotations

import pytest

from sqb.dbt.thrift_listing import (
    Listed,
    Rowset,
    ask_snapshots,
    facts_of,
    find,
    is_compaction,
    is_missing_schema,
    is_without_views,
    list_tables,
    list_views,
    named,
    read_snapshots,
    read_tables,
    read_views,
    rowset,
)

PARQUET = """\
Catalog: spark_catalog
Database: shop
Table: orders
Owner: dbt
Created Time: Mon Nov 16 11:00:00 UTC 2026
Last Access: UNKNOWN
Created By: Spark 4.1.4
Type: MANAGED
Provider: parquet
Comment: first
Type: VIEW
Statistics: 735 bytes
Location: file:/warehouse/shop.db/orders
Schema: root
 |-- id: integer (nullable = true)
 |-- name: string (nullable = true)

"""
VIEW = """\
Catalog: spark_catalog
Database: shop
Table: one
Created Time: Mon Nov 16 11:00:00 UTC 2026
Last Access: UNKNOWN
Created By: Spark 4.1.4
Type: VIEW
View Text: SELECT id FROM shop.orders
WHERE id > 0
View Original Text: SELECT id FROM shop.orders
WHERE id > 0
View Schema Mode: COMPENSATION
View Catalog and Namespace: spark_catalog.default
View Query Output Columns: [`id`]
Schema: root
 |-- id: integer (nullable = true)

"""
ICEBERG = """\
Catalog: lake
Namespace: shop
Table: orders
Type: MANAGED
Comment: x
Type: VIEW
Provider: parquet
Location: /elsewhere
Schema: root
Location: /warehouse/shop/orders
Provider: iceberg
Owner: root
Table_type: EXTERNAL
Table Properties: [current-snapshot-id=4037391822417654903, format=iceberg/parquet, \
format-version=2]
Schema: root
 |-- id: integer (nullable = true)

"""
#: As Spark 4.1 writes it.
SCATTERED = ICEBERG.replace(
    "[current-snapshot-id=4037391822417654903, format=iceberg/parquet, format-version=2]",
    "[[, c, u, r, r, e, n, t, -, s, n, a, p, s, h, o, t, -, i, d, =, 4, 0, 3, 7, 3, 9, 1, 8, 2, 2, "
    "4, 1, 7, 6, 5, 4, 9, 0, 3, ,, f, o, r, m, a, t, =, i, c, e, b, e, r, g, /, p, a, r, q, u, e, "
    "t, ,, f, o, r, m, a, t, -, v, e, r, s, i, o, n, =, 2, ]]",
)
HIVE_ICEBERG = """\
Catalog: spark_catalog
Database: shop
Table: orders
Owner: root
Created Time: Mon Nov 16 11:00:00 UTC 2026
Last Access: UNKNOWN
Created By: Spark 2.2 or prior
Type: EXTERNAL
Provider: iceberg
Table Properties: [EXTERNAL=TRUE, current-snapshot-id=77, metadata_location=/w/m.json, \
table_type=ICEBERG, uuid=6b9bb7fc-6d3c-4d0a-8f1b-27f8bd5d9e10]
Location: file:/warehouse/shop.db/orders
Schema: root
 |-- id: integer (nullable = true)

"""


def one(information: str, name: str = "orders") -> Listed:
    (found,) = read_tables([["shop", name, "false", information]])
    return found


def test_a_table_of_spark_s_own_catalog() -> None:
    found = one(PARQUET)
    assert (found.kind, found.catalog, found.session) == ("table", "spark_catalog", True)
    assert found.location == "file:/warehouse/shop.db/orders"
    assert (found.snapshot, found.uuid, found.version) == ("", "", "")
    facts = facts_of(found, None)
    assert (facts.uuid, facts.snapshot_id, facts.data_timestamp_ms) == ("", None, None)


@pytest.mark.parametrize("information", [ICEBERG, SCATTERED], ids=["later", "4.1"])
def test_an_iceberg_table_names_its_snapshot(information: str) -> None:
    found = one(information)
    assert information.count("Table Properties: [[") == (information == SCATTERED)
    assert (found.kind, found.catalog, found.session) == ("table", "lake", False)
    assert found.location == "/warehouse/shop/orders"
    assert found.head == 4037391822417654903
    assert found.version == "/warehouse/shop/orders@4037391822417654903"
    assert found.uuid


def test_an_iceberg_table_of_hive_has_its_own_uuid() -> None:
    found = one(HIVE_ICEBERG)
    assert (found.session, found.head) == (True, 77)
    assert found.uuid == "6b9bb7fc-6d3c-4d0a-8f1b-27f8bd5d9e10"


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [
        ("|-- name: string", "|-- name: binary", True),
        ("|-- name: string", "|-- label: string", True),
        ("Statistics: 735", "Statistics: 800", False),
        ("11:00:00", "12:00:00", False),
        ("Comment: first", "Comment: second", False),
    ],
)
def test_the_shape_of_a_table_is_its_columns(before: str, after: str, moves: bool) -> None:
    assert before in PARQUET
    assert (one(PARQUET.replace(before, after)).shape != one(PARQUET).shape) is moves


@pytest.mark.parametrize(
    ("before", "after", "moves"),
    [("id > 0", "id > 1", True), ("integer", "long", True), ("11:00:00", "12:00:00", False)],
)
def test_the_shape_of_a_view_is_its_text_too(before: str, after: str, moves: bool) -> None:
    found = one(VIEW, "one")
    assert (found.kind, found.uuid) == ("view", "")
    assert before in VIEW
    assert (one(VIEW.replace(before, after)).shape != found.shape) is moves


def test_temporary_views_are_nobody_s_relation() -> None:
    assert read_tables([["", "orders", "true", "Table: orders\nType: VIEW\n"]]) == []
    assert read_views([["", "orders", "true"]], "shop") == []


def test_views_that_are_listed_apart_have_an_identity() -> None:
    (here,) = read_views([["shop", "one", "false"]], "shop")
    (there,) = read_views([["shop", "one", "false"]], "other")
    assert facts_of(here, None).kind == "view"
    assert len({"", facts_of(here, None).uuid, facts_of(there, None).uuid}) == 3


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["orders"], "orders"),
        (["b", "a", "_c1"], "_c1|a|b"),
        # what the pattern would read as more than a name
        (["a", "b.c"], "*"),
        (["a*"], "*"),
        (["naïve"], "*"),
        ([f"t{number}" for number in range(61)], "*"),
    ],
)
def test_few_names_are_asked_for_alone(names: list[str], pattern: str) -> None:
    assert list_tables("a`b", names) == f"SHOW TABLE EXTENDED IN `a``b` LIKE '{pattern}'"
    assert list_views("lake.shop", names) == f"SHOW VIEWS IN `lake`.`shop` LIKE '{pattern}'"


def test_spark_s_own_catalog_folds_names() -> None:
    found = find([one(PARQUET)])
    assert named(found, "ORDERS") is named(found, "orders") is not None
    found = find([one(ICEBERG)])
    assert (named(found, "ORDERS"), named(found, "orders") is not None) == (None, True)


@pytest.mark.parametrize(
    ("error", "schema", "views"),
    [
        ("[SCHEMA_NOT_FOUND] The schema `a` cannot be found.", True, False),
        ("Namespace does not exist: a", True, False),
        ("[MISSING_CATALOG_ABILITY.VIEWS] Catalog app does not support views.", False, True),
        ("JDBC catalog is initialized without view support. To auto-migrate …", False, True),
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `a` cannot be found.", False, False),
        ("TTransportException: TSocket read 0 bytes", False, False),
    ],
)
def test_which_errors_say_that_nothing_is_there(error: str, schema: bool, views: bool) -> None:
    assert (is_missing_schema(error), is_without_views(error)) == (schema, views)


TABLES = {"`s`.`a`": one(ICEBERG), "`s`.`b`": one(HIVE_ICEBERG)}
HEAD_A = ["0", "4037391822417654903", None, "append", "1700000000000", "5", "900"]
HEAD_B = ["1", "77", "66", "replace", "1700000009000", "3", None]
OLDER_B = [
    ["1", "66", "55", "replace", "1700000008000", "3", None],
    ["1", "55", None, "append", "1700000007000", "3", None],
]


def test_snapshots_of_many_tables_are_asked_for_together() -> None:
    text = ask_snapshots(TABLES)
    assert text.count("UNION ALL") == 1
    assert text.endswith("FROM `s`.`b`.`snapshots` WHERE snapshot_id = 77")
    assert "WHERE" not in ask_snapshots(TABLES, all_of_them=True)


def test_rows_changed_where_the_last_commit_that_is_no_compaction_was() -> None:
    first = read_snapshots([HEAD_A, HEAD_B], TABLES)
    a, b = TABLES
    assert rowset(TABLES[a], first[a]) == Rowset(4037391822417654903, 1700000000000, 5, 900)
    assert [is_compaction(TABLES[name], first[name]) for name in (a, b)] == [False, True]
    more = read_snapshots([HEAD_B, *OLDER_B], TABLES)
    assert rowset(TABLES[b], more[b]) == Rowset(55, 1700000007000, 3)


def test_what_an_expired_commit_did_is_not_guessed() -> None:
    found = read_snapshots([HEAD_B], TABLES)
    held = rowset(TABLES["`s`.`b`"], found["`s`.`b`"])
    assert held == Rowset(77, 1700000009000, 3)


def test_a_table_that_moved_since_it_was_listed_tells_nothing() -> None:
    found = read_snapshots([], TABLES)
    held = rowset(TABLES["`s`.`a`"], found["`s`.`a`"])
    assert held is None
    assert facts_of(TABLES["`s`.`a`"], held).uuid == ""


def test_facts_of_what_is_held() -> None:
    facts = facts_of(TABLES["`s`.`a`"], Rowset(5, 6, 7, 8))
    assert (facts.snapshot_id, facts.data_snapshot_id) == (4037391822417654903, 5)
    assert (facts.data_timestamp_ms, facts.total_records, facts.total_bytes) == (6, 7, 8)
