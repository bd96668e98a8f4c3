"""Real thrift servers, without Iceberg and with it: what is asked of them, and what they say."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from records import STAMP, of
from thrift_servers import ThriftServer
from tls import tls

from sqb.dbt import thrift_warehouse
from sqb.dbt.nodes import DbtNode
from sqb.dbt.thrift import Thrift
from sqb.dbt.thrift_state import literal
from sqb.dbt.thrift_warehouse import ThriftWarehouse
from sqb.dbt.warehouse import Asking, Rows, Standing
from sqb.errors import SqbError
from sqb.lake.metadata import TableFacts
from sqb.state.tables import FINGERPRINTS, FRESHNESS, Fingerprint, Observation

pytestmark = pytest.mark.dbt_long
only_plain = pytest.mark.parametrize("thrift_server", ["plain"], indirect=True)
only_iceberg = pytest.mark.parametrize("thrift_server", ["iceberg"], indirect=True)


Open = Callable[..., Thrift]
_NUMBERS = itertools.count()


@pytest.fixture
def session(thrift_server: ThriftServer, dbt: Path) -> Iterator[Open]:
    """Opens sessions of the server, and ends them."""
    opened: list[Thrift] = []

    def new(**fields: object) -> Thrift:
        opened.append(Thrift(thrift_server.profile(**fields), dbt, os.environ))
        return opened[-1]

    yield new
    for each in opened:
        each.close()


class Counted:
    """Asks someone else, and keeps what was asked."""

    def __init__(self, asking: Asking) -> None:
        self.asking = asking
        self.said: list[str] = []

    def rows(self, sql: str) -> Rows:
        self.said.append(sql)
        return self.asking.rows(sql)

    def close(self) -> None:
        self.asking.close()


class House:
    """Two schemas of a server: ``home``, where dbt builds, and ``raw``, with a source."""

    def __init__(self, name: str, session: Open, cache: Path) -> None:
        self.home, self.raw = name, f"{name}_raw"
        self.session, self.cache = session, cache
        self.other = session()
        for schema in (self.home, self.raw):
            self.do(f"CREATE SCHEMA {schema}")
        self.said: list[str] = []

    def do(self, *statements: str) -> None:
        """What dbt and others do, in a session of their own."""
        for statement in statements:
            self.other.rows(statement.format(home=self.home, raw=self.raw))

    def nodes(self, *names: str) -> dict[str, DbtNode]:
        found = [self.node(name) for name in names]
        return {node.unique_id: node for node in found}

    def node(self, name: str, schema: str | None = None) -> DbtNode:
        kind = "model" if schema is None else "source"
        place = schema or self.home
        return DbtNode(
            f"{kind}.shop.{name.lower()}",
            name,
            kind,
            "shop",
            "",
            schema=place,
            alias=name,
            relation_name=f"{place}.{name}",
        )

    def warehouse(self, *, cache: bool = True) -> tuple[ThriftWarehouse, Counted]:
        counted = Counted(self.session())
        return ThriftWarehouse(counted, self.home, self.cache if cache else None), counted

    def look(self, *names: str, cache: bool = True) -> Standing:
        """A new session's look at models of these names and at the source ``visits``."""
        warehouse, counted = self.warehouse(cache=cache)
        source = self.node("visits", self.raw)
        standing = warehouse.look({**self.nodes(*names), source.unique_id: source})
        warehouse.close()
        self.said = counted.said
        return standing

    def facts(self, name: str, *, cache: bool = True) -> TableFacts:
        return self.look(name, cache=cache).relations[f"model.shop.{name.lower()}"]


@pytest.fixture
def house(session: Open, tmp_path: Path) -> House:
    return House(f"house_{next(_NUMBERS)}", session, tmp_path / "cache")


def test_values_come_as_spark_shows_them(session: Open) -> None:
    (row,) = session().rows(
        "SELECT 1, CAST(9007199254740993 AS BIGINT), true, false, NULL, 'ü\\n', "
        "CAST('1.50' AS DECIMAL(10, 2)), DATE '2026-01-31', "
        "TIMESTAMP '2026-01-31 06:00:00.123456', CAST(0.5 AS DOUBLE), array(1, 2)"
    )
    assert list(row) == [
        "1", "9007199254740993", "true", "false", None, "ü\n", "1.50", "2026-01-31",
        "2026-01-31 06:00:00.123456", "0.5", "[1,2]",
    ]  # fmt: skip


def test_a_session_goes_on_after_an_error(session: Open) -> None:
    thrift = session()
    assert thrift.rows("CREATE SCHEMA IF NOT EXISTS going_on") == []
    with pytest.raises(SqbError, match=r"refused a statement: \[PARSE_SYNTAX_ERROR\]") as caught:
        thrift.rows("SELEKT 1")
    assert caught.value.code == "B011"
    assert "\tat " not in caught.value.message
    assert thrift.rows("SELECT 'still here'") == [["still here"]]
    thrift.close()
    assert thrift.rows("SELECT 'again'") == [["again"]]


