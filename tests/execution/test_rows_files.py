"""Row-level refresh over sources without versions: files, and what is watched by a value alone."""

from __future__ import annotations

import sqlite3
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from kinds import built, counts, how, insert, refused, source

if TYPE_CHECKING:
    from conftest import Workbench

#: Rows of files and of a table, one after the other.
BOTH = "SELECT k, v FROM f UNION ALL SELECT id AS k, v FROM {raw}.p"
KINDS = {
    "plain": BOTH,
    "groups": f"SELECT k, COUNT(*) AS n, SUM(v) AS total FROM ({BOTH}) GROUP BY k",
    "keyed": "MODEL (materialized merge, unique_key [k]);\n"
    f"SELECT k, MAX(v) AS most FROM ({BOTH}) GROUP BY k",
    "joined": "SELECT p.id, p.v, f.v AS other FROM {raw}.p AS p LEFT JOIN f ON f.k = p.id",
}


def watched(bench: Workbench, *, immutable: bool) -> None:
    """Files whose value, the latest day, need not move when rows do."""
    bench.write("data/f/1.csv", "k,v,day\n1,10,2026-02-01\n2,20,2026-02-01\n")
    bench.write(
        "sources/f.yml",
        "sources:\n  - name: f\n    path: data/f\n    format: csv\n"
        f"    immutable_files: {str(immutable).lower()}\n"
        "    freshness: {strategy: column, column: day, type: timestamp}\n",
    )
    source(bench, "p", "id INT, v INT", "(1, 1)", "(3, 3)")


def right(bench: Workbench) -> None:
    """Every table of these kinds is what its query gives of all that there is."""
    frame = bench.spark.read.option("header", "true").option("inferSchema", "true")
    frame.csv(str(bench.root / "data/f")).createOrReplaceTempView("f")
    for name, text in KINDS.items():
        sql = text.rpartition(";\n")[2].replace("{raw}.p", "lake.{raw}.p")
        assert Counter(bench.rows(name)) == Counter(bench.sql(sql)), name


@pytest.mark.parametrize("immutable", [True, False])
def test_rows_that_come_while_the_value_of_their_source_stands_still(
    bench: Workbench, immutable: bool
) -> None:
    watched(bench, immutable=immutable)
    for name, text in KINDS.items():
        bench.model(name, text)
    bench.build()
    if immutable:
        bench.write("data/f/late.csv", "k,v,day\n3,33,2026-01-31\n")
    else:
        bench.write("data/f/1.csv", "k,v,day\n1,11,2026-02-01\n3,33,2026-02-01\n")
    # nothing tells that rows came, until a model runs for another reason
    assert bench.told() == {}
    insert(bench, "p", "(4, 4)")
    nodes = bench.build(refresh="rows").nodes
    assert {node.status for node in nodes} == {"success"}
    right(bench)
    if immutable:
        assert "append" in {how(node) for node in nodes}
    bench.write("data/f/new.csv", "k,v,day\n4,44,2026-02-02\n")
    bench.build(refresh="rows")
    right(bench)
    assert bench.told() == {}


def test_a_log_gets_the_rows_that_came_while_the_value_stood_still(bench: Workbench) -> None:
    watched(bench, immutable=True)
    bench.model("up", "SELECT 1 AS one")
    bench.model("m", f"MODEL (materialized append);\n{BOTH}")
    bench.model("n", "MODEL (materialized append);\nSELECT k, v, one FROM f CROSS JOIN up")
    built(bench)
    bench.write("data/f/late.csv", "k,v,day\n3,33,2026-01-31\n")
    # a record that is written again for another reason says what was read, not what is there
    bench.model("up", "SELECT 2 - 1 AS one")
    assert bench.told()["n"] == ("current", "upstream_unchanged")
    insert(bench, "p", "(4, 4)")
    assert counts(built(bench)) == (2, 0, 6)
    bench.write("data/f/new.csv", "k,v,day\n4,44,2026-02-02\n")
    assert counts(built(bench, "n")) == (2, 0, 4)
    assert Counter(bench.rows("n")) == Counter([(1, 10, 1), (2, 20, 1), (3, 33, 1), (4, 44, 1)])
    assert counts(built(bench, force=True)) == (0, 0, 7)


def test_what_was_not_read_is_no_mistake_of_the_table(bench: Workbench) -> None:
    watched(bench, immutable=True)
    bench.model("m", "SELECT k, v FROM f")
    built(bench)
    (found,) = bench.project().verify(full=True)
    assert (found.equal, found.against) == (True, "query")
    bench.write("data/f/late.csv", "k,v,day\n3,33,2026-01-31\n")
    (found,) = bench.project().verify(full=True)
    assert (found.equal, found.against) == (True, "record")
    assert "no versions" in found.note


