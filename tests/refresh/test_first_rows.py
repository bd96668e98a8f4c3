"""ORDER BY with LIMIT: which rows are first, and when the table and the change do not tell."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
from plans import Data, plan_of, relation
from rounds import checked_query

from sqb.refresh.changes import TableChange
from sqb.refresh.free import ties
from sqb.refresh.ir import Col, Top
from sqb.refresh.script import Script
from sqb.refresh.strategies import Choice, Situation, TopMerge, choose
from sqb.sql.fragments import Unsupported

ADDED = TableChange("append", 1, 2)
REWRITTEN = TableChange("changelog", 1, 2)
NUMBERS = {Col(f"c{number}"): "int" for number in range(99)}


def chosen(sql: str, change: TableChange, *, old: bool = True) -> Choice:
    readable = frozenset({"t0", "t1"} if old else ())
    situation = Situation(plan_of(sql), {"t0": change}, NUMBERS, readable)
    return choose(situation, Script(relation, str))


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    yield connection
    connection.close()


QUERIES = [
    "SELECT x.a, x.b FROM t0 x ORDER BY a DESC NULLS LAST, b ASC NULLS FIRST LIMIT 3",
    "SELECT x.a, x.b, x.c FROM t0 x ORDER BY b ASC NULLS FIRST LIMIT 2",
    "SELECT x.a, COUNT(*) AS n FROM t0 x GROUP BY x.a ORDER BY n DESC, 1 ASC NULLS FIRST LIMIT 2",
    "SELECT x.a, y.b AS d FROM t0 x JOIN t1 y ON x.a = y.a ORDER BY 2 DESC NULLS FIRST LIMIT 4",
    "SELECT DISTINCT x.b FROM t0 x WHERE x.a > 1 ORDER BY b ASC NULLS LAST LIMIT 2",
    "SELECT x.a FROM t0 x UNION ALL SELECT y.b FROM t1 y ORDER BY a DESC NULLS LAST LIMIT 5",
]


@pytest.mark.parametrize("sql", QUERIES)
def test_first_rows_take_a_change_in_or_it_is_said_why_not(
    db: duckdb.DuckDBPyConnection, sql: str
) -> None:
    done: Counter[str] = Counter()
    for seed in range(25):
        rng = random.Random(f"{seed} {sql}")
        done += checked_query(db, sql, Data(rng, most=12), rng)
    assert done["top_merge"] > 4
    assert done["refused: LIMIT_ORDER"] > 0


def test_rows_that_only_come_are_always_taken_in_where_no_rows_tie(
    db: duckdb.DuckDBPyConnection,
) -> None:
    done: Counter[str] = Counter()
    for seed in range(20):
        rng = random.Random(seed)
        done += checked_query(db, QUERIES[0], Data(rng, "append", most=12), rng)
    assert done == {"top_merge": 20}


TIES = [
    ("SELECT a, b FROM t0 ORDER BY b, a LIMIT 3", False),
    ("SELECT a, b FROM t0 ORDER BY b LIMIT 3", True),
    ("SELECT a, b FROM t0 ORDER BY b, abs(a) LIMIT 3", True),
    ("SELECT a, SUM(b) AS s, MAX(c) AS m FROM t0 GROUP BY a ORDER BY s DESC, a LIMIT 3", False),
    ("SELECT a, SUM(b) AS s FROM t0 GROUP BY a HAVING SUM(b) > 1 ORDER BY a LIMIT 3", False),
    ("SELECT SUM(b) AS s, a AS k FROM t0 GROUP BY a, c ORDER BY k, s LIMIT 3", False),
    ("SELECT SUM(b) AS s, MAX(b) AS m, a AS k FROM t0 GROUP BY a, c ORDER BY k, s LIMIT 3", True),
]


@pytest.mark.parametrize(("sql", "told"), TIES)
def test_an_order_by_all_results_or_groups_leaves_nothing_open(sql: str, told: bool) -> None:
    root = plan_of(sql).root
    assert isinstance(root, Top)
    assert ties(root, NUMBERS) is told
    (option,) = chosen(sql, ADDED).options
    assert isinstance(option, TopMerge)
    assert option.looked is told


@pytest.mark.parametrize("kind", ["double", "float", "string collate UTF8_LCASE", "struct<a:int>"])
def test_values_that_differ_may_tie_by_their_type(kind: str) -> None:
    root = plan_of("SELECT a, b FROM t0 ORDER BY b, a LIMIT 3").root
    assert isinstance(root, Top)
    assert ties(root, {**NUMBERS, root.child.items[0][0]: kind})  # type: ignore[union-attr]


ORDERS = [
    ("SELECT a, -b AS b FROM t0 ORDER BY b LIMIT 1", "c5 ASC NULLS FIRST"),
    ("SELECT a, b AS x FROM t0 ORDER BY x DESC, 1 LIMIT 1", "c5 DESC NULLS LAST, c4 ASC"),
    ("SELECT a, b FROM t0 ORDER BY a + B DESC NULLS FIRST LIMIT 1", "c4 + c5 DESC NULLS FIRST"),
    ("SELECT t0.a AS x FROM t0 ORDER BY t0 . A LIMIT 1", "c4 ASC"),
    ("SELECT a, sum(b) AS s FROM t0 GROUP BY a ORDER BY SUM( b ) LIMIT 1", "c7 ASC"),
    ("SELECT a FROM t0 UNION SELECT a FROM t1 ORDER BY A NULLS LAST LIMIT 1", "ASC NULLS LAST"),
]


@pytest.mark.parametrize(("sql", "order"), ORDERS)
def test_a_name_in_order_by_is_a_result_first(sql: str, order: str) -> None:
    plan = plan_of(sql)
    script = Script(relation, str)
    assert order in script.steps[script.state(plan.root, "new")].sql


REFUSED = [
    "SELECT a FROM t0 ORDER BY b LIMIT 3",
    "SELECT a AS x, b AS a FROM t0 ORDER BY t0.a LIMIT 3",
    "SELECT a AS t0, b FROM t0 ORDER BY t0.b LIMIT 3",
    "SELECT a, b AS a FROM t0 ORDER BY a LIMIT 3",
    "SELECT a, SUM(b) AS b FROM t0 GROUP BY a ORDER BY SUM(b) LIMIT 3",
    "SELECT a, SUM(b) AS s FROM t0 GROUP BY a ORDER BY MAX(b) LIMIT 3",
    "SELECT a FROM t0 ORDER BY 2 LIMIT 3",
    "SELECT a FROM t0 ORDER BY ALL LIMIT 3",
    "SELECT a FROM t0 ORDER BY a LIMIT 3 OFFSET 2",
    "SELECT a FROM t0 ORDER BY a LIMIT 1 + 1",
    "SELECT a FROM t0 ORDER BY a LIMIT ALL",
    "SELECT a FROM t0 ORDER BY a LIMIT 0",
    "SELECT a FROM t0 ORDER BY (SELECT MAX(b) FROM t1) LIMIT 3",
    "SELECT a FROM (SELECT a FROM t0 ORDER BY a LIMIT 3) x",
    "WITH x AS (SELECT a FROM t0 ORDER BY a LIMIT 3) SELECT a FROM x",
    "SELECT a FROM t1 WHERE a IN (SELECT a FROM t0 ORDER BY a LIMIT 3)",
    "(SELECT a FROM t0 ORDER BY a LIMIT 3) UNION ALL SELECT a FROM t1",
]


@pytest.mark.parametrize("sql", REFUSED)
def test_other_limits_are_refused(sql: str) -> None:
    with pytest.raises(Unsupported):
        plan_of(sql)


def test_one_row_of_all_is_computed_again() -> None:
    (rejected,) = chosen(
        "SELECT SUM(b) AS s, MAX(b) AS m FROM t0 ORDER BY s LIMIT 3", ADDED
    ).rejected
    assert (rejected.name, rejected.code) == ("top_merge", "KEY_NOT_DERIVABLE")


TIED = "SELECT a < 4 AS p, b FROM t0 ORDER BY p DESC NULLS LAST LIMIT 2"


def test_a_change_behind_the_last_row_of_a_full_table_is_none(
    db: duckdb.DuckDBPyConnection,
) -> None:
    """Also where others tie with that row: nothing is looked for."""
    done: Counter[str] = Counter()
    for seed in range(60):
        rng = random.Random(seed)
        done += checked_query(db, TIED, Data(rng, most=12), rng)
    assert done["top_merge kept"] > 2


def test_first_rows_of_a_free_choice_are_not_merged() -> None:
    sql = "SELECT a, first(b) AS f FROM t0 GROUP BY a ORDER BY f, a LIMIT 3"
    choice = chosen(sql, REWRITTEN)
    assert [(r.name, r.code) for r in choice.rejected] == [("top_merge", "FREE_CHOICE")]


def test_rows_that_only_come_need_no_old_version() -> None:
    sql = "SELECT a, b FROM t0 WHERE c > 1 ORDER BY b, a LIMIT 3"
    assert [option.name for option in chosen(sql, ADDED, old=False).options] == ["top_merge"]
    groups = "SELECT a, COUNT(*) AS n FROM t0 GROUP BY a ORDER BY n, a LIMIT 3"
    assert chosen(groups, ADDED, old=False).rejected[0].code == "NO_CHANGE_SET"