def test_a_session_has_the_settings_of_the_profile(session: Open) -> None:
    # Spark heeds settings of a new session in this form alone, from dbt as from sqb
    name = "spark.sql.shuffle.partitions"
    thrift = session(server_side_parameters={f"set:hiveconf:{name}": 7})
    assert thrift.rows(f"SET {name}") == [[name, "7"]]
    assert session().rows(f"SET {name}") == [[name, "2"]]


@only_plain
def test_a_server_with_tls_and_a_password(
    session: Open, thrift_server: ThriftServer, tmp_path: Path
) -> None:
    login = {"auth": "LDAP", "user": "me", "password": "hunter22"}
    # a server that asks for no password takes any
    assert session(**login).rows("SELECT current_user()") == [["me"]]
    with tls(thrift_server.port, tmp_path) as port:
        for fields in ({}, login):
            thrift = session(port=port, use_ssl=True, **fields)
            assert thrift.rows("SELECT 'safe'") == [["safe"]]
            thrift.close()


@pytest.mark.parametrize("mode", ["true", "false"])
def test_every_text_arrives_as_it_was(session: Open, mode: str) -> None:
    thrift = session()
    thrift.rows(f"SET spark.sql.parser.escapedStringLiterals={mode}")
    texts = [
        "",
        "a.b",
        "it's",
        'say "x"',
        "a\\b",
        "\\",
        "${spark.app.name}",
        "a\nb\tc\r",
        "ü€🜁",
        "--;",
    ]
    told = thrift.rows(f"SELECT {', '.join(map(literal, texts))}")
    assert [list(row) for row in told] == [texts]


def test_where_no_schema_is_nothing_stands(session: Open) -> None:
    warehouse = ThriftWarehouse(session(), "not_made_yet")
    node = DbtNode("m", "m", "model", "shop", "", schema="nor_this", alias="m", relation_name="n.m")
    assert warehouse.look({"m": node}) == Standing({}, {})


def test_tables_and_views_are_told_apart(house: House) -> None:
    house.do(
        "CREATE TABLE {home}.orders AS SELECT 1 AS id",
        "CREATE VIEW {home}.open_orders AS SELECT * FROM {home}.orders",
        "CREATE TABLE {raw}.visits AS SELECT 1 AS id",
    )
    found = house.look("orders", "open_orders", "missing").relations
    assert {name: facts.kind for name, facts in found.items()} == {
        "model.shop.orders": "table",
        "model.shop.open_orders": "view",
        "source.shop.visits": "table",
    }


def test_many_names_are_looked_for_in_one_statement(house: House) -> None:
    house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
    names = [f"model_{number}" for number in range(80)]
    assert [*house.look("orders", *names).relations] == ["model.shop.orders"]
    assert house.said[0].endswith("LIKE '*'")


def test_state_is_appended_and_the_newest_row_counts(house: House) -> None:
    records = {name: of(STAMP, node=name, type="dbt") for name in ("it's", "model.shop.b")}
    warehouse, _ = house.warehouse()
    warehouse.look({})

    def rows(**changes: object) -> list[Fingerprint]:
        return [
            Fingerprint(of(record, **changes), "lake", "s", name, "", house.home)
            for name, record in records.items()
        ]

    seen = Observation("source.shop.visits", "lake", "raw", "visits", "r1", "v\\1", "h", 1_500_000)
    warehouse.record(rows(run="r2", ts=200), [seen])
    assert house.look().rows == {n: of(r, run="r2", ts=200) for n, r in records.items()}
    # an older row that comes later, and a newer one of one node
    warehouse.record(rows(run="r1", ts=100), [])
    warehouse.record(rows(run="r3", ts=200)[:1], [])
    warehouse.close()
    found = house.look().rows
    assert {name: record.run for name, record in found.items()} == {
        "it's": "r3",
        "model.shop.b": "r2",
    }
    (row,) = house.session().rows(
        f"SELECT source_name, data_version, CAST(unix_micros(observed_at) AS STRING) "
        f"FROM {house.home}.{FRESHNESS}"
    )
    assert list(row) == ["source.shop.visits", "v\\1", "1500000"]
    (count,) = house.session().rows(f"SELECT count(*) FROM {house.home}.{FINGERPRINTS}")
    assert list(count) == ["5"]


def test_a_missing_schema_is_made_for_the_state(session: Open, tmp_path: Path) -> None:
    warehouse = ThriftWarehouse(session(), f"new_{tmp_path.name}", tmp_path)
    warehouse.record([Fingerprint(of(STAMP, type="dbt"), "", "", "", "")], [])
    assert [*warehouse.look({}).rows] == ["m"]


