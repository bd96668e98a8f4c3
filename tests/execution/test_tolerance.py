"""A model that tolerates lag goes on being recorded as made from what it really read."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Workbench

INSERT = "INSERT INTO lake.{raw}.t VALUES "


def test_an_amended_record_keeps_the_value_and_the_snapshot_that_were_read(
    bench: Workbench,
) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT, ts TIMESTAMP) USING iceberg")
    bench.sql(INSERT + "(1, TIMESTAMP'2026-01-31 06:00:00')")
    bench.write(
        "sources/s.yml",
        "sources:\n  - name: t\n    schema: {raw}\n    freshness: "
        "{strategy: column, column: ts, type: timestamp, lag_tolerance: 1h}\n",
    )
    bench.model("up", "SELECT 1 AS one")
    bench.model("m", "SELECT count(*) AS n FROM t CROSS JOIN up")
    bench.model("v", "MODEL (materialized view);\nSELECT id FROM t")
    bench.model("w", "SELECT count(*) AS n FROM v CROSS JOIN up")
    bench.told()
    before = bench.project().observe().recorded
    # within the tolerance, while an upstream is rebuilt to the same rows: both are amended
    bench.sql(INSERT + "(2, TIMESTAMP'2026-01-31 06:50:00')")
    bench.model("up", "SELECT 2 - 1 AS one")
    told = bench.told()
    assert told["m"] == told["w"] == ("current", "upstream_unchanged")
    after = bench.project().observe().recorded
    for name in ("m", "w"):
        assert after[name].ts > before[name].ts
        assert after[name].read()["t"] == before[name].read()["t"]
        assert (after[name].pins, after[name].seen) == (before[name].pins, before[name].seen)
    # the base did not slide: together the two steps are too much
    bench.sql(INSERT + "(3, TIMESTAMP'2026-01-31 07:00:01')")
    assert bench.told() == {
        "m": ("success", "source_changed"),
        "w": ("success", "upstream_changed"),
    }
    assert bench.rows("m") == bench.rows("w") == [(3,)]
