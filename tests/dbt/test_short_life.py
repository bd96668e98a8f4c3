"""The first days of a dbt project, with a real dbt and a real thrift server; few calls of dbt."""

from __future__ import annotations

import json

import pytest
from dbt_lives import Life, checks, ended, runs

from sqb.cli import main

pytestmark = pytest.mark.dbt


def test_build_edit_build(
    iceberg_life: Life, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    life = iceberg_life
    # two calls of dbt: what the project holds, and the build
    first = life.build(select=("stg_payments", "raw_payments", "currencies"))
    assert first.ended is not None
    assert first.ended.code == 0, life.said
    assert ended(first) == dict.fromkeys(("raw_payments", "stg_payments", "currencies"), "success")
    # none
    same = life.build(select=("stg_payments", "raw_payments", "currencies"))
    assert (same.plan.work, same.ended, life.asked) == ((), None, [])
    assert {row["node_type"] for row in life.state()} == {"dbt"}
    # two: a macro that a checksum misses
    life.shop.replace("macros/cents.sql", "decimal(12", "decimal(14")
    second = life.build(select=("stg_payments", "raw_payments", "currencies"))
    assert runs(second.plan) == {"stg_payments": "macro rounded"}
    assert second.ended is not None
    assert second.ended.code == 0, life.said
    assert checks(second.plan) == [
        "not_null_stg_payments_amount",
        "stg_payments",
        "unique_stg_payments_payment_id",
    ]
    # and from the command line, where nothing is left to do
    for name, value in life.shop.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(life.shop.root)
    words = ["dbt", "build", "--json", "--select", "stg_payments", "raw_payments", "currencies"]
    assert main.run(words) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["dbt"]["models"] == {"run": 0, "current": 2, "blocked": 0}
    assert (document["summary"]["run_id"], document["dbt"]["exit_code"]) == (None, None)
