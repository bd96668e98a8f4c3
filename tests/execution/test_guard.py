"""The guard, what is foreseen, verify and the self-audit, on real tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from sqb.lake.metadata import STAMP
from sqb.state.record import decode, encode

if TYPE_CHECKING:
    from conftest import Workbench
    from sqb.execution.events import NodeResult
    from sqb.upkeep.verify import Verified

SMALL = "[refresh]\nsmall_seconds = 100000\n"
EAGER = "[refresh]\nsmall_seconds = 0\nsmall_mb = 0\nmargin = 1000\n"
MODELS = {
    "added": "SELECT id, amount FROM {raw}.orders WHERE customer > 3",
    "grouped": "SELECT customer, SUM(amount) AS total FROM {raw}.orders GROUP BY customer",
    "days": "SELECT customer, COUNT(DISTINCT d) AS days FROM {raw}.orders GROUP BY customer",
    "clocked": "SELECT customer, rand() AS r FROM {raw}.orders",
    "below": "SELECT max(total) AS most FROM grouped",
}


def orders(bench: Workbench, models: Mapping[str, str]) -> None:
    bench.sql(
        "CREATE TABLE lake.{raw}.orders (id INT, customer INT, amount DECIMAL(18,2), d INT) "
        "USING iceberg TBLPROPERTIES ('write.delete.mode'='copy-on-write')"
    )
    bench.sql(
        "INSERT INTO lake.{raw}.orders SELECT id, id % 10, id * 1.5, id % 7 FROM range(1, 101)"
    )
    for name, sql in models.items():
        bench.model(name, sql)


def built(bench: Workbench, **options: object) -> dict[str, NodeResult]:
    result = bench.build(**options)
    assert not result.failed, result.failed[0].error
    return {node.name: node for node in result.nodes}


def way(node: NodeResult) -> tuple[str, str | None]:
    assert node.strategy is not None
    return node.strategy.name, node.strategy.code


def test_what_is_foreseen_is_what_happens(bench: Workbench) -> None:
    bench.write("sqlbuild_project.toml", bench.toml(SMALL))
    orders(bench, MODELS)
    planned = bench.plan()
    assert {n.name: n.strategy and n.strategy.code for n in planned.nodes} == dict.fromkeys(
        MODELS, "FIRST_BUILD"
    )
    built(bench)
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (200, 4, 10.25, 1)")
    planned = bench.plan()
    foreseen = {n.name: (n.strategy.name, n.strategy.code) for n in planned.nodes if n.strategy}
    assert foreseen == {
        "added": ("append", None),
        "grouped": ("full", "CHEAPER_TO_REBUILD"),
        "days": ("full", "CHEAPER_TO_REBUILD"),
        "clocked": ("full", "VOLATILE"),
    }
    wished = {n.name: n.strategy for n in bench.plan(refresh="rows").nodes}
    assert wished["grouped"] is not None
    assert (wished["grouped"].name, wished["grouped"].key) == ("group_merge", ("customer",))
    assert [r["name"] for r in wished["grouped"].rejected] == ["append"]
    told = bench.project().explain("days")
    assert [item.change.way for item in told.moved] == ["append"]
    assert {"keys", "rows", "change"} <= {name.split("_")[1] for name, _ in told.steps}
    nodes = built(bench)
    assert {name: way(nodes[name]) for name in foreseen} == foreseen
    record = bench.project().observe().recorded["added"]
    assert [(s.way, s.code) for s in record.spent] == [("full", "FIRST_BUILD"), ("append", "")]
    assert (record.refreshes, record.spent[-1].changed, record.spent[-1].written) == (1, 1, 1)
    assert record.spent[-1].full is not None


def test_budgets(bench: Workbench) -> None:
    bench.write("sqlbuild_project.toml", bench.toml(EAGER))
    orders(bench, {"days": MODELS["days"]})
    built(bench)
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (200, 4, 10.25, 1)")
    node = built(bench)["days"]
    assert way(node) == ("affected_key", None)
    assert node.strategy is not None
    assert node.strategy.estimate is not None
    assert (node.strategy.estimate.keys, node.strategy.estimate.changed_rows) == (1, 1)
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (201, 5, 1, 1), (202, 6, 1, 1)")
    assert way(built(bench)["days"]) == ("full", "TOO_MANY_KEYS")
    bench.sql("DELETE FROM lake.{raw}.orders WHERE id % 2 = 0")
    node = built(bench)["days"]
    assert way(node) == ("full", "CHANGE_TOO_LARGE")
    assert node.strategy is not None
    assert {"affected_key", "append"} <= {r["name"] for r in node.strategy.rejected}


def verified(bench: Workbench, **options: object) -> dict[str, Verified]:
    return {item.name: item for item in bench.project().verify(**options)}  # type: ignore[arg-type]


def tampered(bench: Workbench, name: str, statement: str) -> None:
    """Change a table's rows, and let its stamp claim that they were always like that."""
    bench.sql(statement)
    facts = bench.project().observe().relations[name]
    record = decode(facts.stamp)
    assert record is not None
    forged = msgspec.structs.replace(record, snapshot=facts.snapshot_id, rows=facts.total_records)
    text = encode(forged).replace("\\", "\\\\").replace("'", "\\'")
    bench.sql(f"ALTER TABLE lake.{{dev}}.{name} SET TBLPROPERTIES ('{STAMP}' = '{text}')")


