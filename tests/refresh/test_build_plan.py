"""Queries as plans: the plan's own SQL gives the rows of the text, or the text is refused."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
from plans import TABLES, Data, Judge, checked, names, plan_of, relation, to_duckdb
from queries import UNDERSTOOD

from sqb.refresh.ir import Expr, Join, Node, collated, inputs, output
from sqb.refresh.levels import level
from sqb.refresh.script import Script
from sqb.sql.fragments import Unsupported

REFUSED = [
    ("SELECT a FROM t0 LIMIT 3", "LIMIT"),
    ("SELECT a FROM t0 ORDER BY b LIMIT 3", "not a result"),
    ("SELECT rand() AS r FROM t0", "rand"),
    ("SELECT my_udf(a) AS r FROM t0", "my_udf"),
    ("SELECT (SELECT b FROM t1 WHERE t1.a = t0.a) AS m FROM t0", "without an aggregate"),
    ("SELECT a, (SELECT SUM(b) FROM t1 WHERE t1.b > t0.b) AS m FROM t0", "more than equalities"),
    ("SELECT (SELECT collect_list(b) FROM t1 WHERE t1.a = t0.a) AS m FROM t0", "collect_list"),
    ("SELECT a FROM t0 WHERE EXISTS (SELECT a FROM t1 WHERE t1.a = t0.a GROUP BY a)", "GROUP BY"),
    (
        (
            "SELECT a FROM t0 WHERE EXISTS (SELECT 1 FROM t1 WHERE EXISTS"
            " (SELECT 1 FROM t2 WHERE t2.a = t0.a))"
        ),
        "outside",
    ),
    ("SELECT a, b, COUNT(*) AS n FROM t0 GROUP BY a, b GROUPING SETS ((a), (b))", "expression"),
    ("SELECT a + b AS k, b AS c FROM t0 GROUP BY GROUPING SETS ((a + b), (b + a), (b))", "be one"),
    ("SELECT a, SUM(COUNT(*)) OVER () AS n FROM t0 GROUP BY CUBE (a)", "over grouping sets"),
    ("SELECT * EXCEPT (z) FROM t0", "EXCEPT"),
    ("SELECT * EXCEPT (s.a) FROM (SELECT struct(a, b) AS s, c FROM t0) q", r"\."),
    (
        (
            "SELECT x.a FROM t0 x LEFT JOIN t1 y ON x.a = y.a EXCEPT"
            " SELECT x.a FROM t0 x LEFT JOIN t1 y ON x.a = y.a WHERE y.a IS NULL"
        ),
        "the same again",
    ),
    ("SELECT x.x.* FROM (SELECT a AS x FROM t0) x", "x.x.*"),
    ("SELECT x.b FROM t0 x JOIN t1 y ON x.a = y.a JOIN t2 x ON y.b = y.a", "two relations"),
    ("SELECT COUNT(*) AS n FROM (SELECT a AS all FROM t0) q GROUP BY ALL", "of that name"),
    ("SELECT a AS b, COUNT(*) AS n FROM t0 GROUP BY a, b HAVING b > 1", "another result"),
    ("SELECT 2 * a + b AS k FROM t0 GROUP BY a + b", "beside GROUP BY"),
    ("SELECT t.a FROM (t0 x JOIN t1 y ON x.a = y.a) AS t", "with a name"),
    ("SELECT * FROM t0 x JOIN (t1 y JOIN t2 z USING (a)) ON x.a = y.b", "USING inside"),
    (
        "SELECT x.a FROM t0 x LEFT JOIN (t1 y JOIN t2 z ON y.a IN (SELECT a FROM t0)) ON x.a = z.a",
        "a sub-query in a join condition",
    ),
    ("SELECT a FROM t0 PIVOT (SUM(b) FOR c IN (1, 2))", "PIVOT"),
    ("SELECT a FROM t0 x PIVOT (SUM(b) FOR c IN (1, 2))", "PIVOT"),
    ("SELECT a FROM t0 LEFT JOIN t1 ON t0.a = t1.a AND t1.b IN (SELECT b FROM t2)", "join"),
    ("SELECT a FROM t0 WHERE a > ALL (SELECT a FROM t1)", "behind ALL"),
    ("SELECT a FROM t0 WHERE (a IN (SELECT a FROM t1)) IS NULL", "IN as a value"),
    ("SELECT m FROM (SELECT a IN (SELECT a FROM t1) AS m FROM t0) WHERE NOT m", "IN as a value"),
    ("SELECT a IN (SELECT a FROM t1) AS m, NOT m AS n FROM t0", "IN as a value"),
    ("SELECT NOT (a IN (SELECT a FROM t1)) AS m FROM t0", "IN as a value"),
    ("SELECT NULL NOT IN (SELECT a FROM t1) AS m FROM t0", "IN of a constant"),
    (
        "SELECT a FROM t0 WHERE a IN (SELECT a FROM t1) OR a NOT  IN (SELECT a FROM t1) OR b > 2",
        "IN and NOT IN of the same",
    ),
    ("SELECT a IN (SELECT a FROM t1) AS m FROM t0 UNION SELECT b > 1 FROM t2", "IN as a value"),
    ("SELECT a FROM t0 WHERE NOT (a IN (SELECT a FROM t1) OR b = 1)", "IN as a value"),
    ("SELECT a FROM t0 WHERE b = 1 OR NOT a IN (SELECT a FROM t1)", "IN as a value"),
    ("SELECT if(a IN (SELECT a FROM t1), 1, 2) AS m FROM t0", "IN as a value"),
    ("SELECT CASE a WHEN b IN (SELECT a FROM t1) THEN 1 END AS m FROM t0", "IN as a value"),
    (
        "SELECT CASE WHEN a > 1 THEN b > 1 AND a IN (SELECT a FROM t1) AND c > 1 END AS m FROM t0",
        "IN as a value",
    ),
    ("SELECT a FROM t0 WHERE b = 1 OR (SELECT MAX(b) FROM t1) IN (SELECT a FROM t1)", "sub-query"),
    ("SELECT a FROM t0 WHERE b = 1 OR (a, b) IN (SELECT a FROM t1)", "different widths"),
    ("SELECT a FROM t0 GROUP BY a HAVING COUNT(*) > 1 OR EXISTS (SELECT 1 FROM t1)", "GROUP BY"),
    ("SELECT a FROM t0 WHERE b = 1 OR a IS NULL IN (SELECT a > 1 FROM t1)", "IN behind IS"),
    ("SELECT a FROM t0 TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
    ("SELECT a FROM t0 VERSION AS OF 3", "VERSION"),
    ("SELECT a FROM t0 CLUSTER BY a", "CLUSTER BY"),
    ("SELECT x.a FROM t0 x, t1 y RIGHT JOIN t2 z ON y.a = z.a", "behind a comma"),
    ("SELECT a, sum(b) OVER w FROM t0 WINDOW w AS (PARTITION BY a)", "named window"),
    ("SELECT a, explode(b) FROM t0", "without AS"),
    ("SELECT a, 1 + explode(b) AS x FROM t0", "inside others"),
    ("SELECT explode(a) AS x, explode(b) AS y FROM t0", "twice"),
    ("SELECT explode(a) AS x, COUNT(*) OVER (PARTITION BY b) AS n FROM t0", "beside groups"),
    ("SELECT explode(a) AS x FROM t0 GROUP BY a", "beside groups"),
    ("SELECT explode(collect_list(a)) AS x FROM t0", "explode of an aggregate"),
    ("SELECT a AS (x, y) FROM t0", "several names"),
    ("SELECT a COLLATE UTF8_LCASE AS x FROM t0", "COLLATE"),
    ("SELECT 1 AS n FROM t0 GROUP BY a collate utf8_lcase", "COLLATE"),
    ("SELECT b, max(a COLLATE UTF8_LCASE) AS m FROM t0 GROUP BY b", "COLLATE"),
    (
        "SELECT b, rank() OVER (PARTITION BY a COLLATE UTF8_LCASE ORDER BY b) AS n FROM t0",
        "COLLATE",
    ),
    ("SELECT count(*) AS n FROM (SELECT DISTINCT a COLLATE UTF8_LCASE AS x FROM t0)", "COLLATE"),
    ("SELECT t0.b FROM t0, (SELECT * FROM VALUES ('a' COLLATE UTF8_LCASE) AS v(x)) w", "COLLATE"),
    ("SELECT transform(a, X -> x + 1) AS y FROM t0", "a lambda over x"),
    ("SELECT transform(a, c4 -> c4 + b) AS y FROM t0", "a lambda over c4"),
    ("SELECT a, end FROM t0", "a column named end"),
    ("SELECT (t0).a FROM t0", "a field of a column in parentheses"),
    ("SELECT a FROM t0 x WHERE ((x)).b > 1", "a field of a column in parentheses"),
    ("SELECT interval + 1 AS i FROM t0", "a column named interval"),
    ("SELECT interval - a AS i FROM t0", "a column named interval"),
    ("SELECT array[0] AS i FROM t0", "a column named array"),
    ("SELECT `max`(a) AS m FROM t0", "the function `max`"),
    ("SELECT a, `explode`(b) AS x FROM t0", "the function `explode`"),
    ("SELECT a, hash(*) AS h FROM t0", "[*] inside an expression"),
    ("SELECT a, count(DISTINCT *) AS n FROM t0 GROUP BY a", "[*] inside an expression"),
    ("SELECT to_json(struct(*)) AS j FROM t0", "[*] inside an expression"),
    ("SELECT aes_encrypt(a, b) AS x FROM t0", "aes_encrypt"),
    ("SELECT COUNT(*) AS n FROM t0 GROUP BY window(a, '1 day')", "window"),
    ("SELECT to_json((a, b)) AS j FROM t0", "a struct in parentheses"),
    ("SELECT arrays_zip(a, b) AS j FROM t0", "arrays_zip"),
    ("SELECT a, first(b) AS f FROM (SELECT * FROM t0 ORDER BY b) q GROUP BY a", "puts in order"),
]


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
    script = Script(relation, str)
    state = script.state(plan.root, "new")
    found = Judge(db, script, translate=True).rows(state, names(plan.root))
    assert found == Counter(db.execute(to_duckdb(sql)).fetchall())


@pytest.mark.parametrize("sql", UNDERSTOOD)
def test_a_refresh_by_rows_is_a_rebuild(sql: str) -> None:
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        done: Counter[str] = Counter()
        for seed in range(2):
            rng, root = random.Random(f"{seed} {sql}"), plan_of(sql).root
            # whether types are known makes a difference to what is written, not to what it means
            root = level(root, lambda node: ["int"] * len(output(node))) if seed else root
            done += checked(db, root, Data(rng), rng, translate=True)
    assert done["keys"] + done["delta"] > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t0.a FROM t0 JOIN t1 ON t0.a COLLATE UTF8_LCASE = t1.a",
        "SELECT t0.a FROM t0, t1 WHERE t0.a = t1.a COLLATE UTF8_LCASE",
        "SELECT t0.a FROM t0, t1, t2 WHERE t0.a = t1.a COLLATE UTF8_LCASE AND t0.b = t2.b",
        "SELECT a FROM t0 WHERE a COLLATE UTF8_LCASE IN (SELECT a FROM t1)",
        "SELECT a FROM t0 WHERE a COLLATE UTF8_LCASE NOT IN (SELECT a FROM t1)",
        "SELECT a FROM t0 WHERE EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a COLLATE UTF8_LCASE)",
        "SELECT a FROM t0 WHERE a COLLATE UTF8_LCASE = 'x'",
        "SELECT a, count(*) AS n FROM t0 GROUP BY a HAVING max(a) COLLATE UTF8_LCASE > 'x'",
    ],
)
def test_strings_that_only_compare_as_equal_do_not_stand_for_each_other(sql: str) -> None:
    def keys(node: Node) -> list[Expr]:
        pairs = node.equalities if isinstance(node, Join) else ()
        own = [expr for pair in pairs for expr in (pair.left, pair.right)]
        return own + [expr for child in inputs(node) for expr in keys(child)]

    assert not any(map(collated, keys(plan_of(sql).root)))


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("SELECT to_json(struct(a, b AS x, b)) AS j FROM t0", "(c1 AS `a`, c2 AS x, c2 AS `b`)"),
        ("SELECT c, max(struct(a.`x y`)) AS m FROM t0 GROUP BY c", "struct(c1.`x y` AS `x y`)"),
        ("SELECT to_json(struct(a)) AS j, a FROM t0 GROUP BY a", "struct(c4 AS `a`)"),
        (
            "SELECT a, to_json(struct(a, sum(b))) AS j FROM t0 GROUP BY a",
            "(c4 AS `a`, c5 AS `col2`)",
        ),
        ("SELECT struct(a % 3) AS j FROM t0 GROUP BY a % 3", "struct(c4 AS `col1`)"),
        (
            "SELECT struct(1, a + 1, max(b) OVER (PARTITION BY a)) AS j FROM t0",
            "c1 + 1, c4 AS `col3`)",
        ),
        ("SELECT a + INTERVAL 1 DAY FROM t0", "c1 + INTERVAL 1 DAY"),
        ("SELECT a + INTERVAL '1-2' YEAR TO MONTH FROM t0", "c1 + INTERVAL '1-2' YEAR TO MONTH"),
        ("SELECT a + INTERVAL 1 DAY later FROM t0", "c1 + INTERVAL 1 DAY"),
        ("SELECT exists(a, e -> e > b) AS x FROM t0", "exists(c1, e -> e > c2)"),
        ("SELECT t0.a FROM t0, t1 WHERE ! t0.b = t1.b", "ON (! c2 = c5)"),
    ],
)
def test_the_words_of_an_expression_stay(sql: str, text: str) -> None:
    script = Script(relation, str)
    script.state(plan_of(sql).root, "new")
    assert any(text in step.sql for step in script.steps.values()), script.steps


@pytest.mark.parametrize(("sql", "what"), REFUSED)
def test_what_is_not_understood_is_refused(sql: str, what: str) -> None:
    with pytest.raises(Unsupported, match=what):
        plan_of(sql)
