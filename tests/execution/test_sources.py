"""Sources of every kind on a real Spark: files, other catalogs, expressions, freshness values."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqb.api import Project
from sqb.errors import SqbError
from sqb.execution.events import Event

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.execution.source_freshness import SourceFreshness


def without_spark(bench: Workbench) -> dict[str, str]:
    """What would run, decided by a project that has no session: starting one would fail here."""
    plan = Project(bench.root, environ=bench.environ).plan()
    return {n.name: n.reason for n in plan.nodes if n.action != "skip"}


def freshness(bench: Workbench, *select: str, state: bool = True) -> dict[str, SourceFreshness]:
    return {s.name: s for s in bench.project().freshness(select, state=state)}


def statuses(bench: Workbench) -> dict[str, str]:
    return {name: source.status for name, source in freshness(bench).items()}


def other_catalogs(bench: Workbench) -> str:
    lines = [
        f'"{key}" = "{value}"'
        for key, value in bench.settings.conf.items()
        if key.startswith("spark.sql.catalog.")
    ]
    return "[spark.conf]\n" + "\n".join(lines) + "\n"


class TestFiles:
    @pytest.fixture
    def files(self, bench: Workbench) -> Workbench:
        bench.write("data/people/a.csv", "id,code,born\n1,007,1990-01-31\n2,008,\n")
        bench.write("data/events.json", '{"id": 1, "at": {"x": 1.5}}\n{"id": 2}\n')
        bench.write(
            "sources/s.yml",
            "sources:\n"
            "  - {name: people, path: data/people, format: csv, "
            "columns: [{name: CODE, type: string}]}\n"
            "  - {name: events, path: data/*.json, format: json, immutable_files: true}\n"
            "  - {name: facts, path: data/facts, format: parquet}\n",
        )
        bench.spark.sql("SELECT 1 AS id, 'a' AS x").write.parquet(
            str(bench.root / "data/facts/dt=2026-01-01")
        )
        bench.model("p", "SELECT * FROM people")
        bench.model("e", "SELECT e.id, e.at.x FROM events AS e")
        bench.model("f", 'SELECT id, x, dt FROM __source("facts")')
        return bench

    def test_a_life_of_files(self, files: Workbench) -> None:
        assert files.told() == dict.fromkeys(("p", "e", "f"), ("success", "first_run"))
        assert files.rows("p", "id, code, string(born)") == [
            (1, "007", "1990-01-31"),
            (2, "008", None),
        ]
        assert files.rows("e") == [(1, 1.5), (2, None)]
        assert files.rows("f", "id, x, string(dt)") == [(1, "a", "2026-01-01")]
        assert without_spark(files) == {}
        assert statuses(files) == dict.fromkeys(("people", "events", "facts"), "unchanged")
        # a file is added, with a column more
        files.write("data/people/b.csv", "id,code,born\n3,x,2000-02-29\n")
        files.spark.sql("SELECT 2 AS id, 'b' AS x, 3 AS more").write.parquet(
            str(files.root / "data/facts/dt=2026-01-02")
        )
        assert without_spark(files) == {"p": "source_changed", "f": "source_changed"}
        assert statuses(files)["people"] == "changed"
        files.told()
        assert [row[0] for row in files.rows("p")] == [1, 2, 3]
        assert files.rows("f", "id, string(dt)") == [(1, "2026-01-01"), (2, "2026-01-02")]
        # one goes, one changes
        (files.root / "data/people/a.csv").unlink()
        files.write("data/people/b.csv", "id,code,born\n4,y,2000-02-29\n")
        assert files.told() == {"p": ("success", "source_changed")}
        assert files.rows("p", "id, code") == [(4, "y")]
        # how files are read is part of what they are
        files.write(
            "sources/s.yml",
            (files.root / "sources/s.yml")
            .read_text()
            .replace("CODE, type: string", "id, type: string"),
        )
        assert set(without_spark(files)) == {"p"}
        assert files.project().query("SELECT count(*) AS n FROM people").collect()[0].n == 1

    def test_a_file_that_changes_while_it_is_read_is_never_recorded(self, files: Workbench) -> None:
        def meddle(event: Event) -> None:
            if event.kind == "node_started":
                files.write("data/people/a.csv", "id,code,born\n9,009,1990-01-31\n")

        result = files.build("p", listener=meddle)
        (node,) = result.nodes
        assert node.status == "failed"
        assert node.error is not None
        assert node.error["code"] == "X006"
        assert files.told("p") == {"p": ("success", "first_run")}
        assert files.rows("p", "id, code") == [(9, "009")]

    def test_a_file_with_other_columns_fails_and_is_told(self, files: Workbench) -> None:
        files.write("data/people/b.csv", "code,id,born\n007,3,2000-02-29\n")
        (node,) = files.build("p").nodes
        assert node.error is not None
        assert "header does not conform" in str(node.error["message"])
        files.write("data/people/b.csv", "id,born\n3,2000-02-29\n")
        (files.root / "data/people/a.csv").unlink()
        (node,) = files.build("p").nodes
        assert node.error is not None
        assert "no column `CODE`" in str(node.error["message"])

    def test_no_file_is_no_source(self, files: Workbench) -> None:
        (files.root / "data/events.json").unlink()
        with pytest.raises(SqbError) as error:
            files.plan("e")
        assert error.value.code == "S303"
        assert "no file is at data/*.json" in error.value.message


class TestValues:
    @pytest.fixture
    def watched(self, bench: Workbench) -> Workbench:
        bench.sql(
            "CREATE TABLE lake.{raw}.orders (id INT, ts TIMESTAMP, kind STRING) USING iceberg"
        )
        bench.sql("INSERT INTO lake.{raw}.orders VALUES (1, TIMESTAMP'2026-01-31 06:00:00', 'a')")
        bench.write(
            "sources/s.yml",
            "sources:\n"
            "  - name: orders\n"
            "    schema: {raw}\n"
            "    freshness: {strategy: column, column: ts, type: timestamp, filter: kind = 'a'}\n"
            "  - name: latest\n"
            "    expression: SELECT max(id) AS id FROM {raw}.orders\n",
        )
        bench.model("counted", "SELECT count(*) AS n FROM orders")
        bench.model("seen", "MODEL (materialized view);\nSELECT id FROM orders")
        bench.model("behind", "SELECT max(id) AS id FROM seen")
        bench.model("newest", "SELECT id FROM latest")
        return bench

    def test_a_life_of_values(self, watched: Workbench) -> None:
        watched.told()
        assert watched.rows("newest") == [(1,)]
        assert without_spark(watched) == {}
        found = freshness(watched)
        assert found["orders"].current == "2026-01-31T06:00:00+00:00"
        # an expression is as old as the last commit to what it reads
        age = found["latest"].age
        assert age is not None
        assert age.seconds is not None
        assert {n: s.status for n, s in found.items()} == {
            "orders": "unchanged",
            "latest": "unchanged",
        }
        # rows that the value does not see: nothing runs by it, and the plan says so
        watched.sql("INSERT INTO lake.{raw}.orders VALUES (2, TIMESTAMP'2026-02-01 06:00:00', 'b')")
        plan = watched.plan()
        assert {n.name: n.reason for n in plan.nodes if n.action == "run"} == {
            "newest": "source_changed"
        }
        assert [w.code for w in plan.warnings] == ["S305"]
        assert watched.told() == {"newest": ("success", "source_changed")}
        # the value was asked for once: from now on it stands, also without the cache
        assert without_spark(watched) == {}
        assert watched.rows("counted") == [(1,)]
        # rows that it sees: read at the snapshot that gave the value
        watched.sql("INSERT INTO lake.{raw}.orders VALUES (3, TIMESTAMP'2026-02-02 06:00:00', 'a')")
        assert watched.told() == {
            "counted": ("success", "source_changed"),
            "behind": ("success", "upstream_changed"),
            "newest": ("success", "source_changed"),
        }
        assert watched.rows("counted") == [(3,)]
        (watched.root / ".sqb/cache/freshness.mp").unlink()
        assert without_spark(watched) == {}

    def test_a_failed_build_keeps_the_old_observation(self, watched: Workbench) -> None:
        watched.told()
        watched.sql("INSERT INTO lake.{raw}.orders VALUES (4, TIMESTAMP'2026-03-01 06:00:00', 'a')")
        watched.model("counted", "SELECT 1 / 0 AS n FROM orders")
        result = watched.build()
        assert [n.name for n in result.nodes if n.status == "failed"] == ["counted"]
        found = freshness(watched)["orders"]
        assert (found.status, found.previous) == ("changed", "2026-01-31T06:00:00+00:00")

    def test_an_old_source_blocks_and_the_rest_is_built(self, watched: Workbench) -> None:
        text = (watched.root / "sources/s.yml").read_text()
        text = text.replace("kind = 'a'}", "kind = 'a', age_policy: {error_after: 1d}}")
        watched.write("sources/s.yml", text)
        watched.environ["SQB_NOW"] = "2026-02-01T06:00:00Z"
        assert {n.status for n in watched.build().nodes} == {"success"}
        watched.environ["SQB_NOW"] = "2026-02-01T06:00:01Z"
        watched.model("newest", "SELECT id + 1 AS id FROM latest")
        result = watched.build()
        ended = {n.name: (n.status, n.reason) for n in result.nodes}
        blocked = ("blocked", "source_freshness_error")
        assert ended == {
            "counted": blocked,
            "seen": blocked,
            "behind": blocked,
            "newest": ("success", "query_changed"),
        }
        assert len(result.failed) == 3

    def test_kinds_of_values_and_one_bad_source_beside_good_ones(self, bench: Workbench) -> None:
        bench.sql("CREATE TABLE lake.{raw}.none (id INT) USING iceberg")
        values = {
            "a_date": ("timestamp", "SELECT DATE'2026-01-31'"),
            "a_moment": ("timestamp", "SELECT TIMESTAMP'2026-01-31 06:00:00+02:00'"),
            "a_local": ("timestamp", "SELECT TIMESTAMP_NTZ'2026-01-31 06:00:00'"),
            "a_number": ("integer", "SELECT max(id) FROM range(5)"),
            "a_text": ("string", "SELECT 'it''s'"),
            "nothing": ("integer", "SELECT max(id) FROM {raw}.none"),
            "wrong": ("integer", "SELECT max(nowhere) FROM {raw}.none"),
            "many": ("integer", "SELECT id FROM range(3)"),
        }
        entries = "".join(
            f"  - name: {name}\n    expression: SELECT 1 AS x\n    freshness:\n"
            f"      strategy: sql\n      type: {kind}\n      query: {query!r}\n"
            for name, (kind, query) in values.items()
        )
        bench.write("sources/s.yml", f"sources:\n{entries}")
        bench.write(
            "sqlbuild_project.toml",
            bench.toml('[spark.conf]\n"spark.sql.session.timeZone" = "Europe/Berlin"\n'),
        )
        found = freshness(bench, *values, state=False)
        assert {name: source.current for name, source in found.items()} == {
            "a_date": "2026-01-30T23:00:00+00:00",
            "a_moment": "2026-01-31T04:00:00+00:00",
            "a_local": "2026-01-31T05:00:00+00:00",
            "a_number": "4",
            "a_text": "it's",
            "nothing": None,
            "wrong": None,
            "many": None,
        }
        assert "NULL" in found["nothing"].message
        assert "nowhere" in found["wrong"].message


class TestOtherCatalogs:
    def test_a_second_iceberg_catalog_is_pinned_without_spark(self, bench: Workbench) -> None:
        bench.write("sqlbuild_project.toml", bench.toml(other_catalogs(bench)))
        bench.sql("CREATE NAMESPACE IF NOT EXISTS other.{raw}")
        bench.sql("CREATE TABLE other.{raw}.t (id INT) USING iceberg")
        bench.sql("INSERT INTO other.{raw}.t VALUES (1)")
        bench.write("sources/s.yml", "sources:\n  - {name: t, catalog: other, schema: {raw}}\n")
        bench.model("named", "SELECT id FROM t")
        bench.model("spelled", "MODEL (materialized view);\nSELECT id FROM other.{raw}.t")
        bench.model("read", "SELECT sum(id) AS s FROM spelled")
        bench.told()
        assert bench.rows("spelled") == bench.rows("named") == [(1,)]
        assert without_spark(bench) == {}
        assert (
            bench.project()
            .query("SELECT id FROM other.{raw}.t".replace("{raw}", bench.raw))
            .count()
        )
        assert "VERSION AS OF" in bench.project().explain("named").sql
        bench.sql("INSERT INTO other.{raw}.t VALUES (2)")
        assert without_spark(bench) == {"named": "source_changed", "read": "upstream_changed"}
        bench.told()
        assert bench.rows("read") == [(3,)]

    def test_a_database_is_asked_on_each_plan_or_unknown(self, bench: Workbench) -> None:
        bench.write("sqlbuild_project.toml", bench.toml(other_catalogs(bench)))
        path = bench.settings.conf["spark.sql.catalog.app.url"].removeprefix("jdbc:sqlite:")
        table = f"users_{bench.schema}"
        with sqlite3.connect(path) as db:
            db.execute(f"CREATE TABLE {table} (id INTEGER, name TEXT)")
            db.execute(f"INSERT INTO {table} VALUES (1, 'a')")
        watch = "freshness: {strategy: column, column: id, type: integer}"
        bench.write(
            "sources/s.yml",
            "sources:\n"
            f"  - {{name: users, catalog: app, table: {table}, {watch}}}\n"
            f"  - {{name: blind, catalog: app, table: {table}}}\n",
        )
        bench.model("u", "SELECT id, name FROM users")
        bench.model("b", "SELECT count(*) AS n FROM blind")
        bench.told()
        assert bench.rows("u") == [(1, "a")]
        plan = bench.plan()
        assert {n.name: n.reason for n in plan.nodes if n.action == "run"} == {
            "b": "source_unknown"
        }
        assert [(w.code, w.node) for w in plan.warnings] == [("S306", "blind")]
        with sqlite3.connect(path) as db:
            db.execute(f"INSERT INTO {table} VALUES (2, 'b')")
        assert bench.told()["u"] == ("success", "source_changed")
        readings = {name: source.reading for name, source in freshness(bench).items()}
        assert readings == {"users": "observed", "blind": "unknown"}
        assert Path(path).exists()


def test_a_view_not_built_yet_is_read_as_it_stands_though_nothing_names_its_source(
    bench: Workbench,
) -> None:
    bench.sql("CREATE TABLE lake.{raw}.a AS SELECT 1 AS id")
    bench.sql("CREATE TABLE lake.{raw}.b AS SELECT 2 AS id")
    bench.model("v", "MODEL (materialized view);\nSELECT id FROM {raw}.a")
    bench.model("t", "SELECT id FROM v")
    bench.told()
    bench.model("v", "MODEL (materialized view);\nSELECT id FROM {raw}.b")
    assert ".`a`" in bench.project().explain("t").sql
    assert bench.told("t", force=True) == {"t": ("unchanged", "forced")}
    assert bench.told() == {
        "v": ("success", "query_changed"),
        "t": ("success", "upstream_changed"),
    }
    assert bench.rows("t") == [(2,)]


def test_a_branch_and_a_tag_that_move_are_changes_of_their_table(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1)")
    bench.sql("ALTER TABLE lake.{raw}.t CREATE BRANCH later")
    bench.sql("ALTER TABLE lake.{raw}.t CREATE TAG then")
    bench.model("ahead", "SELECT id FROM {raw}.t VERSION AS OF 'later'")
    bench.model("behind", "SELECT id FROM {raw}.t VERSION AS OF 'then'")
    bench.build()
    assert without_spark(bench) == {}
    bench.sql("INSERT INTO lake.{raw}.t.branch_later VALUES (2)")
    assert without_spark(bench)["ahead"] == "source_changed"
    bench.build()
    assert (bench.rows("ahead"), bench.rows("behind")) == ([(1,), (2,)], [(1,)])
    bench.sql("INSERT INTO lake.{raw}.t VALUES (3)")
    bench.sql("ALTER TABLE lake.{raw}.t CREATE OR REPLACE TAG then")
    bench.build()
    assert (bench.rows("ahead"), bench.rows("behind")) == ([(1,), (2,)], [(1,), (3,)])
    assert without_spark(bench) == {}
