"""Queries as plans: the plan's own SQL gives the rows of the text, or the text is refused."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
from plans import TABLES, Data, Judge, checked, names, relation, to_duckdb

from sqb.refresh.build import Plan, TableRef, build
from sqb.refresh.script import Script
from sqb.sql.fragments import Unsupported
from sqb.sql.structure import structure
from sqb.sql.tokens import split

UNDERSTOOD = [
    "SELECT a, b + 1 AS b1 FROM t0 WHERE c > 1 AND a IS NOT NULL",
    "SELECT * FROM t0",
    "SELECT x.*, y.b AS yb FROM t0 x JOIN t1 AS y ON x.a = y.a AND x.c < 4",
    "SELECT t0.a, t1.b FROM t0, t1 WHERE t0.a = t1.a AND t1.b BETWEEN 1 AND 3",
    "SELECT x.a, y.b, z.c FROM t0 x, t1 y, t2 z WHERE x.a = z.a AND z.b = y.b",
    "SELECT a, t1.b FROM t0 LEFT JOIN t1 USING (a) WHERE c <> 2 OR c IS NULL",
    "SELECT * FROM t0 LEFT OUTER JOIN t1 USING (a)",
    "SELECT * FROM t0 RIGHT JOIN t1 ON t0.a = t1.a",
    "SELECT a, COALESCE(x.b, y.b) AS b FROM t0 x FULL OUTER JOIN t1 y USING (a)",
    "SELECT COALESCE(x.a, y.a) AS k, x.c FROM t0 x FULL JOIN t1 y ON x.a = y.a",
    "SELECT a, SUM(b) AS s, COUNT(*) AS n FROM t0 GROUP BY a",
    "SELECT a + 1 AS k, MAX(b) AS m FROM t0 GROUP BY a + 1",
    "SELECT a AS k, MAX(b) - MIN(b) AS spread FROM t0 GROUP BY 1 HAVING COUNT(*) > 1",
    "SELECT a AS k, COUNT(DISTINCT b) AS n FROM t0 GROUP BY k HAVING n > 0 AND SUM(c) < 9",
    "SELECT a, COUNT(*) AS n FROM t0 GROUP BY ALL",
    "SELECT SUM(b) AS s FROM t0",
    "SELECT a, SUM(CASE WHEN b > 1 THEN c ELSE 0 END) AS s FROM t0 GROUP BY a",
    "SELECT a, COUNT(*) FILTER (WHERE b > 1) AS n FROM t0 GROUP BY a",
    "SELECT DISTINCT a, b FROM t0",
    "SELECT a, b FROM t1 UNION ALL SELECT a, b FROM t0",
    "SELECT a FROM t0 UNION SELECT a FROM t1 EXCEPT SELECT b FROM t2",
    "SELECT a FROM t0 UNION ALL SELECT a FROM t1 INTERSECT SELECT b FROM t2",
    "(SELECT a FROM t0) EXCEPT ALL SELECT a FROM t1",
    "WITH x AS (SELECT a, b FROM t0 WHERE c > 0) SELECT x.a, y.b FROM x JOIN x AS y ON x.a = y.b",
    "WITH x(k) AS (SELECT a FROM t0), y AS (SELECT k FROM x) SELECT k FROM y",
    "SELECT d.k, d.n FROM (SELECT a AS k, COUNT(*) AS n FROM t0 GROUP BY a) d WHERE d.n > 1",
    "SELECT a, b FROM t0 WHERE EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a AND t1.b > t0.b)",
    "SELECT a, b FROM t0 WHERE NOT EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a)",
    "SELECT a, b FROM t0 WHERE a IN (SELECT b FROM t1 WHERE a > 1) AND c > 0",
    "SELECT a, b, SUM(b) OVER (PARTITION BY a ORDER BY c) AS r FROM t0",
    "SELECT a, b FROM t0 QUALIFY RANK() OVER (PARTITION BY a ORDER BY b DESC) = 1",
    "SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM t0 QUALIFY r < 3",
    "SELECT a, b FROM t0 WHERE (a > 1 AND (b < 3)) ORDER BY a",
    "SELECT a b, b AS `the c` FROM t0 -- a comment, with = and AND\nWHERE /* x */ a = 1",
    "SELECT T0.A, t0.B FROM T0 WHERE t0.C = 1",
    "SELECT a <=> b AS same, x.a = 1 AS one FROM t0 x",
    "SELECT x.a FROM t0 x JOIN t1 y ON x.a <=> y.a",
    "SELECT x.a, y.b FROM t0 x CROSS JOIN t1 y WHERE x.a < y.a",
    "SELECT x.a FROM t0 x LEFT SEMI JOIN t1 y ON x.a = y.a",
    "SELECT x.a FROM t0 x LEFT ANTI JOIN t1 y ON x.a = y.a AND y.b > 1",
    "SELECT CAST(a AS STRING) AS s, CASE a WHEN 1 THEN 'one = 1' ELSE 'x, y' END AS w FROM t0",
]
REFUSED = [
    ("SELECT a FROM t0 LIMIT 3", "LIMIT"),
    ("SELECT rand() AS r FROM t0", "rand"),
    ("SELECT my_udf(a) AS r FROM t0", "my_udf"),
    ("SELECT a FROM t0 WHERE a NOT IN (SELECT a FROM t1)", "NOT IN"),
    ("SELECT a FROM t0 WHERE b > (SELECT max(b) FROM t1)", "sub-query"),
    ("SELECT (SELECT max(b) FROM t1) AS m FROM t0", "sub-query"),
    ("SELECT a, COUNT(*) FROM t0 GROUP BY ROLLUP (a)", "ROLLUP"),
    ("SELECT * EXCEPT (a) FROM t0", "EXCEPT"),
    ("SELECT a FROM t0 TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ("SELECT a FROM t0 VERSION AS OF 3", "VERSION"),
    ("SELECT a FROM t0 WHERE a IN (SELECT a FROM t1) OR b = 1", "sub-query"),
    ("SELECT ROW_NUMBER() OVER (ORDER BY COUNT(*)) AS r FROM t0 GROUP BY a", "window over groups"),
    ("SELECT a FROM t0 CLUSTER BY a", "CLUSTER BY"),
    ("SELECT a, sum(b) OVER w FROM t0 WINDOW w AS (PARTITION BY a)", "named window"),
]


def plan_of(sql: str) -> Plan:
    def lookup(start: int) -> TableRef | None:
        name = sql[start : start + 2].lower()
        return TableRef(name, TABLES[name]) if name in TABLES else None

    return build(sql, structure(split(sql)), lookup)


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    Data(random.Random(7)).load(connection)
    for table in TABLES:
        connection.execute(f"CREATE VIEW {table} AS SELECT * FROM new_{table}")
    yield connection
    connection.close()


@pytest.mark.parametrize("sql", UNDERSTOOD)
def test_the_plan_gives_the_rows_of_the_text(db: duckdb.DuckDBPyConnection, sql: str) -> None:
    plan = plan_of(sql)
    script = Script(relation)
    state = script.state(plan.root, "new")
    found = Judge(db, script, translate=True).rows(state, names(plan.root))
    assert found == Counter(db.execute(to_duckdb(sql)).fetchall())


@pytest.mark.parametrize("sql", UNDERSTOOD)
def test_a_refresh_by_rows_is_a_rebuild(sql: str) -> None:
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        done: Counter[str] = Counter()
        for seed in range(3):
            rng = random.Random(f"{seed} {sql}")
            done += checked(db, plan_of(sql).root, Data(rng), rng, translate=True)
    assert done["keys"] + done["delta"] > 0


@pytest.mark.parametrize(("sql", "what"), REFUSED)
def test_what_is_not_understood_is_refused(sql: str, what: str) -> None:
    with pytest.raises(Unsupported, match=what):
        plan_of(sql)
