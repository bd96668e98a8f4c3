"""What engines and people do to tables between two builds, and how a refresh by rows answers."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from engine import COW, MOR, SHARE, Script
from engine import SCRIPTS as EVERY
from proof import BY_ROWS, at_home, differences, way_of

from sqb.execution.change_sets import Bound
from sqb.execution.source_changes import Source

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.execution.events import Event, NodeResult

pytestmark = pytest.mark.proof

ALL = os.environ.get("SQB_TEST_PROOF") == "all"
SCRIPTS = {name: script for name, script in EVERY.items() if ALL or name in SHARE}


class Told:
    """What became of every script after two builds."""

    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        for name, script in SCRIPTS.items():
            self._do(name, script.before)
            bench.model(name, script.header + self._sql(name, script.sql))
        first = bench.build()
        assert {n.status for n in first.nodes} == {"success"}, first.nodes
        self.heads = self._heads()
        for name, script in SCRIPTS.items():
            self._do(name, script.after)
        result = bench.build(refresh="rows")
        self.nodes = {node.name: node for node in result.nodes}
        self.published = {n for n, head in self._heads().items() if head != self.heads[n]}
        queries = {
            name: script.sql.replace("{t}", f"raw.{name}") for name, script in SCRIPTS.items()
        }
        self.wrong = differences(bench, queries)

    def _sql(self, name: str, text: str) -> str:
        return text.replace("{t}", f"{{raw}}.{name}")

    def _do(self, name: str, statements: tuple[str, ...]) -> None:
        bench = self.bench
        table = f"lake.{bench.raw}.{name}"
        for statement in statements:
            if statement == "ROLLBACK":
                ids = bench.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")
                bench.sql(
                    f"CALL lake.system.rollback_to_snapshot('{bench.raw}.{name}', {ids[0][0]})"
                )
            elif statement == "EXPIRE":
                ids = bench.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")
                gone = ", ".join(str(row[0]) for row in ids[:-1])
                bench.sql(
                    f"CALL lake.system.expire_snapshots(table => '{bench.raw}.{name}',"
                    f" snapshot_ids => array({gone}))"
                )
            else:
                names = {"t": table, "m": f"lake.{bench.schema}.{name}"}
                names |= {"name": f"{bench.raw}.{name}", "model": f"{bench.schema}.{name}"}
                text = statement
                for key, value in names.items():
                    text = text.replace(f"{{{key}}}", value)
                bench.sql(text)

    def _heads(self) -> dict[str, str]:
        heads = self.bench.project().catalog.heads([self.bench.schema])
        return {head.name: head.location for head in heads.values()}


@pytest.fixture(scope="module")
def told(shared_bench: Workbench) -> Told:
    return Told(shared_bench)


@pytest.mark.parametrize("name", SCRIPTS, ids=[f"{n} {s.title}" for n, s in SCRIPTS.items()])
def test_a_change_is_answered_rightly(told: Told, name: str) -> None:
    script: Script = SCRIPTS[name]
    node = told.nodes[name]
    assert node.error is None
    assert name not in told.wrong, told.wrong[name]
    assert way_of(node) in script.ways.split(" | "), node.strategy
    assert node.status == script.status
    assert (name in told.published) == (node.status == "success")


def only(bench: Workbench, name: str = "m", **options: object) -> NodeResult:
    """Build by rows and give one node."""
    result = bench.build(refresh="rows", **options)
    return next(node for node in result.nodes if node.name == name)


def ordered(bench: Workbench, sql: str) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT, g INT, v INT, at TIMESTAMP) USING iceberg")
    bench.sql(
        "INSERT INTO lake.{raw}.t SELECT CAST(id AS INT), CAST(id % 3 AS INT), CAST(id AS INT),"
        " TIMESTAMP'2026-01-01 00:30:00' + make_interval(0, 0, 0, 0, CAST(id AS INT) * 12)"
        " FROM range(9)"
    )
    bench.model("m", sql)
    assert only(bench).status == "success"


def same(bench: Workbench, name: str, sql: str) -> None:
    assert differences(bench, {name: sql}) == {}


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        (COW, "INSERT"),
        (COW, "UPDATE"),
        (MOR.replace("{version}", "2"), "DELETE"),
        (MOR.replace("{version}", "3"), "UPDATE"),
    ],
)
def test_columns_that_came_or_were_widened_cost_one_rebuild(
    bench: Workbench, kind: str, first: str
) -> None:
    """The version that was read last is still of the older columns then."""
    bench.sql(f"CREATE TABLE lake.{{raw}}.t (id INT, g INT, v INT) USING iceberg {kind}")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)")
    queries = {
        "every": "SELECT * FROM raw.t",
        "most": "SELECT g, max(v) AS most FROM raw.t GROUP BY g",
        "rank": "SELECT id, v, rank() OVER (PARTITION BY g ORDER BY v) AS n FROM raw.t",
    }
    for name, sql in queries.items():
        bench.model(name, at_home(sql))

    def check() -> set[str]:
        result = bench.build(refresh="rows")
        assert differences(bench, queries) == {}
        return {way_of(node) for node in result.nodes}

    check()
    bench.sql("ALTER TABLE lake.{raw}.t ADD COLUMN w INT")
    bench.sql("ALTER TABLE lake.{raw}.t ALTER COLUMN v TYPE BIGINT")
    assert check() == {"full:SCHEMA_CHANGED"}
    statements = {
        "INSERT": "INSERT INTO lake.{raw}.t VALUES (4, 2, 5000000000, 4)",
        "DELETE": "DELETE FROM lake.{raw}.t WHERE id = 2",
        "UPDATE": "UPDATE lake.{raw}.t SET w = 7, v = v + 1 WHERE id = 1",
    }
    bench.sql(statements.pop(first))
    assert check() <= BY_ROWS
    for statement in statements.values():
        bench.sql(statement)
    assert check() <= BY_ROWS


def test_models_share_a_change_also_where_a_column_came(bench: Workbench) -> None:
    """What is compared once for all is what the old version had, too."""
    kind = MOR.replace("{version}", "2")
    bench.sql(f"CREATE TABLE lake.{{raw}}.t (id INT, g INT, v INT) USING iceberg {kind}")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)")
    queries = {"one": "SELECT id, v FROM raw.t", "two": "SELECT id, g FROM raw.t WHERE v > 10"}
    for name, sql in queries.items():
        bench.model(name, at_home(sql))
    bench.build()
    bench.sql("ALTER TABLE lake.{raw}.t ADD COLUMN w INT")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (4, 2, 40, 4)")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 2")
    result = bench.build(refresh="rows")
    assert {way_of(node) for node in result.nodes} == {"affected_key"}
    assert differences(bench, queries) == {}


def test_strings_with_a_collation_of_their_own_are_not_refreshed_by_rows(bench: Workbench) -> None:
    """Files can hold them, tables of Iceberg not."""
    bench.write(
        "sources/s.yml",
        "sources:\n  - {name: names, path: data, format: parquet, immutable_files: true}\n",
    )
    groups = "SELECT x, count(*) AS n FROM names GROUP BY x"
    bench.model("m", f"SELECT n, count(*) AS m FROM ({groups}) AS q GROUP BY n")
    for number, value in enumerate(("a", "A")):
        frame = bench.spark.sql(f"SELECT '{value}' COLLATE UTF8_LCASE AS x")
        frame.coalesce(1).write.parquet(str(bench.root / f"data/{number}"))
        node = only(bench)
    assert way_of(node) == "full:UNSUPPORTED"
    assert bench.rows("m") == [(2, 1)]


@pytest.mark.skipif(
    os.environ.get("SQB_TEST_SPARK", "local") != "local", reason="asks the plan for what it read"
)
@pytest.mark.parametrize("version", [2, 3])
def test_files_that_stay_are_not_read_to_compare_two_versions(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    """Eight files of a hundred rows each: a row of one goes, another file comes."""
    merge_on_read = MOR.replace("{version}", str(version))
    bench.sql(f"CREATE TABLE lake.{{raw}}.t (id INT, g INT) USING iceberg {merge_on_read}")
    for start in range(0, 800, 100):
        rows = f"range({start}, {start + 100}, 1, 1)"
        bench.sql(f"INSERT INTO lake.{{raw}}.t SELECT CAST(id AS INT), 1 FROM {rows}")
    query = "SELECT id, g FROM {raw}.t"
    bench.model("m", query)
    only(bench)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 250")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (900, 1)")
    raw, texts = Bound._raw, list[str]()

    def noted(bound: Bound, source: Source) -> str:
        texts.append(raw(bound, source))
        return texts[-1]

    monkeypatch.setattr(Bound, "_raw", noted)
    assert way_of(only(bench)) == "affected_key"
    same(bench, "m", query.replace("{raw}", "raw"))
    # the file as it was, what is left of it, and the new one
    assert scanned(bench, texts[0]) == {2: 100 + 99 + 1, 3: 100 + 2 * (99 + 1)}[version]


def scanned(bench: Workbench, sql: str) -> int:
    """How many rows Spark takes out of files for a query."""
    frame = bench.spark.sql(sql)
    frame.collect()
    plan = frame._jdf.queryExecution().executedPlan()
    if plan.nodeName() == "AdaptiveSparkPlan":
        plan = plan.finalPhysicalPlan()
    leaves, total = [plan], 0
    while leaves:
        node = leaves.pop()
        below = node.plan() if "QueryStage" in node.nodeName() else None
        children = [below] if below is not None else _listed(node.children())
        if not children:
            total += node.metrics().get("numOutputRows").get().value()
        leaves += children
    return total


def _listed(found: Any) -> list[Any]:
    return [found.apply(n) for n in range(found.size())]


def test_another_time_zone_is_another_query(bench: Workbench) -> None:
    """E16: dates of instants are other dates there."""
    ordered(bench, "SELECT date_trunc('DAY', at) AS d, count(*) AS n FROM {raw}.t GROUP BY 1")
    zone = '[spark.conf]\n"spark.sql.session.timeZone" = "Asia/Tokyo"\n'
    bench.write("sqlbuild_project.toml", bench.toml(zone))
    bench.sql("INSERT INTO lake.{raw}.t VALUES (100, 1, 1, TIMESTAMP'2026-01-01 20:00:00')")
    assert way_of(only(bench)) == "full:DEFINITION_CHANGED"


@pytest.mark.parametrize("today", ["current_date()", "DATE'today'"])
def test_a_day_that_passes_moves_rows_over_a_filter(bench: Workbench, today: str) -> None:
    """E17: two runs on one day, then the next day, then rows and a day at once."""
    query = f"SELECT id, g FROM {{raw}}.t WHERE CAST(at AS DATE) < {today}"
    bench.environ["SQB_NOW"] = "2026-01-02T08:00:00Z"
    ordered(bench, query)

    def check(way: str, day: str) -> None:
        node = only(bench)
        assert way_of(node) == way, node.strategy
        sql = query.replace("{raw}", "raw").replace(today, f"DATE'{day}'")
        same(bench, "m", sql)

    assert bench.told() == {}
    bench.sql("INSERT INTO lake.{raw}.t VALUES (100, 1, 1, TIMESTAMP'2026-01-01 20:00:00')")
    check("append", "2026-01-02")
    bench.environ["SQB_NOW"] = "2026-01-03T08:00:00Z"
    check("affected_key", "2026-01-03")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id IN (0, 5, 6)")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (101, 1, 1, TIMESTAMP'2026-01-03 20:00:00')")
    bench.environ["SQB_NOW"] = "2026-01-04T08:00:00Z"
    check("affected_key", "2026-01-04")
    bench.environ["SQB_NOW"] = "2026-01-01T08:00:00Z"
    check("affected_key", "2026-01-01")
    assert bench.rows("m") == []


def test_a_string_that_may_be_a_day_makes_stale_and_is_left_to_spark(bench: Workbench) -> None:
    """Whether it is compared with days or with strings, only the types would tell."""
    bench.environ["SQB_NOW"] = "2026-01-02T08:00:00Z"
    ordered(bench, "SELECT id, g FROM {raw}.t WHERE CAST(at AS DATE) < 'today'")
    assert bench.told() == {}
    bench.environ["SQB_NOW"] = "2026-01-03T08:00:00Z"
    assert bench.told() == {"m": ("unchanged", "constant_changed")}
    bench.sql("INSERT INTO lake.{raw}.t VALUES (100, 1, 1, TIMESTAMP'2026-01-01 20:00:00')")
    assert way_of(only(bench)) == "full:VOLATILE"
    assert len(bench.rows("m")) == 10


def test_a_view_that_is_another_is_another_query(bench: Workbench) -> None:
    """E19, from both sides: the rows below a view move, then the view itself does."""
    bench.model("v", "MODEL (materialized view);\nSELECT id, g, v FROM {raw}.t WHERE g < 2")
    ordered(bench, "SELECT g, max(v) AS most FROM v GROUP BY g")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 7")
    assert way_of(only(bench)) == "affected_key"
    same(bench, "m", "SELECT g, max(v) AS most FROM raw.t WHERE g < 2 GROUP BY g")
    bench.model(
        "v", "MODEL (materialized view);\nSELECT id, g, v + 1 AS v FROM {raw}.t WHERE g < 2"
    )
    bench.sql("INSERT INTO lake.{raw}.t VALUES (100, 1, 1, NULL)")
    assert way_of(only(bench)) == "full:DEFINITION_CHANGED"
    same(bench, "m", "SELECT g, max(v + 1) AS most FROM raw.t WHERE g < 2 GROUP BY g")


def test_a_sum_that_overflows_fails_as_its_query_does(bench: Workbench) -> None:
    """E25: the table stays as it was."""
    ordered(
        bench,
        "SELECT g, sum(v + 9223372036854775700L) AS total, count(v + 9223372036854775700L) AS c,"
        " count(*) AS n FROM {raw}.t WHERE id < 2 OR id > 50 GROUP BY g",
    )
    before = bench.rows("m")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (100, 1, 1, NULL)")
    node = only(bench)
    assert node.status == "failed"
    assert node.error is not None
    assert "overflow" in str(node.error["message"])
    assert bench.rows("m") == before
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 100")
    assert only(bench).status == "unchanged"


def test_a_diamond_sees_one_version_of_its_source(bench: Workbench) -> None:
    """E31, E33: rows that are written during the run are seen by the next one, by all at once."""
    bench.write("sqlbuild_project.toml", bench.toml("[settings]\nconcurrency = 1\n"))
    bench.model("b", "SELECT g, count(*) AS n FROM {raw}.t GROUP BY g")
    bench.model("c", "SELECT id, g FROM {raw}.t")
    ordered(
        bench,
        "SELECT c.id, b.n, (b.n > 0) AS there FROM c LEFT JOIN b ON b.g <=> c.g",
    )
    bench.sql("INSERT INTO lake.{raw}.t VALUES (100, 1, 1, NULL), (101, 5, 1, NULL)")
    written: list[str] = []

    def write(event: Event) -> None:
        if event.kind == "node_finished" and event.node in ("b", "c") and not written:
            written.append(str(event.node))
            bench.sql("INSERT INTO lake.{raw}.t VALUES (102, 6, 1, NULL), (103, 1, 1, NULL)")

    only(bench, listener=write)
    assert written
    found = {row[0]: row for row in bench.rows("m")}
    assert found[101] == (101, 1, True)
    assert {102, 103}.isdisjoint(found)
    assert found[100][1] == 4
    node = only(bench)
    assert way_of(node) == "affected_key"
    counted = "SELECT g, count(*) AS n FROM raw.t GROUP BY g"
    sql = f"SELECT s.id, t.n, true AS there FROM raw.t s JOIN ({counted}) t ON s.g = t.g"
    same(bench, "m", sql)
    assert bench.told() == {}


def test_a_lost_record_or_stamp_is_a_rebuild(bench: Workbench) -> None:
    """E30: the state tables gone, the stamp is enough; both gone, the table is built again."""
    query = "SELECT g, max(v) AS most FROM {raw}.t GROUP BY g"
    ordered(bench, query)
    bench.sql("DROP TABLE lake.{dev}._sqlbuild_fingerprints")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 8")
    assert way_of(only(bench)) == "affected_key"
    same(bench, "m", query.replace("{raw}", "raw"))
    bench.sql("DROP TABLE lake.{dev}._sqlbuild_fingerprints")
    bench.sql("ALTER TABLE lake.{dev}.m UNSET TBLPROPERTIES ('sqb.stamp')")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 7")
    assert way_of(only(bench)).startswith("full:")
    same(bench, "m", query.replace("{raw}", "raw"))


def test_a_table_that_does_not_hold_what_goes_is_rebuilt(bench: Workbench) -> None:
    """E26, E27: rows were lost, doubled or written below a stamp that says nothing of it."""
    query = "SELECT g, count(*) AS n, sum(v) AS total, count(v) AS c FROM {raw}.t GROUP BY g"
    rows = "SELECT v FROM {raw}.t WHERE g < 2"
    bench.model("r", rows)
    ordered(bench, query)
    damages = {
        "m": ("DELETE FROM {table} WHERE g = 0", "UPDATE {table} SET n = 0"),
        "r": ("DELETE FROM {table} WHERE v = 0", "INSERT INTO {table} VALUES (3)"),
    }
    for turn in range(2):
        for name, statements in damages.items():
            _damage(bench, name, statements[turn])
        last = "SELECT max(id) FROM lake.{raw}.t WHERE g = 1"
        bench.sql(f"DELETE FROM lake.{{raw}}.t WHERE id = ({last})")
        result = bench.build(refresh="rows")
        for node in result.nodes:
            assert node.status == "success", node
            assert way_of(node) == "full:INTEGRITY", (turn, node.strategy)
        same(bench, "m", query.replace("{raw}", "raw"))
        same(bench, "r", rows.replace("{raw}", "raw"))


def _damage(bench: Workbench, name: str, statement: str) -> None:
    """Change the rows of a table and make its stamp say that sqb wrote them."""
    import msgspec

    from sqb.state.record import decode, encode

    table = f"lake.{bench.schema}.{name}"
    bench.sql(statement.replace("{table}", table))
    project = bench.project()
    head = project.catalog.head(bench.schema, name)
    assert head is not None
    facts = project.facts.get(head.location)
    record = decode(facts.stamp)
    assert record is not None
    stamp = encode(
        msgspec.structs.replace(
            record, snapshot=facts.snapshot_id, run=record.run + "x", ts=record.ts + 1
        )
    )
    text = stamp.replace("\\", "\\\\").replace("'", "\\'")
    bench.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('sqb.stamp' = '{text}')")


def test_the_share_of_a_large_change_is_a_rebuild_unless_rows_are_wished(bench: Workbench) -> None:
    """E32, E37: the guard chooses only between ways that are right."""
    query = "SELECT g, max(v) AS most FROM {raw}.t GROUP BY g"
    ordered(bench, query)
    bench.sql("DELETE FROM lake.{raw}.t WHERE id > 3")
    result = bench.build()
    assert way_of(result.nodes[0]) in ("full:CHANGE_TOO_LARGE", "full:CHEAPER_TO_REBUILD")
    bench.sql(
        "INSERT INTO lake.{raw}.t SELECT CAST(id AS INT), CAST(id AS INT), CAST(id AS INT), NULL"
        " FROM range(10000)"
    )
    assert way_of(only(bench)) in ("group_merge", "affected_key")
    same(bench, "m", query.replace("{raw}", "raw"))


def test_only_models_that_depend_on_the_changed_rows_run(bench: Workbench) -> None:
    """Fifty models, one changed source: the others are not asked anything."""
    for n in range(10):
        bench.sql(f"CREATE TABLE lake.{{raw}}.t{n} (id INT, g INT, note STRING) USING iceberg")
        bench.model(f"m{n}_0", f"SELECT id, g FROM {{raw}}.t{n} WHERE g > 0")
        for m in (1, 2, 3):
            bench.model(
                f"m{n}_{m}", f"MODEL (materialized view);\nSELECT id, g + {m} AS g FROM m{n}_0"
            )
        bench.model(
            f"m{n}_4",
            f"SELECT a.g, count(*) AS n FROM m{n}_1 a JOIN m{n}_2 b ON a.id = b.id GROUP BY a.g",
        )
    bench.build()
    started: list[str] = []

    def note(event: Event) -> None:
        if event.kind == "node_started":
            started.append(str(event.node))

    def begun(change: str) -> list[str]:
        started.clear()
        bench.sql(change)
        bench.build(refresh="rows", listener=note)
        return started

    assert begun("INSERT INTO lake.{raw}.t3 VALUES (1, 1, 'a'), (2, 1, 'b')") == ["m3_0", "m3_4"]
    assert bench.rows("m3_4") == [(2, 2)]
    # a column that no model reads, a row that no model keeps: nobody below hears of it
    assert begun("UPDATE lake.{raw}.t3 SET note = 'c' WHERE id = 1") == ["m3_0"]
    assert begun("INSERT INTO lake.{raw}.t3 VALUES (3, 0, 'd')") == ["m3_0"]
    assert begun("DELETE FROM lake.{raw}.t3 WHERE id = 2") == ["m3_0", "m3_4"]
    assert bench.rows("m3_4") == [(2, 1)]
