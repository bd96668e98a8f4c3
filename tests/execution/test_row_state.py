"""Row state on real tables: groups take in what changed, their models follow, nothing is left."""

from __future__ import annotations

import random
from collections import Counter
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import TYPE_CHECKING

import pytest

from sqb.refresh.averages import average

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof

QUERIES = {
    "shown": (
        "SELECT customer, SUM(amount) AS total, COUNT_IF(id > 50) AS late FROM {raw}.orders\n"
        "GROUP BY customer HAVING SUM(amount) > 700 OR COUNT(note) > 0"
    ),
    "ratio": "SELECT customer, SUM(amount) / SUM(id) AS r FROM {raw}.orders GROUP BY customer",
    "averaged": (
        "SELECT customer, AVG(amount) AS mean, AVG(id) AS number,"
        " AVG(CAST(amount AS DECIMAL(18,8))) FILTER (WHERE id % 3 > 0) AS some"
        " FROM {raw}.orders GROUP BY customer"
        " HAVING AVG(amount) > 70"
    ),
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


def test_averages_are_those_of_spark(bench: Workbench) -> None:
    """Sums and counts near the middle of two results, where rounding twice would show."""
    draw = random.Random(7)
    pairs = [(0, 0), (5, 8), (-5, 8), (1, 3), (-2, 3), (10**15 + 1, 2 * 10**6)]
    for _ in range(300):
        count = draw.choice([1, 2, 3, 7, 16, 10**5 + 3, 10**9 + 7, 10**11 + 3])
        middle = (2 * draw.randrange(-(10**9), 10**9) + 1) * count
        pairs.append((middle // 20_000 + draw.randrange(-1, 2), count))
    rows = ", ".join(f"({total}, {count})" for total, count in pairs)
    for scale in (2, 8, 13):
        total = f"CAST(CAST(s AS DECIMAL(24,0)) * {10**-scale:.{scale}f}BD AS DECIMAL(38,{scale}))"
        shown = average("s", "n", f"decimal(22,{scale + 4})")
        typed = f"SELECT s AS units, {total} AS s, n FROM VALUES {rows} AS v(s, n)"
        few = f"n < {10 ** (18 - scale - 4)}"
        sql = f"SELECT units, n, {shown} AS m FROM ({typed}) AS t WHERE {few}"
        found = bench.spark.sql(sql).collect()
        assert len(found) > 20
        for units, count, mean in found:
            with localcontext(Context(prec=60)):
                exact = Decimal(units).scaleb(-scale) / count if count else None
                wanted = exact and exact.quantize(Decimal(1).scaleb(-scale - 4), ROUND_HALF_UP)
            assert mean == wanted, (units, count, scale)


def test_an_average_that_is_no_double_is_computed_again(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.big (g INT, x BIGINT) USING iceberg")
    bench.sql(
        "INSERT INTO lake.{raw}.big VALUES (1, 1), (1, 2), (3, 5),"
        f" (2, {1 << 62}), (2, {1 << 62})"
    )
    bench.environ["SQB_ROW_ERRORS"] = "raise"
    sql = "SELECT g, AVG(x) AS m FROM {raw}.big GROUP BY g"
    bench.model("big", f"MODEL (row_state auto);\n{sql}")
    bench.build()
    bench.sql("INSERT INTO lake.{raw}.big VALUES (1, 6), (3, NULL)")
    assert ways(bench)["big__s1"] == "group_merge"
    bench.sql("INSERT INTO lake.{raw}.big VALUES (2, 1)")
    assert ways(bench)["big__s1"] == "full"
    rows = bench.spark.sql(f"SELECT * FROM lake.{bench.schema}.big").collect()
    whole = bench.spark.sql(sql.replace("{raw}", f"lake.{bench.raw}")).collect()
    assert Counter(map(tuple, rows)) == Counter(map(tuple, whole))


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