def test_an_error_after_dbt_ran_is_one_of_running(house: House) -> None:
    warehouse, _ = house.warehouse()
    house.do(f"CREATE TABLE {{home}}.{FINGERPRINTS} AS SELECT 1 AS other")
    with pytest.raises(SqbError) as caught:
        warehouse.record([Fingerprint(of(STAMP, type="dbt"), "", "", "", "")], [])
    assert (caught.value.code, caught.value.exit_code) == ("B011", 1)


class TestPlain:
    pytestmark = only_plain

    def test_names_are_found_as_spark_finds_them(self, house: House) -> None:
        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        assert house.facts("Orders").kind == "table"
        assert house.look().relations == {}

    def test_a_table_does_not_tell_when_its_rows_changed(self, house: House) -> None:
        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        before = house.facts("orders")
        house.do("INSERT INTO {home}.orders VALUES (2)")
        assert (before.uuid, house.facts("orders")) == ("", before)

    def test_other_columns_show(self, house: House) -> None:
        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        before = house.facts("orders")
        house.do("ALTER TABLE {home}.orders ADD COLUMNS (name STRING)")
        assert house.facts("orders").shape != before.shape

    def test_another_definition_of_a_view_shows(self, house: House) -> None:
        house.do("CREATE VIEW {home}.one AS SELECT 1 AS id")
        before = house.facts("one")
        assert house.facts("one") == before
        house.do("CREATE OR REPLACE VIEW {home}.one AS SELECT 2 AS id")
        assert (before.kind, before.uuid) == ("view", "")
        assert house.facts("one").shape != before.shape

    def test_an_unchanged_project_costs_a_statement_for_each_schema_and_one(
        self, house: House
    ) -> None:
        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        warehouse, _ = house.warehouse()
        warehouse.record([Fingerprint(of(STAMP, type="dbt"), "", "", "", "")], [])
        house.look("orders", "missing")
        # the schema of the source is empty, so nothing tells how its views are listed
        assert [text.split(" IN ")[0][:22] for text in house.said] == [
            "SHOW TABLE EXTENDED",
            "SHOW TABLE EXTENDED",
            "SHOW VIEWS",
            "SELECT max_by(metadata",
        ]

    def test_the_catalog_is_spark_s_own(self, house: House) -> None:
        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        warehouse, _ = house.warehouse()
        warehouse.look(house.nodes("orders"))
        assert warehouse.database == "spark_catalog"


