"""Row state on real tables: groups take in what changed, their models follow, nothing is left."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof

QUERIES = {
    "shown": (
        "SELECT customer, SUM(amount) AS total, COUNT_IF(id > 50) AS late FROM {raw}.orders\n"
        "GROUP BY customer HAVING SUM(amount) > 700 OR COUNT(note) > 0"
    ),
    "ratio": "SELECT customer, SUM(amount) / SUM(id) AS r FROM {raw}.orders GROUP BY customer",
    "summed": "SELECT d AS day, SUM(amount) AS total FROM {raw}.orders GROUP BY day",
}


def started(bench: Workbench, *names: str) -> None:
    bench.sql(
        "CREATE TABLE lake.{raw}.orders (id INT, customer INT, amount DECIMAL(18,2), d DATE, "
        "note STRING) USING iceberg TBLPROPERTIES ('write.delete.mode'='copy-on-write',"
        "'write.update.mode'='copy-on-write','write.merge.mode'='copy-on-write')"
    )
    bench.sql(
        "INSERT INTO lake.{raw}.orders SELECT id, id % 10, id * 1.5, "
        "DATE'2026-01-01' + CAST(id % 7 AS INT), CAST(NULL AS STRING) FROM range(1, 101)"
    )
    for name in names:
        bench.model(name, f"MODEL (row_state auto);\n{QUERIES[name]}")
    bench.build()


def same(bench: Workbench, *names: str) -> None:
    """Each table holds the rows, under the names and types, that its query as written gives."""
    for name in names:
        sql = QUERIES[name].replace("{raw}", f"lake.{bench.raw}")
        table = bench.spark.sql(f"SELECT * FROM lake.{bench.schema}.{name}")
        whole = bench.spark.sql(sql)
        assert table.dtypes == whole.dtypes
        assert Counter(map(tuple, table.collect())) == Counter(map(tuple, whole.collect()))


def ways(bench: Workbench) -> dict[str, str]:
    result = bench.build(refresh="rows")
    assert [node.error for node in result.nodes if node.error] == []
    return {n.name: n.strategy.name for n in result.nodes if n.strategy is not None}


def test_groups_take_rows_in_and_give_rows_up(bench: Workbench) -> None:
    started(bench, *QUERIES)
    same(bench, *QUERIES)
    # a group ends, one comes into sight, one goes out of it, one begins
    bench.sql("DELETE FROM lake.{raw}.orders WHERE customer = 9 OR id IN (4, 14, 100) OR d IS NULL")
    bench.sql(
        "INSERT INTO lake.{raw}.orders VALUES (200, 3, 250, DATE'2026-02-01', NULL), "
        "(201, NULL, 1, NULL, 'x'), (202, 2, NULL, DATE'2026-01-03', NULL)"
    )
    found = ways(bench)
    assert {name: way for name, way in found.items() if name.endswith("__s1")} == {
        f"{name}__s1": "group_merge" for name in QUERIES
    }
    assert {found[name] for name in QUERIES} == {"affected_key"}
    same(bench, *QUERIES)
    assert bench.told() == {}


def test_an_edit_of_having_leaves_the_groups(bench: Workbench) -> None:
    started(bench, "shown")
    text = QUERIES["shown"].replace("700", "800")
    bench.model("shown", f"MODEL (row_state auto);\n{text}")
    plan = bench.plan()
    (shown,) = plan.work
    assert (shown.name, shown.reason) == ("shown", "query_changed")
    assert shown.diff is not None
    assert "sqb_s" not in shown.diff
    assert bench.told() == {"shown": ("success", "query_changed")}


def test_groups_go_when_nobody_wants_them(bench: Workbench) -> None:
    started(bench, "summed", "ratio")
    state = f"{bench.schema}__sqb_state"
    bench.model("summed", QUERIES["summed"])
    (bench.root / "models/ratio.sql").unlink()
    # the same rows, read from the orders again
    assert bench.told() == {"summed": ("unchanged", "source_changed")}
    upkeep = bench.project().upkeep
    gone = upkeep.remove(upkeep.survey())
    relations = {f.relation for f in gone.findings if f.kind == "relation"}
    assert relations == {f"{state}.summed__s1", f"{state}.ratio__s1", f"{bench.schema}.ratio"}
    left = bench.sql(f"SHOW TABLES IN lake.{state}")
    assert [row[1] for row in left if str(row[1]).endswith("__s1")] == []
    same(bench, "summed")
    assert bench.told() == {}
