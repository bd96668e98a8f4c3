"""What a table follows from besides data: a refresh by rows sees each way in which it may move."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import pytest
from kinds import built, how, insert, source

from sqb.planning import row_gates

if TYPE_CHECKING:
    from conftest import Workbench

KINDS = {
    "plain": "",
    "keyed": "MODEL (materialized merge, unique_key [id]);\n",
    "tracked": "MODEL (materialized tracked, group_key [id]);\n",
}


def holds(bench: Workbench, name: str, sql: str) -> None:
    assert Counter(bench.rows(name)) == Counter(bench.sql(sql)), name


@pytest.mark.parametrize(("x", "y"), [("t2", "t1"), ("t2", "t2")])
def test_names_that_mean_other_tables_than_before(bench: Workbench, x: str, y: str) -> None:
    def mean(x: str, y: str) -> None:
        bench.write(
            "sources/s.yml",
            f"sources:\n  - {{name: x, schema: {{raw}}, table: {x}}}\n"
            f"  - {{name: y, schema: {{raw}}, table: {y}}}\n",
        )

    source(bench, "t1", "id INT, v INT", "(1, 1)", "(2, 2)", "(3, 3)")
    source(bench, "t2", "id INT, v INT", "(2, 20)", "(3, 30)", "(4, 40)")
    mean("t1", "t2")
    query = "SELECT x.id, x.v, y.v AS other FROM {x} LEFT JOIN {y} ON y.id = x.id"
    for name, header in KINDS.items():
        bench.model(name, header + query.format(x="x", y="y"))
    bench.model(
        "times", f"MODEL (materialized scd2, unique_key [id]);\n{query}".format(x="x", y="y")
    )
    bench.build()
    mean(x, y)
    now = query.format(x=f"lake.{{raw}}.{x} AS x", y=f"lake.{{raw}}.{y} AS y")
    for row in ("", "(5, 5)"):
        if row:
            insert(bench, "t1", row)
        bench.build(refresh="rows")
        for name in KINDS:
            holds(bench, name, now)
        opened = "SELECT id, v, other FROM lake.{dev}.times WHERE valid_to IS NULL"
        assert Counter(bench.sql(opened)) == Counter(bench.sql(now))
        assert bench.told() == {}


@pytest.mark.parametrize("steps", [["v1", "c g"], ["v1 c g"]])
def test_a_view_below_a_view_that_stands_was_edited(bench: Workbench, steps: list[str]) -> None:
    source(bench, "t", "id INT, v INT", "(1, 1)", "(2, 2)", "(3, 3)")
    bench.model("v1", "MODEL (materialized view);\nSELECT id, v FROM {raw}.t WHERE v > 0")
    bench.model("v2", "MODEL (materialized view);\nSELECT id, v FROM v1 WHERE id < 100")
    bench.model("c", "SELECT id, v FROM v2")
    bench.model("g", "SELECT v, COUNT(*) AS n FROM v2 GROUP BY v")
    bench.build()
    bench.model("v1", "MODEL (materialized view);\nSELECT id, v FROM {raw}.t WHERE v > 1")
    for step in steps:
        bench.build(*step.split(), refresh="rows")
    holds(bench, "c", "SELECT id, v FROM lake.{raw}.t WHERE v > 1")
    bench.build(refresh="rows")
    holds(bench, "c", "SELECT id, v FROM lake.{raw}.t WHERE v > 1")
    holds(bench, "g", "SELECT v, COUNT(*) FROM lake.{raw}.t WHERE v > 1 GROUP BY v")
    assert bench.told() == {}


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("through", [False, True])
def test_an_expression_that_was_edited(bench: Workbench, watched: bool, through: bool) -> None:
    def means(condition: str) -> None:
        value = (
            "    freshness: {strategy: sql, type: integer, query: 'SELECT max(id) FROM {raw}.t'}\n"
        )
        bench.write(
            "sources/e.yml",
            "sources:\n  - name: ex\n"
            f"    expression: SELECT id, v FROM {{raw}}.t WHERE {condition}\n" + value * watched,
        )

    source(bench, "t", "id INT, v INT", "(1, 1)", "(2, 2)", "(3, 3)")
    means("v > 0")
    bench.model("view", "MODEL (materialized view);\nSELECT id, v FROM ex")
    reads = "view" if through else "ex"
    bench.model("c", f"SELECT id, v FROM {reads}")
    bench.model("g", f"SELECT v, COUNT(*) AS n FROM {reads} GROUP BY v")
    bench.build()
    means("v > 1")
    for row in ("", "(4, 4)"):
        if row:
            insert(bench, "t", row)
        bench.build(refresh="rows")
        holds(bench, "c", "SELECT id, v FROM lake.{raw}.t WHERE v > 1")
        holds(bench, "g", "SELECT v, COUNT(*) FROM lake.{raw}.t WHERE v > 1 GROUP BY v")
        assert bench.told() == {}


def test_a_record_that_is_written_again_keeps_the_day_of_its_rows(bench: Workbench) -> None:
    def noon(day: int) -> None:
        moment = datetime(2026, 3, day, 12, tzinfo=timezone.utc)
        bench.environ["SQB_NOW"] = moment.isoformat()

    source(bench, "t", "id INT, d DATE", *(f"({n}, DATE'2026-03-0{n}')" for n in range(1, 8)))
    source(bench, "w", "n INT", "(1)")
    source(bench, "k", "id INT", *(f"({n})" for n in range(1, 8)))
    bench.write(
        "sources/e.yml",
        "sources:\n  - name: recent\n    expression: SELECT id, d FROM {raw}.t"
        " WHERE d >= current_date() - INTERVAL 2 DAYS\n"
        "    freshness: {strategy: sql, type: integer, query: 'SELECT max(n) FROM {raw}.w'}\n",
    )
    bench.model("keys", "SELECT id FROM {raw}.k WHERE id > 0")
    bench.model("c", "SELECT id, d FROM recent WHERE id IN (SELECT id FROM keys)")
    noon(4)
    built(bench, "c")
    assert [row[0] for row in bench.rows("c")] == [2, 3, 4, 5, 6, 7]
    noon(6)
    insert(bench, "k", "(-1)")
    assert bench.told()["c"] == ("current", "upstream_unchanged")
    insert(bench, "w", "(2)")
    built(bench, "c", refresh="rows")
    assert [row[0] for row in bench.rows("c")] == [4, 5, 6, 7]


def test_a_record_that_is_written_again_keeps_the_rules_of_its_rows(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    source(bench, "t", "id INT", "(1)")
    bench.model("p", "SELECT id FROM {raw}.t WHERE id > 0")
    bench.model("c", "SELECT id FROM p UNION ALL SELECT id FROM {raw}.t")
    with monkeypatch.context() as patch:
        for module in ("sqb.execution.run", "sqb.planning.row_gates"):
            patch.setattr(f"{module}.RULES", "older")
        built(bench, "c")
    assert row_gates.RULES != "older"
    bench.model("p", "SELECT id FROM {raw}.t WHERE id > 0 AND true")
    assert bench.told()["c"] == ("current", "upstream_unchanged")
    insert(bench, "t", "(2)")
    node = built(bench, "c", refresh="rows")
    assert (how(node), node.strategy and node.strategy.code) == ("full", "DEFINITION_CHANGED")