class TestIceberg:
    pytestmark = only_iceberg

    def test_rows_that_changed_show(self, house: House) -> None:
        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        before = house.facts("orders")
        assert before.uuid
        assert before.total_records == 1
        assert before.data_timestamp_ms is not None
        house.do("INSERT INTO {home}.orders VALUES (2), (3)")
        after = house.facts("orders")
        assert (after.uuid, after.shape) == (before.uuid, before.shape)
        assert after.data_snapshot_id != before.data_snapshot_id
        assert after.data_timestamp_ms is not None
        assert after.data_timestamp_ms > before.data_timestamp_ms
        assert after.total_records == 3

    def test_the_facts_are_those_of_the_metadata(
        self, house: House, thrift_server: ThriftServer
    ) -> None:
        from pyiceberg.catalog.sql import SqlCatalog

        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        catalog = SqlCatalog("lake", uri=thrift_server.uri, warehouse=str(thrift_server.warehouse))
        snapshot = catalog.load_table(f"{house.home}.orders").current_snapshot()
        catalog.engine.dispose()
        found = house.facts("orders")
        assert snapshot is not None
        assert found.snapshot_id == found.data_snapshot_id == snapshot.snapshot_id
        assert found.data_timestamp_ms == snapshot.timestamp_ms

    def test_compactions_change_nothing(self, house: House) -> None:
        house.do(
            "CREATE TABLE {home}.orders AS SELECT 1 AS id",
            "INSERT INTO {home}.orders VALUES (2)",
            "INSERT INTO {home}.orders VALUES (3)",
        )
        before = house.facts("orders")
        house.do("CALL lake.system.rewrite_data_files(table => '{home}.orders', "
                 "options => map('min-input-files', '2'))")  # fmt: skip
        after = house.facts("orders")
        assert after.snapshot_id != before.snapshot_id
        assert after.data_snapshot_id == before.data_snapshot_id
        assert after.data_timestamp_ms == before.data_timestamp_ms

    def test_an_empty_table_has_no_snapshot_and_is_exact(self, house: House) -> None:
        house.do("CREATE TABLE {home}.orders (id INT)")
        before = house.facts("orders")
        assert (before.snapshot_id, bool(before.uuid)) == (None, True)
        house.do("INSERT INTO {home}.orders VALUES (2)")
        assert house.facts("orders").data_snapshot_id is not None

    def test_a_table_made_anew_shows(self, house: House) -> None:
        make = "CREATE TABLE {home}.orders AS SELECT 1 AS id"
        house.do(make)
        before = house.facts("orders")
        house.do("DROP TABLE {home}.orders", make)
        assert house.facts("orders").data_snapshot_id != before.data_snapshot_id

    def test_other_columns_show(self, house: House) -> None:
        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        before = house.facts("orders")
        house.do("ALTER TABLE {home}.orders ADD COLUMNS (name STRING)")
        after = house.facts("orders")
        assert after.shape != before.shape
        assert msgspec.structs.replace(after, shape=before.shape) == before

    def test_a_comment_that_looks_like_an_answer_is_a_comment(self, house: House) -> None:
        comment = "x\\nType: VIEW\\nProvider: parquet\\nLocation: /tmp\\nSchema: root"
        house.do(f"CREATE TABLE {{home}}.orders (id INT) COMMENT '{comment}'")
        found = house.facts("orders")
        assert (found.kind, bool(found.uuid)) == ("table", True)
        assert found.location.endswith("orders")

    def test_upper_and_lower_case_are_two_names(self, house: House) -> None:
        house.do("CREATE TABLE {home}.Orders AS SELECT 1 AS id")
        assert house.look("orders").relations == {}
        assert house.facts("Orders").uuid

    def test_catalogs_without_views_are_looked_at_too(
        self, session: Open, thrift_server: ThriftServer
    ) -> None:
        old = "spark.sql.catalog.old"
        settings = {
            old: "org.apache.iceberg.spark.SparkCatalog",
            f"{old}.type": "jdbc",
            f"{old}.uri": f"jdbc:sqlite:{thrift_server.warehouse / 'old.db'}",
            f"{old}.jdbc.schema-version": "V0",
            f"{old}.warehouse": str(thrift_server.warehouse / "old"),
        }
        thrift = session()
        for name, value in settings.items():
            thrift.rows(f"SET `{name}`=`{value}`")
        for catalog in ("files", "old"):
            schema = f"{catalog}.shop"
            thrift.rows(f"CREATE SCHEMA IF NOT EXISTS {schema}")
            thrift.rows(f"CREATE TABLE IF NOT EXISTS {schema}.orders AS SELECT 1 AS id")
            nodes = {
                name: DbtNode(
                    name,
                    name,
                    "model",
                    "shop",
                    "",
                    schema=schema,
                    alias=name,
                    relation_name=f"{schema}.{name}",
                )
                for name in ("orders", "missing")
            }
            warehouse = ThriftWarehouse(thrift, schema)
            found = warehouse.look(nodes).relations
            assert {name: bool(facts.uuid) for name, facts in found.items()} == {"orders": True}
            assert warehouse.database == catalog

    def test_a_view_has_an_identity_for_dbt_does_not_see_it(self, house: House) -> None:
        house.do("CREATE VIEW {home}.one AS SELECT 1 AS id")
        assert (house.facts("one").kind, bool(house.facts("one").uuid)) == ("view", True)

    def test_an_unchanged_project_costs_a_listing_of_each_schema(self, house: House) -> None:
        house.do(
            "CREATE TABLE {home}.orders AS SELECT 1 AS id",
            "CREATE TABLE {raw}.visits AS SELECT 1 AS id",
            "CREATE VIEW {home}.one AS SELECT 1 AS id",
        )
        warehouse, _ = house.warehouse()
        warehouse.record([Fingerprint(of(STAMP, type="dbt"), "", "", "", "")], [])
        first = house.look("orders", "one")
        assert [text.split(" ")[0] for text in house.said] == [
            *("SHOW", "SHOW", "SHOW"),
            *("SELECT", "SELECT"),
        ]
        assert house.look("orders", "one") == first
        assert [text.split(" IN ")[0] for text in house.said] == [
            "SHOW TABLE EXTENDED",
            "SHOW VIEWS",
            "SHOW TABLE EXTENDED",
        ]
        assert house.look("orders", "one", cache=False) == first

    def test_many_tables_are_asked_together(
        self, house: House, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(thrift_warehouse, "_TOGETHER", 3)
        names = [f"t{number}" for number in range(5)]
        house.do(*(f"CREATE TABLE {{home}}.{name} AS SELECT 1 AS id" for name in names))
        found = house.look(*names).relations
        assert len({facts.data_snapshot_id for facts in found.values()}) == 5
        assert [text.count("UNION ALL") for text in house.said if "snapshots" in text] == [2, 1]

    def test_the_catalog_is_the_default_one(self, house: House) -> None:
        house.do("CREATE TABLE {home}.orders AS SELECT 1 AS id")
        warehouse, _ = house.warehouse()
        warehouse.look(house.nodes("orders"))
        assert warehouse.database == "lake"
