"""What sqb writes without a JVM, read and written by Spark, and the other way round."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqb.lake.catalog import Head, SqlCatalog
from sqb.lake.cleanup import discard, sweep
from sqb.lake.io import normalised
from sqb.lake.metadata import TableFacts, read_document, read_facts
from sqb.lake.publish import (
    FRESH_TABLE_PROPERTIES,
    Overtaken,
    publish_properties,
    publish_table,
    publish_view,
)
from sqb.lake.staging import Staged, stage
from sqb.lake.types import iceberg_schema, spark_type

# pyspark leaves the sockets of its results to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

STAGE = "db__sqb_stage"
CATALOG = "lakeroom"


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    """A session of its own, so that the catalog added here is not seen by other tests."""
    return spark.newSession()


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> SqlCatalog:
    """A catalog that sqb makes, tables and all, before Spark ever sees it."""
    root = tmp_path_factory.mktemp("lake room")
    catalog = SqlCatalog(CATALOG, f"sqlite:///{root}/catalog.db", f"{root}/warehouse")
    catalog.ensure_namespace("db")
    return catalog


@pytest.fixture(scope="module")
def sql(session: Any, room: SqlCatalog) -> Callable[[str], list[Any]]:
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{room.path}",
        ".jdbc.schema-version": "V1",
        ".warehouse": room.warehouse,
        ".cache-enabled": "false",
    }
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.{CATALOG}{key}", value)
    session.sql(f"USE {CATALOG}.db")
    return lambda text: [tuple(row) for row in session.sql(text).collect()]


def stamp(facts: TableFacts) -> str:
    return f"{facts.uuid}/{facts.snapshot_id}"


def publish(room: SqlCatalog, staged: Staged, table: str, **options: Any) -> Head:
    options = {"properties": dict(FRESH_TABLE_PROPERTIES), "make_stamp": stamp, **options}
    return publish_table(room, namespace="db", table=table, staged=staged, **options)


def first_build(room: SqlCatalog, sql: Any, table: str, query: str, run_id: str = "r0") -> Head:
    staged = stage(room, "db", table, run_id)
    properties = ", ".join(f"'{k}' = '{v}'" for k, v in FRESH_TABLE_PROPERTIES.items())
    sql(
        f"CREATE TABLE {CATALOG}.{STAGE}.`{staged.name}` USING iceberg "
        f"LOCATION '{room.default_location('db', table)}' "
        f"TBLPROPERTIES ({properties}) AS {query}"
    )
    return publish(room, staged, table)


def files(room: SqlCatalog, table: str) -> set[str]:
    root = Path(room.default_location("db", table))
    return {str(p) for p in root.rglob("*") if p.is_file() and not p.name.endswith(".crc")}


def test_spark_builds_into_aliases_and_reads_what_was_published(room: SqlCatalog, sql: Any) -> None:
    first = first_build(room, sql, "t", "SELECT id, 'a' AS s FROM range(3)")
    assert sql("SHOW TABLES IN db") == [("db", "t", False)]
    assert sql("SELECT count(*) FROM db.t") == [(3,)]
    old = read_facts(first.location)
    assert old.format_version == 2
    assert old.stamp == f"{old.uuid}/{old.snapshot_id}"
    assert normalised(old.location) == room.default_location("db", "t")

    staged = stage(room, "db", "t", "r1")
    sql(
        f"CREATE OR REPLACE TABLE {CATALOG}.{STAGE}.`{staged.name}` USING iceberg "
        "PARTITIONED BY (bucket(4, id), days(ts)) AS "
        "SELECT id, timestamp'2026-01-01' AS ts, 1.5BD AS d FROM range(5)"
    )
    assert sql("SELECT * FROM db.t WHERE id = 1") == [(1, "a")]
    head = publish(room, staged, "t", sort_order=("id DESC NULLS LAST",))
    facts = read_facts(head.location)
    assert facts.uuid == old.uuid
    assert facts.partitioning == ("bucket(4, id)", "days(ts)")
    assert facts.sort_order == ("id DESC NULLS LAST",)
    assert [(c.name, c.type) for c in facts.columns] == [
        ("id", "long"),
        ("ts", "timestamptz"),
        ("d", "decimal(2, 1)"),
    ]
    assert sql("SELECT count(*), sum(d) FROM db.t")[0][0] == 5
    assert sql(f"SELECT s FROM db.t VERSION AS OF {old.snapshot_id} WHERE id = 2") == [("a",)]
    sql("INSERT INTO db.t VALUES (9, timestamp'2026-01-02', 2.5)")
    sql("MERGE INTO db.t USING (SELECT 9L AS id) n ON t.id = n.id WHEN MATCHED THEN DELETE")
    assert sql("SELECT count(*) FROM db.t") == [(5,)]
    after = room.head("db", "t")
    assert after is not None
    moved = read_facts(after.location)
    assert moved.stamp == facts.stamp
    assert moved.snapshot_id != facts.snapshot_id


def test_compaction_is_no_change_of_data(room: SqlCatalog, sql: Any) -> None:
    first_build(room, sql, "c", "SELECT id FROM range(3)")
    sql("INSERT INTO db.c VALUES (7)")
    before = room.head("db", "c")
    sql(
        f"CALL {CATALOG}.system.rewrite_data_files(table => 'db.c', "
        "options => map('rewrite-all', 'true'))"
    )
    after = room.head("db", "c")
    assert before is not None
    assert after is not None
    one, two = read_facts(before.location), read_facts(after.location)
    assert one.snapshot_id != two.snapshot_id
    assert one.snapshot_id == one.data_snapshot_id == two.data_snapshot_id


def test_a_foreign_insert_overtakes_and_a_tag_does_not(room: SqlCatalog, sql: Any) -> None:
    first_build(room, sql, "f", "SELECT id FROM range(3)")
    staged = stage(room, "db", "f", "r1")
    sql(f"INSERT INTO {CATALOG}.{STAGE}.`{staged.name}` VALUES (10)")
    sql("ALTER TABLE db.f CREATE TAG keep")
    sql("ALTER TABLE db.f SET TBLPROPERTIES ('foreign' = 'yes')")
    head = publish(room, staged, "f")
    assert sql("SELECT count(*) FROM db.f") == [(4,)]
    assert sql("SELECT count(*) FROM db.f VERSION AS OF 'keep'") == [(3,)]
    assert read_facts(head.location).properties["foreign"] == "yes"

    staged = stage(room, "db", "f", "r2")
    sql(f"INSERT INTO {CATALOG}.{STAGE}.`{staged.name}` VALUES (11)")
    alias = room.head(STAGE, staged.name)
    sql("INSERT INTO db.f VALUES (12)")
    with pytest.raises(Overtaken):
        publish(room, staged, "f")
    assert alias is not None
    # Metadata, manifest list, manifest and data file of the one insert.
    assert discard(room, alias) == 4
    assert sql("SELECT sum(id) FROM db.f") == [(3 + 10 + 12,)]


def test_expired_snapshots_stay_expired(room: SqlCatalog, sql: Any) -> None:
    first_build(room, sql, "e", "SELECT id FROM range(3)")
    for value in (4, 5):
        sql(f"INSERT OVERWRITE db.e VALUES ({value})")
    staged = stage(room, "db", "e", "r1")
    sql(f"INSERT INTO {CATALOG}.{STAGE}.`{staged.name}` VALUES (6)")
    sql(
        f"CALL {CATALOG}.system.expire_snapshots(table => 'db.e', "
        "older_than => timestamp'2100-01-01', retain_last => 1)"
    )
    head = publish(room, staged, "e")
    assert len(read_document(head.location)["snapshots"]) == 2
    assert sql("SELECT id FROM db.e ORDER BY id") == [(5,), (6,)]
    assert len(sql("SELECT * FROM db.e.history")) == 2
    sql("INSERT INTO db.e VALUES (7)")


def test_a_sweep_removes_exactly_what_the_alias_wrote(room: SqlCatalog, sql: Any) -> None:
    first_build(room, sql, "w", "SELECT id, id % 2 AS k FROM range(9)")
    before = files(room, "w")
    staged = stage(room, "db", "w", "dead")
    name = f"{CATALOG}.{STAGE}.`{staged.name}`"
    sql(f"DELETE FROM {name} WHERE id = 3")
    sql(f"CREATE OR REPLACE TABLE {name} USING iceberg PARTITIONED BY (k) AS SELECT * FROM db.w")
    sql(f"INSERT INTO {name} VALUES (50, 1)")
    assert files(room, "w") > before
    assert sweep(room, STAGE, time.time()) == [f"{STAGE}.{staged.name}"]
    assert files(room, "w") == before
    assert sql("SELECT count(*) FROM db.w") == [(9,)]


def test_properties_published_without_spark_are_seen_by_it(room: SqlCatalog, sql: Any) -> None:
    base = first_build(room, sql, "p", "SELECT 1 AS a")
    publish_properties(
        room, namespace="db", table="p", base=base, run_id="r1",
        properties={"my.key": "a word"}, make_stamp=stamp,
    )  # fmt: skip
    properties = dict(sql("SHOW TBLPROPERTIES db.p"))
    assert properties["my.key"] == "a word"
    assert properties["sqb.stamp"]
    assert "write.merge.mode" not in properties
    assert sql("SELECT a FROM db.p") == [(1,)]


def view(
    room: SqlCatalog, session: Any, text: str, run_id: str, base: Head | None, **properties: str
) -> Head:
    previous = read_document(base.location)["schemas"][-1]["fields"] if base else None
    schema = iceberg_schema(session.sql(text).schema.jsonValue(), previous)
    return publish_view(
        room, namespace="db", name="v", base=base, run_id=run_id, sql=text, schema=schema,
        properties=properties, make_stamp=stamp,
    )  # fmt: skip


def test_spark_lists_reads_replaces_and_drops_views_written_by_hand(
    room: SqlCatalog, session: Any, sql: Any
) -> None:
    first_build(room, sql, "src", "SELECT id, array(struct(id AS x)) AS a FROM range(3)")
    source = f"{CATALOG}.db.src"
    first = view(room, session, f"SELECT id, a FROM {source}", "r1", None, **{"my.key": "1"})
    assert [row[1] for row in sql("SHOW VIEWS IN db")] == ["v"]
    assert sql("SELECT id, a[0].x FROM db.v ORDER BY id") == [(0, 0), (1, 1), (2, 2)]
    properties = dict(sql("SHOW TBLPROPERTIES db.v"))
    assert properties["my.key"] == "1"
    assert properties["sqb.stamp"]

    second = view(room, session, f"SELECT a, id + 1 AS n FROM {source}", "r2", first)
    assert sql("SELECT n FROM db.v ORDER BY n") == [(1,), (2,), (3,)]
    assert "my.key" not in dict(sql("SHOW TBLPROPERTIES db.v"))
    assert read_facts(second.location).uuid == read_facts(first.location).uuid

    sql(f"CREATE OR REPLACE VIEW db.v AS SELECT 7 AS seven FROM {source}")
    assert sql("SELECT DISTINCT seven FROM db.v") == [(7,)]
    foreign = room.head("db", "v")
    assert foreign is not None
    facts = read_facts(foreign.location)
    assert (facts.kind, [c.name for c in facts.columns]) == ("view", ["seven"])
    view(room, session, f"SELECT id FROM {source}", "r3", foreign)
    assert sql("SELECT count(*) FROM db.v") == [(3,)]
    sql("DROP VIEW db.v")
    assert room.head("db", "v") is None


def test_a_name_changes_between_table_and_view_in_one_update(
    room: SqlCatalog, session: Any, sql: Any
) -> None:
    text = "SELECT CAST(1 AS BIGINT) AS id, parse_json('{\"a\": 1}') AS j"
    base = view(room, session, text, "r1", None)
    assert sql("SELECT id FROM db.v") == [(1,)]
    staged = stage(room, "db", "v", "r2")
    assert (staged.base, staged.alias) == (base, None)
    sql(
        f"CREATE TABLE {CATALOG}.{STAGE}.`{staged.name}` USING iceberg "
        f"LOCATION '{room.default_location('db', 'v')}' AS SELECT 2 AS id"
    )
    table = publish(room, staged, "v")
    assert table.kind == "table"
    assert sql("SELECT id FROM db.v") == [(2,)]
    made = publish_view(
        room, namespace="db", name="v", base=table, run_id="r3", sql="SELECT 3 AS id",
        schema=iceberg_schema(session.sql("SELECT 3 AS id").schema.jsonValue()),
        properties={}, make_stamp=stamp,
    )  # fmt: skip
    assert sql("SELECT id FROM db.v") == [(3,)]
    assert room.head("db", "v") == made


def test_types_of_real_tables_can_be_cast_to(room: SqlCatalog, session: Any, sql: Any) -> None:
    query = (
        "SELECT true AS b, 1 AS i, 2L AS l, 1.5F AS f, 2.5D AS d, 1.25BD AS n, date'2026-01-01' AS"
        " dt, timestamp'2026-01-01' AS ts, timestamp_ntz'2026-01-01' AS tn, 'x' AS s, X'01' AS y,"
        " map('k', array(named_struct('p q', 1))) AS m"
    )
    head = first_build(room, sql, "types", query)
    columns = read_facts(head.location).columns
    casts = ", ".join(f"CAST({c.name} AS {spark_type(c.type)}) AS {c.name}" for c in columns)
    casted = session.sql(f"SELECT {casts} FROM db.types")
    assert casted.schema.simpleString() == session.table("db.types").schema.simpleString()
    schema = iceberg_schema(casted.schema.jsonValue())
    assert [f["name"] for f in schema["fields"]] == [c.name for c in columns]
