"""A dbt project on a thrift server without Iceberg: state and facts go through the connection."""

from __future__ import annotations

from pathlib import Path

import pytest
from dbt_lives import Life, checks, ended, runs
from dbt_shop import Shop
from thrift_servers import ThriftServer

pytestmark = pytest.mark.dbt_long

#: What needs no merge: Parquet tables can't.
SELECT = ("--select", "+dim_customers", "stg_visits")
BUILT = {
    *("raw_customers", "raw_orders", "raw_payments", "stg_customers", "stg_orders"),
    *("stg_payments", "fct_orders", "dim_customers", "stg_visits"),
}


@pytest.mark.parametrize("thrift_server", ["plain"], indirect=True)
def test_the_same_behaviour(thrift_server: ThriftServer, dbt: Path, tmp_path: Path) -> None:
    shop = Shop(tmp_path, {"dev": thrift_server.target()})
    text = (shop.root / "dbt_project.yml").read_text()
    shop.write("dbt_project.yml", text.replace("file_format: iceberg", "file_format: parquet"))
    life = Life(shop, dbt)
    life.sql("create schema app")
    life.sql(
        "create table app.visits as "
        "select 1L as visit_id, 1L as customer_id, '/a' as page, current_timestamp() as loaded_at"
    )
    first = life.build(*SELECT)
    assert (first.code, first.dbt_code) == (0, 0), first.said
    assert ended(first) == dict.fromkeys(BUILT, "success")

    def settled() -> None:
        again = life.build(*SELECT)
        assert (again.code, again.dbt_code, runs(again), checks(again)) == (0, None, {}, [])

    settled()
    # an edit, and what is below
    shop.replace("macros/cents.sql", "decimal(12", "decimal(14")
    second = life.build(*SELECT)
    assert runs(second) == {
        "stg_payments": "macro rounded",
        "fct_orders": "upstream_changed",
        "dim_customers": "upstream_changed",
    }
    assert second.dbt_code == 0, second.said
    settled()
    # a relation that went
    life.sql("drop table shop.dim_customers")
    assert runs(life.plan(*SELECT)) == {"dim_customers": "relation_missing"}
    life.build(*SELECT)
    # rows that came, told by the column that says when
    life.sql("insert into app.visits select 2L, 1L, '/b', current_timestamp()")
    assert runs(life.plan(*SELECT)) == {"stg_visits": "source_freshness_changed"}
    assert ended(life.build(*SELECT)) == {"stg_visits": "success"}
    settled()
    # a failing test stays owed
    shop.replace("tests/no_negative_amounts.sql", "amount < 0", "amount >= 0")
    select = (*SELECT, "no_negative_amounts")
    for _ in range(2):
        failed = life.build(*select)
        assert (failed.code, checks(failed)) == (1, ["no_negative_amounts"])
    rows = life.sql("select count(*), count(distinct node_type) from shop._sqlbuild_fingerprints")
    assert rows[0][1] == "1"
    assert int(rows[0][0] or 0) > len(BUILT)