def test_tables_are_compared_with_their_records_and_queries(bench: Workbench) -> None:
    orders(bench, {"days": MODELS["days"], "seen": "MODEL (materialized view);\nSELECT 1 AS a"})
    built(bench)
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (200, 4, 10.25, 1)")
    # the query is run on what the table was made from, not on what is there now
    found = verified(bench, full=True)
    assert {name: (item.equal, item.against) for name, item in found.items()} == {
        "days": (True, "query")
    }
    assert found["days"].expected == found["days"].actual
    bench.model("days", MODELS["days"].replace("customer,", "customer AS c,", 1))
    edited = verified(bench, full=True)["days"]
    assert edited.equal
    assert "edited" in edited.note
    bench.model("days", MODELS["days"])
    old = bench.project().observe().recorded["days"].pins
    snapshot = next(iter(old.values()))
    bench.sql(
        f"CALL lake.system.expire_snapshots(table => '{bench.raw}.orders', "
        f"snapshot_ids => ARRAY({snapshot}))"
    )
    expired = verified(bench, full=True)["days"]
    assert (expired.equal, expired.against) == (True, "record")
    assert "expired" in expired.note
    bench.sql("DELETE FROM lake.{dev}.days WHERE customer = 3")
    found = verified(bench)
    assert found["days"].equal is False
    assert found["days"].actual != found["days"].expected


def test_a_wrong_table_is_found_by_the_audit(bench: Workbench) -> None:
    orders(bench, {"days": f"MODEL (row_audit sample(50%));\n{MODELS['days']}"})
    built(bench)
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (200, 4, 10.25, 50)")
    assert way(built(bench, refresh="rows")["days"]) == ("affected_key", None)
    bench.model("days", f"MODEL (row_audit every(2));\n{MODELS['days']}")
    tampered(bench, "days", "DELETE FROM lake.{dev}.days WHERE customer = 3")
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (201, 4, 10.25, 51)")
    result = bench.build(refresh="rows")
    assert way(result.nodes[0]) == ("full", "AUDIT_FAILED")
    kept = bench.root / ".sqb" / "runs" / str(result.run_id) / "row_audit" / "days.json"
    document = msgspec.json.decode(kept.read_bytes())
    assert [row.split(",")[0] for row in document["missing"]] == ['{"customer":3']
    assert document["extra"] == []
    assert len(bench.rows("days")) == 10
    assert verified(bench, full=True)["days"].equal


def test_a_table_that_keeps_vanished_rows_is_not_audited(bench: Workbench) -> None:
    header = "MODEL (materialized merge, unique_key [id], deletes keep, row_audit every(1));"
    orders(bench, {"kept": f"{header}\nSELECT id, amount FROM {{raw}}.orders WHERE customer = 3"})
    built(bench)
    bench.sql("DELETE FROM lake.{raw}.orders WHERE id = 13")
    bench.sql("INSERT INTO lake.{raw}.orders VALUES (203, 3, 1, 1)")
    node = built(bench, refresh="rows")["kept"]
    assert node.strategy is not None
    assert node.strategy.code is None
    assert len(bench.rows("kept")) == 11
    found = verified(bench, full=True)["kept"]
    assert (found.equal, found.against) == (True, "record")
    assert "holds rows" in found.note
