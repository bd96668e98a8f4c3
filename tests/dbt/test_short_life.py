"""The first days of a dbt project, with a real dbt and a real thrift server; few calls of dbt."""

from __future__ import annotations

import pytest
from dbt_lives import Life, checks, ended, idle, runs

pytestmark = pytest.mark.dbt

SELECT = ("--select", "stg_payments", "raw_payments", "currencies")


def test_build_edit_build(iceberg_life: Life) -> None:
    life = iceberg_life
    # two calls of dbt: what the project holds, and the build
    first = life.build(*SELECT)
    assert (first.code, first.dbt_code) == (0, 0), first.said
    assert ended(first) == dict.fromkeys(("raw_payments", "stg_payments", "currencies"), "success")
    # none
    same = life.build(*SELECT)
    assert idle(same), same
    assert same.document["dbt"]["models"] == {"run": 0, "current": 2, "blocked": 0}
    assert (same.document["summary"]["run_id"], same.dbt_code) == (None, None)
    assert {row["node_type"] for row in life.state()} == {"dbt"}
    # two: a macro that a checksum misses
    life.shop.replace("macros/cents.sql", "decimal(12", "decimal(14")
    second = life.build(*SELECT)
    assert runs(second) == {"stg_payments": "macro rounded"}
    assert second.dbt_code == 0, second.said
    assert checks(second) == [
        "not_null_stg_payments_amount",
        "stg_payments",
        "unique_stg_payments_payment_id",
    ]
    assert idle(life.build(*SELECT))
