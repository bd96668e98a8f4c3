"""Builds on a real Spark and real Iceberg tables: what runs, what stays, what is in the tables."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from sqb.errors import SqbError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Workbench

ALL = {"names", "stg", "totals", "top", "counted"}


def test_first_build_makes_everything_and_the_second_has_nothing_to_do(shop: Workbench) -> None:
    assert shop.told() == dict.fromkeys(ALL, ("success", "first_run"))
    assert shop.rows("totals") == [("a", "Anna", 15), ("b", "Bert", 20)]
    assert shop.rows("top") == [("Anna", 15), ("Bert", 20)]
    assert shop.rows("names") == [("a", "Anna"), ("b", "Bert")]
    assert shop.told() == {}


class TestOneBuiltShop:
    """The life of one project: each step starts where the one before ended."""

    @pytest.fixture
    def built(self, shop: Workbench) -> Workbench:
        shop.told()
        return shop

    def test_a_life_of_edits_and_new_rows(self, built: Workbench) -> None:
        # a comment, white space and keyword case are no change
        built.model("top", "select name,\n  total -- the sum\nfrom totals where total > 10")
        assert built.told() == {}
        # an edit runs the model and what is below, the reason and a diff shown
        built.model(
            "totals",
            "SELECT s.customer, n.name, sum(s.amount) + 1 AS total\n"
            "FROM stg AS s JOIN names AS n ON n.customer = s.customer\n"
            "GROUP BY s.customer, n.name",
        )
        plan = built.plan()
        node = next(n for n in plan.nodes if n.name == "totals")
        assert "+SELECT s.customer, n.name, sum(s.amount) + 1 AS total" in (node.diff or "")
        assert built.told() == {
            "totals": ("success", "query_changed"),
            "top": ("success", "upstream_changed"),
        }
        assert built.rows("top") == [("Anna", 16), ("Bert", 21)]
        # an upstream edit that gives the same rows stops there
        built.model(
            "totals",
            "SELECT s.customer, n.name, 1 + sum(s.amount) AS total\n"
            "FROM stg AS s JOIN names AS n ON n.customer = s.customer\n"
            "GROUP BY s.customer, n.name",
        )
        assert built.told() == {
            "totals": ("unchanged", "query_changed"),
            "top": ("current", "upstream_unchanged"),
        }
        assert built.told() == {}
        # new rows in one source run only its branch
        built.sql("INSERT INTO lake.{raw}.events VALUES (8)")
        assert built.told() == {"counted": ("success", "source_changed")}
        assert built.rows("counted") == [(2,)]
        # rows behind a view: the view stays, its reader runs
        built.sql("INSERT INTO lake.{raw}.orders VALUES (4, 'b', 1)")
        assert built.told() == {
            "totals": ("success", "upstream_changed"),
            "top": ("success", "upstream_changed"),
        }
        assert built.rows("top") == [("Anna", 16), ("Bert", 22)]
        assert built.told() == {}

    def test_a_changed_seed_is_loaded_and_its_noise_is_not_a_change(self, built: Workbench) -> None:
        built.write("seeds/names.csv", '\ufeffcustomer,name\r\n"a",Anna\r\nb,"Bert"\r\n')
        assert built.told() == {}
        built.write("seeds/names.csv", "customer,name\na,Ann\nb,Bert\n")
        assert built.told() == {
            "names": ("success", "seed_changed"),
            "totals": ("success", "upstream_changed"),
            "top": ("success", "upstream_changed"),
        }
        assert built.rows("top") == [("Ann", 15), ("Bert", 20)]

    def test_a_dropped_relation_is_rebuilt_and_equal_rows_wake_nobody(
        self, built: Workbench
    ) -> None:
        built.sql("DROP TABLE lake.{dev}.totals")
        assert built.told() == {
            "totals": ("success", "relation_missing"),
            "top": ("current", "upstream_unchanged"),
        }
        built.sql("DROP VIEW lake.{dev}.stg")
        assert built.told() == {"stg": ("success", "relation_missing")}

    def test_a_foreign_write_is_noticed_and_compaction_is_not_a_change(
        self, built: Workbench
    ) -> None:
        built.sql("INSERT INTO lake.{dev}.totals VALUES ('z', 'Zoe', 99)")
        assert built.told() == {
            "totals": ("success", "relation_changed"),
            "top": ("current", "upstream_unchanged"),
        }
        assert built.rows("totals") == [("a", "Anna", 15), ("b", "Bert", 20)]
        built.sql("INSERT INTO lake.{raw}.events VALUES (9)")
        built.told()
        for table in ("{dev}.counted", "{raw}.events"):
            name = table.replace("{dev}", built.schema).replace("{raw}", built.raw)
            built.sql(
                "CALL lake.system.rewrite_data_files(table => "
                f"'{name}', options => map('rewrite-all', 'true'))"
            )
        assert built.told() == {}

    def test_a_column_added_to_a_source_without_data_is_seen(self, built: Workbench) -> None:
        built.sql("ALTER TABLE lake.{raw}.events ADD COLUMN note STRING")
        assert built.told() == {"counted": ("unchanged", "schema_changed")}
        assert built.told() == {}
        built.model("counted", "SELECT count(*) AS n, count(note) AS notes FROM {raw}.events")
        assert built.told() == {"counted": ("success", "query_changed")}
        assert built.rows("counted") == [(1, 0)]

    def test_a_star_over_a_source_follows_its_columns(self, built: Workbench) -> None:
        built.model("copy", "SELECT * FROM {raw}.events")
        built.model("seen", "MODEL (materialized view);\nSELECT * FROM copy")
        built.told()
        built.sql("ALTER TABLE lake.{raw}.events ADD COLUMN note STRING")
        assert built.told()["copy"] == ("success", "schema_changed")
        assert built.rows("seen") == [(7, None)]
        built.sql("ALTER TABLE lake.{raw}.events RENAME COLUMN note TO remark")
        built.told()
        assert built.spark.table(f"lake.{built.schema}.seen").columns == ["id", "remark"]

    def test_a_scoped_build_hides_nothing(self, built: Workbench) -> None:
        built.model("also", "SELECT max(id) AS m FROM {raw}.events")
        built.told()
        built.sql("INSERT INTO lake.{raw}.events VALUES (11)")
        assert built.told("counted") == {"counted": ("success", "source_changed")}
        assert built.told() == {"also": ("success", "source_changed")}
        assert built.rows("also") == [(11,)]

    def test_a_reader_outside_the_selection_runs_later(self, built: Workbench) -> None:
        built.model("top", "SELECT name, total FROM totals WHERE total > 15")
        built.model(
            "totals",
            "SELECT s.customer, n.name, sum(s.amount) * 2 AS total\n"
            "FROM stg AS s JOIN names AS n USING (customer)\nGROUP BY ALL",
        )
        result = built.build("top")
        assert [w.code for w in result.plan.warnings] == ["S302"]
        assert built.rows("top") == [("Bert", 20)]
        assert built.told() == {
            "totals": ("success", "query_changed"),
            "top": ("success", "upstream_changed"),
        }
        assert built.rows("top") == [("Anna", 30), ("Bert", 40)]

    def test_a_failed_model_keeps_its_table_blocks_its_readers_and_is_retried(
        self, built: Workbench
    ) -> None:
        built.model("totals", "SELECT 'a' AS customer, 'x' AS name, 1/(id - id) AS total FROM stg")
        built.model("counted", "SELECT count(*) + 1 AS n FROM {raw}.events")
        result = built.build()
        status = {n.name: n.status for n in result.nodes}
        assert status == {
            "names": "current",
            "stg": "current",
            "totals": "failed",
            "top": "blocked",
            "counted": "success",
        }
        error = next(n.error for n in result.nodes if n.name == "totals")
        assert error is not None
        assert (error["code"], error["file"]) == ("X001", "models/totals.sql")
        assert built.rows("totals") == [("a", "Anna", 15), ("b", "Bert", 20)]
        assert {n.name for n in built.plan().work} == {"totals", "top"}
        stage = built.sql(f"SHOW TABLES IN lake.{built.schema}__sqb_stage")
        assert stage == []

    def test_view_and_table_change_into_each_other(self, built: Workbench) -> None:
        built.model("stg", "SELECT id, customer, amount FROM {raw}.orders")
        diff = next(n.diff for n in built.plan().nodes if n.name == "stg") or ""
        assert diff.splitlines()[-2:] == ['-materialized: "view"', '+materialized: "table"']
        assert built.told()["stg"] == ("success", "config_changed")
        assert built.rows("stg", "id") == [(1,), (2,), (3,)]
        built.model(
            "stg", "MODEL (materialized view);\nSELECT id, customer, amount FROM {raw}.orders"
        )
        assert built.told()["stg"] == ("success", "config_changed")
        assert built.sql(f"SHOW VIEWS IN lake.{built.schema}") != []
        assert built.rows("top") == [("Anna", 15), ("Bert", 20)]
        assert built.told() == {}


def test_layout_is_applied_and_its_change_wakes_nobody(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (k STRING, d DATE, v INT) USING iceberg")
    bench.sql(
        "INSERT INTO lake.{raw}.t VALUES ('b', DATE'2026-01-02', 2), ('a', DATE'2026-01-01', 1)"
    )
    bench.model("t", "SELECT k, d, v FROM {raw}.t")
    bench.model("below", "SELECT sum(v) AS s FROM t")
    bench.told()
    bench.model(
        "t",
        "MODEL (partitioned_by [months(d), bucket(4, k)], sorted_by [v DESC],"
        ' table_properties ("write.parquet.compression-codec" zstd));\nSELECT k, d, v FROM {raw}.t',
    )
    assert bench.told() == {
        "t": ("success", "config_changed"),
        "below": ("current", "upstream_unchanged"),
    }
    head = bench.project().catalog.head(bench.schema, "t")
    assert head is not None
    facts = bench.project().facts.get(head.location)
    assert facts.partitioning == ("months(d)", "bucket(4, k)")
    assert [term.split()[:2] for term in facts.sort_order] == [["v", "DESC"]]
    assert facts.properties["write.parquet.compression-codec"] == "zstd"
    assert bench.rows("t", "k, v") == [("a", 1), ("b", 2)]
    assert bench.told() == {}
    # a property alone is a commit without data; a property taken away goes
    bench.model(
        "t",
        "MODEL (partitioned_by [months(d), bucket(4, k)], sorted_by [v DESC]);\n"
        "SELECT k, d, v\nFROM {raw}.t",
    )
    assert bench.told()["t"] == ("unchanged", "config_changed")
    head = bench.project().catalog.head(bench.schema, "t")
    assert head is not None
    assert (
        "write.parquet.compression-codec" not in bench.project().facts.get(head.location).properties
    )
    assert bench.told() == {}


CUT_OFF = [
    ("a renamed column", "SELECT id AS ident, name FROM {raw}.t", "success"),
    ("reordered columns", "SELECT name, id FROM {raw}.t", "success"),
    ("a retyped column", "SELECT CAST(id AS BIGINT) AS id, name FROM {raw}.t", "success"),
    ("the same rows", "SELECT id + 0 AS id, name FROM {raw}.t", "unchanged"),
    ("other row order", "SELECT id, name FROM {raw}.t ORDER BY id DESC", "unchanged"),
    (
        "one row twice",
        "SELECT id, name FROM {raw}.t UNION ALL SELECT id, name FROM {raw}.t WHERE id = 1",
        "success",
    ),
]


def test_early_cut_off_swallows_nothing_but_equal_rows(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT, name STRING) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1, 'x'), (2, NULL)")
    for title, query, status in CUT_OFF:
        bench.model("m", "SELECT id, name FROM {raw}.t")
        bench.build()
        bench.model("m", query)
        assert bench.told()["m"][0] == status, title


def test_state_tables_hold_what_the_contract_says(shop: Workbench) -> None:
    shop.told()
    rows = shop.sql(
        "SELECT node_type, node_name, target_schema, target_name FROM "
        "lake.{dev}._sqlbuild_fingerprints ORDER BY node_name"
    )
    assert [row[:2] for row in rows] == [
        ("model", "counted"),
        ("seed", "names"),
        ("model", "stg"),
        ("model", "top"),
        ("model", "totals"),
    ]
    sources = shop.sql(
        "SELECT source_name, strategy, target_name FROM lake.{dev}._sqlbuild_source_freshness"
        " ORDER BY source_name"
    )
    assert sources == [
        (f"{shop.raw}.events", "adapter", "events"),
        (f"{shop.raw}.orders", "adapter", "orders"),
    ]


def test_views_that_are_met_on_many_paths_do_not_blow_up_the_query(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1), (2)")
    bench.model("v0", "MODEL (materialized view);\nSELECT id FROM {raw}.t")
    for level in range(1, 4):
        below = f"v{level - 1}"
        bench.model(
            f"v{level}",
            "MODEL (materialized view);\n"
            f"SELECT a.id FROM {below} AS a JOIN {below} ON {below}.id = a.id",
        )
    bench.model("top", "WITH v0 AS (SELECT 7 AS id) SELECT v3.id, v0.id AS seven FROM v3, v0")
    bench.told()
    assert bench.rows("top") == [(1, 7), (2, 7)]
    assert bench.project().explain("top").sql.count("VERSION AS OF") == 1
    bench.sql("INSERT INTO lake.{raw}.t VALUES (3)")
    assert bench.told() == {"top": ("success", "upstream_changed")}
    bench.model("top", "SELECT v3.id,\n  v3.nope\nFROM v3")
    error = next(n.error for n in bench.build().nodes if n.name == "top")
    assert error is not None
    assert (error["file"], error["line"]) == ("models/top.sql", 2)


def test_a_seed_that_changes_under_the_build_is_not_recorded_as_what_it_was(
    bench: Workbench,
) -> None:
    bench.write("seeds/s.csv", "a\n1\n")
    project = bench.project()
    result = project.build(on_plan=lambda _: bench.write("seeds/s.csv", "a\n2\n"))
    assert [n.status for n in result.nodes] == ["failed"]
    assert bench.told() == {"s": ("success", "first_run")}
    assert bench.rows("s") == [(2,)]


def test_a_view_follows_its_inputs_to_another_place(bench: Workbench) -> None:
    for schema, value in (("one", 1), ("two", 2)):
        bench.sql(f"CREATE NAMESPACE lake.{bench.raw}{schema}")
        bench.sql(f"CREATE TABLE lake.{bench.raw}{schema}.t USING iceberg AS SELECT {value} AS id")
    source = "sources:\n  - name: src\n    schema: {raw}%s\n    table: t\n"
    bench.write("sources/s.yml", source % "one")
    bench.model("m", "SELECT id * 10 AS id FROM src")
    bench.model("v", "MODEL (materialized view);\nSELECT src.id, m.id AS ten FROM src, m")
    bench.told()
    assert bench.rows("v") == [(1, 10)]
    bench.write("sources/s.yml", source % "two")
    bench.model("m", "MODEL (alias other);\nSELECT id * 10 AS id FROM src")
    bench.told()
    assert bench.rows("v") == [(2, 20)]
    assert bench.told() == {}


def test_nested_columns_are_read_by_field_and_never_by_place(bench: Workbench) -> None:
    bench.sql(
        "CREATE TABLE lake.{raw}.n (s STRUCT<a: STRING, b: STRING>,"
        " l ARRAY<STRUCT<x: INT, y: INT>>) USING iceberg"
    )
    bench.sql(
        "INSERT INTO lake.{raw}.n VALUES (named_struct('a', 'A', 'b', 'B'),"
        " array(named_struct('x', 1, 'y', 2)))"
    )
    bench.model("n", "SELECT s.a, s.b, l[0].x AS x, l[0].y AS y FROM {raw}.n")
    bench.told()
    bench.sql("ALTER TABLE lake.{raw}.n ALTER COLUMN s.b FIRST")
    bench.sql("ALTER TABLE lake.{raw}.n ALTER COLUMN l.element.y FIRST")
    bench.sql("ALTER TABLE lake.{raw}.n ADD COLUMN s.c INT")
    assert bench.told() == {"n": ("unchanged", "schema_changed")}
    assert bench.rows("n") == [("A", "B", 1, 2)]


def test_hints_and_white_space_do_not_move_what_is_read(bench: Workbench) -> None:
    bench.model("m", "SELECT 1 AS id")
    bench.model("h", "SELECT '12345678' AS v, x.id FROM (SELECT /*+ BROADCAST(m) */ * FROM m) AS x")
    bench.told()
    assert bench.rows("h") == [("12345678", 1)]
    found = bench.project().query("\n   SELECT id FROM m JOIN h USING (id) ;\n").collect()
    assert [tuple(row) for row in found] == [(1,)]


def test_queries_run_under_the_settings_that_identity_speaks_of(bench: Workbench) -> None:
    bench.write(
        "sqlbuild_project.toml",
        bench.toml('[spark.conf]\n"spark.sql.session.timeZone" = "Asia/Tokyo"\n'),
    )
    bench.model("z", "SELECT current_timezone() AS zone")
    bench.told()
    assert bench.rows("z") == [("Asia/Tokyo",)]


def test_a_moved_or_copied_project_is_refused_before_anything_is_touched(
    bench: Workbench, tmp_path: Path
) -> None:
    if not bench.settings.warehouse:
        pytest.skip("a server that moved takes care of its own paths")
    bench.model("m", "SELECT 1 AS id")
    bench.told()
    bench.sql("CREATE TABLE lake.{raw}.t AS SELECT 1 AS id")
    of_someone = f"SELECT * FROM {bench.raw}.t"
    here = bench.toml()
    moved = bench.toml().replace(
        f'warehouse = "{bench.settings.warehouse}"', f'warehouse = "{tmp_path}"'
    )
    bench.write("sqlbuild_project.toml", moved)
    queries = [partial(bench.project().query, sql) for sql in ("SELECT * FROM m", of_someone)]
    for call in (bench.plan, *queries):
        with pytest.raises(SqbError) as error:
            call()
        assert (error.value.code, error.value.exit_code) == ("L002", 2)
    bench.write("sqlbuild_project.toml", here)
    assert bench.told() == {}


def test_fail_fast_starts_nothing_new_and_says_so(bench: Workbench) -> None:
    bench.model("a_broken", "SELECT 1/0 AS x")
    bench.model("b_below", "SELECT x FROM a_broken")
    bench.model("c_other", "SELECT 1 AS x")
    result = bench.build(fail_fast=True, concurrency=1)
    ends = {n.name: (n.status, n.blocked_by) for n in result.nodes}
    assert ends == {
        "a_broken": ("failed", ()),
        "b_below": ("blocked", ("a_broken",)),
        "c_other": ("blocked", ()),
    }


def test_a_record_names_the_snapshot_of_every_table_that_was_read(shop: Workbench) -> None:
    shop.told()
    recorded = shop.project().observe().recorded
    orders = f"{shop.raw}.orders"
    # `totals` reads the orders through the view `stg`
    assert set(recorded["totals"].pins) == {"names", orders}
    assert recorded["totals"].pins["names"] == recorded["names"].snapshot
    snapshots = shop.sql(f"SELECT snapshot_id FROM lake.{orders}.snapshots")
    assert (recorded["totals"].pins[orders],) in snapshots