def test_a_table_of_a_database_is_read_whole_though_its_value_stands_still(
    bench: Workbench,
) -> None:
    conf = "".join(
        f'"{key}" = "{value}"\n'
        for key, value in bench.settings.conf.items()
        if key.startswith("spark.sql.catalog.")
    )
    bench.write("sqlbuild_project.toml", bench.toml(f"[spark.conf]\n{conf}"))
    path = bench.settings.conf["spark.sql.catalog.app.url"].removeprefix("jdbc:sqlite:")
    table = f"people_{bench.schema}"

    def database(*statements: str) -> None:
        with sqlite3.connect(path) as db:
            for statement in statements:
                db.execute(statement)

    database(
        f"CREATE TABLE {table} (id INTEGER, name TEXT)",
        f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')",
    )
    bench.write(
        "sources/s.yml",
        f"sources:\n  - name: people\n    catalog: app\n    table: {table}\n"
        "    freshness: {strategy: column, column: id, type: integer}\n",
    )
    source(bench, "p", "id BIGINT, x INT", "(1, 10)", "(2, 20)")
    bench.model(
        "m", "SELECT p.id, p.x, u.name FROM {raw}.p AS p LEFT JOIN people AS u ON u.id = p.id"
    )
    bench.model(
        "log",
        "MODEL (materialized append);\nSELECT p.id, u.name FROM {raw}.p AS p"
        " JOIN people AS u ON u.id = p.id",
    )
    built(bench)
    database(f"UPDATE {table} SET name = 'other' WHERE id = 1")
    insert(bench, "p", "(1, 11)")
    nodes = {node.name: node for node in bench.build().nodes}
    assert sorted(bench.rows("m")) == [(1, 10, "other"), (1, 11, "other"), (2, 20, "b")]
    assert nodes["log"].error is None
    assert sorted(bench.rows("log")) == [(1, "a"), (1, "other"), (2, "b")]


@pytest.mark.parametrize("late", ['{"k": 3}', '{"v": 30, "k": 3}', ""])
def test_files_may_lack_columns_that_others_have(bench: Workbench, late: str) -> None:
    bench.write("data/f/1.json", '{"k": 1, "v": 10}\n{"k": 2, "v": 20}\n')
    bench.write(
        "sources/f.yml",
        "sources:\n  - name: f\n    path: data/f\n    format: json\n    immutable_files: true\n"
        "    columns: [{name: v, type: BIGINT}]\n",
    )
    bench.model("m", "SELECT k, v FROM f")
    bench.model("log", "MODEL (materialized append);\nSELECT k, v FROM f")
    built(bench)
    bench.write("data/f/2.json", late + "\n")
    nodes = {node.name: node for node in bench.build(refresh="rows").nodes}
    rows = [(1, 10), (2, 20)] + ([(3, 30 if "v" in late else None)] if late else [])
    for name, node in nodes.items():
        assert node.warnings == ()
        assert (node.error, how(node)) == (None, "append")
        assert Counter(bench.rows(name)) == Counter(rows)


def test_files_that_know_their_types_may_lack_columns_that_others_have(bench: Workbench) -> None:
    bench.write(
        "sources/f.yml",
        "sources:\n  - {name: f, path: data/f, format: parquet, immutable_files: true}\n",
    )

    def put(name: str, sql: str) -> None:
        bench.spark.sql(sql).coalesce(1).write.parquet(str(bench.root / "data/f" / name))

    put("1", "SELECT 1 AS k, 10 AS v")
    bench.model("m", "SELECT k FROM f")
    built(bench)
    put("2", "SELECT 2 AS k, 20 AS v, 'x' AS more")
    assert built(bench, refresh="rows").rows is not None
    for name, sql in (("3", "SELECT 3 AS k"), ("4", "SELECT 'y' AS more, 40 AS v, 4 AS k")):
        put(name, sql)
        node = built(bench, refresh="rows")
        assert (how(node), counts(node)[:2]) == ("append", (1, 0))
    assert bench.rows("m") == [(1,), (2,), (3,), (4,)]


def test_files_beside_folders_of_partitions_are_refused(bench: Workbench) -> None:
    bench.write("data/f/1.csv", "k,v\n1,10\n")
    bench.write(
        "sources/f.yml",
        "sources:\n  - {name: f, path: data/f, format: csv, immutable_files: true}\n",
    )
    bench.model("m", "SELECT k, v FROM f")
    built(bench)
    bench.write("data/f/day=1/2.csv", "k,v\n2,20\n")
    error = refused(bench)
    assert (error["code"], "day" in str(error["message"])) == ("X001", True)
    assert bench.rows("m") == [(1, 10)]
    (bench.root / "data/f/1.csv").unlink()
    built(bench)
    assert [(k, v) for k, v, *_ in bench.rows("m")] == [(2, 20)]


def test_empty_files_have_no_columns(bench: Workbench) -> None:
    bench.write("data/f/1.json", "")
    bench.write("sources/f.yml", "sources:\n  - {name: f, path: data/f, format: json}\n")
    bench.model("m", "SELECT * FROM f")
    error = refused(bench)
    assert (error["code"], "no columns" in str(error["message"])) == ("X001", True)
