"""Grouped queries in two: the texts, the rows, and what is left as it is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import duckdb
import pytest
from plans import TABLES, Data, plan_of, to_duckdb
from rounds import TRY_SUM

from sqb.refresh.ir import Aggregate, Project
from sqb.refresh.strategies import not_mergeable
from sqb.sql.references import analyse_tokens
from sqb.sql.row_state import Split, split_groups
from sqb.sql.state_columns import Whole
from sqb.sql.tokens import split


def halves(sql: str) -> Split:
    tokens = split(sql)
    return split_groups(tokens, analyse_tokens(tokens, "m.sql").constants, "m__s1")


def words(text: str) -> str:
    return " ".join(text.split())


CASES = {
    "hidden groups": (
        "SELECT g, SUM(x) AS s FROM t WHERE y > 1 GROUP BY g HAVING SUM(x) > 10 AND COUNT(*) > 1",
        (
            "SELECT g AS `g1`, COUNT(*) AS `n`, COUNT(x) AS `a1`, SUM(x) AS `a2` "
            "FROM t WHERE y > 1 GROUP BY g"
        ),
        (
            "SELECT sqb_s.`g1` AS `g`, sqb_s.`a2` AS `s` FROM `m__s1` AS sqb_s "
            "WHERE sqb_s.`a2` > 10 AND sqb_s.`n` > 1"
        ),
    ),
    "a ratio of sums": (
        "SELECT g, SUM(a) / SUM(b) AS r FROM t GROUP BY g",
        (
            "SELECT g AS `g1`, COUNT(*) AS `n`, COUNT(a) AS `a1`, COUNT(b) AS `a2`, "
            "SUM(a) AS `a3`, SUM(b) AS `a4` FROM t GROUP BY g"
        ),
        "SELECT sqb_s.`g1` AS `g`, sqb_s.`a3` / sqb_s.`a4` AS `r` FROM `m__s1` AS sqb_s",
    ),
    "a count that is missing": (
        "SELECT g, SUM(x) AS s FROM t GROUP BY g",
        "SELECT g AS `g1`, COUNT(*) AS `n`, COUNT(x) AS `a1`, SUM(x) AS `a2` FROM t GROUP BY g",
        "SELECT sqb_s.`g1` AS `g`, sqb_s.`a2` AS `s` FROM `m__s1` AS sqb_s",
    ),
    "conditions of aggregates": (
        (
            "SELECT g, COUNT_IF(x > 1) AS c, SUM(x) FILTER (WHERE y = 'A') AS s, "
            "COUNT(*) FILTER (WHERE y = 'a') AS d FROM t GROUP BY g"
        ),
        (
            "SELECT g AS `g1`, COUNT(*) AS `n`, COUNT(CASE WHEN x > 1 THEN 1 END) AS `a1`, "
            "COUNT(CASE WHEN y = 'A' THEN x END) AS `a2`, "
            "COUNT(CASE WHEN y = 'a' THEN 1 END) AS `a3`, "
            "SUM(CASE WHEN y = 'A' THEN x END) AS `a4` FROM t GROUP BY g"
        ),
        (
            "SELECT sqb_s.`g1` AS `g`, sqb_s.`a1` AS `c`, sqb_s.`a4` AS `s`, sqb_s.`a3` AS `d` "
            "FROM `m__s1` AS sqb_s"
        ),
    ),
    "an average": (
        "SELECT g, AVG(x + 1) AS m, mean(y) FILTER (WHERE z > 1) AS o FROM t GROUP BY g",
        (
            "SELECT g AS `g1`, COUNT(*) AS `n`, AVG(x + 1) AS `a1`, "
            "AVG(CASE WHEN z > 1 THEN y END) AS `a2`, COUNT(x + 1) AS `a3`, "
            "COUNT(CASE WHEN z > 1 THEN y END) AS `a4`, COUNT(CASE WHEN CAST((x + 1) AS DOUBLE) "
            "NOT BETWEEN -4503599627370496 AND 4503599627370496 THEN 1 END) AS `a5`, "
            "COUNT(CASE WHEN CAST((CASE WHEN z > 1 THEN y END) AS DOUBLE) "
            "NOT BETWEEN -4503599627370496 AND 4503599627370496 THEN 1 END) AS `a6`, "
            "TRY_SUM(x + 1) AS `a7`, TRY_SUM(CASE WHEN z > 1 THEN y END) AS `a8` FROM t GROUP BY g"
        ),
        "SELECT sqb_s.`g1` AS `g`, sqb_s.`a1` AS `m`, sqb_s.`a2` AS `o` FROM `m__s1` AS sqb_s",
    ),
    "one row for all": (
        "SELECT SUM(x) / COUNT(*) AS mean FROM t HAVING COUNT(*) > 0",
        "SELECT COUNT(*) AS `n`, COUNT(x) AS `a1`, SUM(x) AS `a2` FROM t",
        "SELECT sqb_s.`a2` / sqb_s.`n` AS `mean` FROM `m__s1` AS sqb_s WHERE sqb_s.`n` > 0",
    ),
    "a group that is not shown": (
        "SELECT SUM(x) AS s FROM t GROUP BY g",
        "SELECT g AS `g1`, COUNT(*) AS `n`, COUNT(x) AS `a1`, SUM(x) AS `a2` FROM t GROUP BY g",
        "SELECT sqb_s.`a2` AS `s` FROM `m__s1` AS sqb_s",
    ),
    "groups by number, and a column in two spellings": (
        "SELECT t.g, upper(g) AS u, SUM(x) AS s FROM r.t AS t JOIN u ON t.a = u.a GROUP BY 1, u.k",
        (
            "SELECT t.g AS `g1`, u.k AS `g2`, COUNT(*) AS `n`, COUNT(x) AS `a1`, SUM(x) AS `a2` "
            "FROM r.t AS t JOIN u ON t.a = u.a GROUP BY 1, u.k"
        ),
        (
            "SELECT sqb_s.`g1` AS `g`, upper(sqb_s.`g1`) AS `u`, sqb_s.`a2` AS `s` "
            "FROM `m__s1` AS sqb_s"
        ),
    ),
    "groups by the name of a result, CTEs, hints, results by name": (
        (
            "WITH c AS (SELECT * FROM t) SELECT /*+ COALESCE(1) */ date_trunc('month', c.ts) "
            "AS month, SUM(x) AS x FROM c GROUP BY month "
            "HAVING x > 3 AND month < current_date() ORDER BY 1"
        ),
        (
            "WITH c AS (SELECT * FROM t) SELECT /*+ COALESCE(1) */ date_trunc('month', c.ts) AS "
            "`month`, COUNT(*) AS `n`, COUNT(x) AS `a1`, SUM(x) AS `a2` FROM c GROUP BY month"
        ),
        (
            "SELECT sqb_s.`month` AS `month`, sqb_s.`a2` AS `x` FROM `m__s1` AS sqb_s "
            "WHERE (sqb_s.`a2`) > 3 AND (sqb_s.`month`) < current_date()"
        ),
    ),
    "all that is no aggregate": (
        "SELECT DISTINCT a + b AS k, 'x' AS lit, MAX(c) AS m FROM t GROUP BY ALL",
        "SELECT a + b AS `g1`, 'x' AS `g2`, COUNT(*) AS `n`, MAX(c) AS `a1` FROM t GROUP BY 1, 2",
        (
            "SELECT DISTINCT sqb_s.`g1` AS `k`, sqb_s.`g2` AS `lit`, sqb_s.`a1` AS `m` "
            "FROM `m__s1` AS sqb_s"
        ),
    ),
    "a condition with alternatives that have something in common": (
        (
            "SELECT g, COUNT(*) AS n FROM t GROUP BY g "
            "HAVING (g = 1 AND SUM(x) > 2) OR (g = 1 AND MIN(x) < 0)"
        ),
        (
            "SELECT g AS `g1`, COUNT(*) AS `n`, COUNT(x) AS `a1`, MIN(x) AS `a2`, SUM(x) AS `a3` "
            "FROM t GROUP BY g"
        ),
        (
            "SELECT sqb_s.`g1` AS `g`, sqb_s.`n` AS `n` FROM `m__s1` AS sqb_s "
            "WHERE (sqb_s.`g1` = 1 AND sqb_s.`a3` > 2) OR (sqb_s.`g1` = 1 AND sqb_s.`a2` < 0)"
        ),
    ),
    "names that the state would take itself": (
        "SELECT lower(s) AS n, SUM(g1) AS s2 FROM t GROUP BY n",
        (
            "SELECT lower(s) AS `n`, COUNT(*) AS `n2`, COUNT(g1) AS `a1`, SUM(g1) AS `a2` "
            "FROM t GROUP BY n"
        ),
        "SELECT sqb_s.`n` AS `n`, sqb_s.`a2` AS `s2` FROM `m__s1` AS sqb_s",
    ),
    "a function of a group, and an expression that is one": (
        (
            "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS k, abs(b) + 1 AS c, -- a note\n"
            " SUM(x) + 1 AS s FROM t GROUP BY CASE WHEN a > 1 THEN 'x' ELSE 'y' END, b"
        ),
        (
            "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS `g1`, b AS `g2`, COUNT(*) AS `n`, "
            "COUNT(x) AS `a1`, SUM(x) AS `a2` FROM t "
            "GROUP BY CASE WHEN a > 1 THEN 'x' ELSE 'y' END, b"
        ),
        (
            "SELECT sqb_s.`g1` AS `k`, abs(sqb_s.`g2`) + 1 AS `c`, sqb_s.`a2` + 1 AS `s` "
            "FROM `m__s1` AS sqb_s"
        ),
    ),
    "a name in HAVING that only a sum has": (
        "SELECT g, SUM(amount) AS amount FROM t GROUP BY g HAVING SUM(amount) > 1",
        (
            "SELECT g AS `g1`, COUNT(*) AS `n`, COUNT(amount) AS `a1`, SUM(amount) AS `a2` "
            "FROM t GROUP BY g"
        ),
        (
            "SELECT sqb_s.`g1` AS `g`, sqb_s.`a2` AS `amount` FROM `m__s1` AS sqb_s "
            "WHERE sqb_s.`a2` > 1"
        ),
    ),
}


@pytest.mark.parametrize("title", CASES)
def test_a_query_in_two(title: str) -> None:
    sql, groups, over = CASES[title]
    found = halves(sql)
    assert words(found.groups.text) == groups
    assert words(found.over.text) == over


WHOLE = [
    ("SELECT g, COUNT(*) AS n, SUM(x) AS s, COUNT(x) AS c FROM t GROUP BY g", "are enough"),
    ("SELECT g, MIN(x) AS s FROM t GROUP BY g", "are enough"),
    ("SELECT SUM(x) AS s FROM t", "are enough"),
    ("SELECT g FROM t", "does not end in GROUP BY"),
    ("SELECT g FROM t UNION ALL SELECT g FROM u", "does not end in GROUP BY"),
    ("(SELECT g, SUM(x) AS s FROM t GROUP BY g)", "begin with SELECT"),
    ("SELECT g, COUNT(DISTINCT x) AS a FROM t GROUP BY g", "all values of a group"),
    ("SELECT g, collect_list(x) AS a FROM t GROUP BY g", "COLLECT_LIST can't"),
    ("SELECT g, stddev(x) AS a FROM t GROUP BY g", "STDDEV can't"),
    ("SELECT g, SUM(x) AS s FROM t GROUP BY g LIMIT 3", "LIMIT"),
    ("SELECT g, SUM(x) FROM t GROUP BY g", "no name"),
    ("SELECT *, SUM(x) AS s FROM t GROUP BY ALL", r"holds \*"),
    ("SELECT g, SUM(SUM(x)) OVER () AS s FROM t GROUP BY g", "window"),
    ("SELECT g, to_json(struct(g)) AS j, SUM(x) AS s FROM t GROUP BY g", "no AS names"),
    ("SELECT g, SUM(x) AS s FROM t GROUP BY g QUALIFY row_number() OVER (ORDER BY g) = 1", "QUAL"),
    ("SELECT g, SUM(x) AS s FROM t GROUP BY ROLLUP (g)", "several sets"),
    ("SELECT g, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > (SELECT MAX(y) FROM u)", "sub-query"),
    ("SELECT g, SUM(x) AS s FROM t GROUP BY g HAVING g IN (SELECT y FROM u)", "sub-query"),
    ("SELECT g, my_udf(SUM(x)) AS s FROM t GROUP BY g", "my_udf is not understood|function my_udf"),
    ("SELECT h, SUM(x) AS s FROM t GROUP BY g", "h stands beside"),
    ("SELECT 2 * a + b AS k, SUM(x) / 2 AS s FROM t GROUP BY a + b", "beside GROUP BY"),
    ("SELECT g, SUM(x) AS s, s / 2 AS h FROM t GROUP BY g", "column or a result"),
    ("SELECT -g AS g, SUM(x) / 2 AS s FROM t GROUP BY g HAVING g > 0", "column or a result"),
    ("SELECT a AS b, SUM(x) / 2 AS s FROM t GROUP BY a, b", "column or a result"),
    ("SELECT upper(a) AS b, SUM(b) / 2 AS s FROM t GROUP BY a", "column or a result"),
    ("SELECT a.k, b.k AS l, SUM(x) / 2 AS s FROM a JOIN b USING (k) GROUP BY k", "beside GROUP BY"),
    ("SELECT g, Sum(x) / 2 AS s FROM t GROUP BY g, G", "two spellings"),
    ("SELECT CAST(g AS TINYINT) AS g, SUM(x) / 2 AS s FROM t GROUP BY 1", "TINYINT"),
    ("SELECT g COLLATE UTF8_LCASE AS g, SUM(x) / 2 AS s FROM t GROUP BY 1", "COLLATE"),
    ("SELECT typeof(MIN(x)) AS g FROM t", "typeof"),
]


@pytest.mark.parametrize(("sql", "why"), WHOLE, ids=[sql for sql, _ in WHOLE])
def test_a_query_that_stays_whole(sql: str, why: str) -> None:
    with pytest.raises(Whole, match=why):
        halves(sql)


@pytest.mark.parametrize(
    "other",
    [
        "SELECT g, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 99",
        "SELECT SUM(x) AS total, g AS k FROM t GROUP BY g HAVING COUNT(*) > 1",
        "SELECT g, SUM(x) / COUNT(x) AS s FROM t GROUP BY g",
    ],
)
def test_what_is_done_with_groups_does_not_change_them(other: str) -> None:
    one = halves("SELECT g, SUM(x) AS s FROM t GROUP BY g HAVING SUM(x) > 1")
    assert halves(other).groups.text == one.groups.text


def test_every_piece_knows_where_it_came_from() -> None:
    sql = "SELECT g,\n  SUM(x +\n  1) AS s\nFROM t\nGROUP BY g\nHAVING\n  COUNT(y) > 1"
    found = halves(sql)
    for made in (found.groups, found.over):
        for word in ("t", "GROUP", "> 1", "1)"):
            at = made.text.find(word)
            if at >= 0 and word != "t":
                place = made.origin(at)
                assert sql[place:].startswith(word) or word == "GROUP", (word, made.text)


class Queries:
    """Random grouped queries over the three tables of the algebra's tests."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def make(self) -> str:
        pick = self.rng.choice
        rows, columns = pick(
            [
                ("t0", ["a", "b", "c"]),
                ("t0 AS x", ["x.a", "b", "x.c"]),
                ("t0 AS x JOIN t1 AS y ON x.a = y.a", ["x.a", "x.b", "y.b", "c"]),
                ("(SELECT a, b + 1 AS b FROM t2) AS d", ["a", "d.b"]),
                ("t2 LEFT JOIN t1 AS y ON t2.b = y.b", ["t2.a", "c", "y.a"]),
            ]
        )
        if self.rng.random() < 0.4:
            rows += f" WHERE {pick(columns)} > 1"
        shapes = ["{0}", "{0}", "{0} + {1}", "abs({0})", "CASE WHEN {0} > 1 THEN {1} END"]
        keys = [
            pick(shapes).format(pick(columns), pick(columns)) for _ in range(pick([0, 1, 1, 2]))
        ]
        keys = list(dict.fromkeys(keys))
        calls = [
            "SUM({0})",
            "COUNT(*)",
            "COUNT({0})",
            "MIN({0})",
            "MAX({0} + 1)",
            "SUM({0} * 2) FILTER (WHERE {1} > 0)",
            "COUNT(*) FILTER (WHERE {0} = 1)",
            "COUNT({0}) FILTER (WHERE {0} > {1})",
            "SUM(CASE WHEN {0} IS NULL THEN 1 ELSE {1} END)",
            "AVG({0} + 1)",
        ]
        made = [pick(calls).format(pick(columns), pick(columns)) for _ in range(pick([1, 2, 3]))]
        made += [pick(["COALESCE({0}, 0) + {1}", "{0} - {1} * 2"]).format(pick(made), pick(made))]
        shown = self.rng.sample(made, self.rng.randrange(1, len(made) + 1))
        items = [f"{call} AS r{n}" for n, call in enumerate(shown)]
        tested = [
            *(f"{call} > 1" for call in made),
            *(f"r{n} IS NOT NULL" for n in range(len(shown))),
        ]
        groups = ", ".join(keys)
        if keys and self.rng.random() < 0.8:
            numbers = ", ".join(str(len(shown) + n + 1) for n in range(len(keys)))
            names = ", ".join(f"k{n}" for n in range(len(keys)))
            groups = pick([groups, groups, numbers, names, "ALL"])
            items += [f"{key} AS k{n}" for n, key in enumerate(keys)]
            items += [f"-({keys[0]}) AS m"] * (self.rng.random() < 0.3)
            tested += ["k0 < 3", f"{keys[0]} IS NOT NULL OR {made[0]} = 0"]
        distinct = "DISTINCT " * (self.rng.random() < 0.15)
        sql = f"SELECT {distinct}{', '.join(items)} FROM {rows}"
        if keys:
            sql += f" GROUP BY {groups}"
        if self.rng.random() < 0.5:
            sql += f" HAVING {pick([' AND ', ' OR ']).join(self.rng.sample(tested, 2))}"
        return sql


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute(TRY_SUM)
    yield connection
    connection.close()


def test_two_queries_give_the_rows_of_the_one(db: duckdb.DuckDBPyConnection) -> None:
    split_up = 0
    for seed in range(150):
        rng = random.Random(seed)
        if seed % 20 == 0:
            Data(rng).load(db)
            for table in TABLES:
                db.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT * FROM new_{table}")
        sql = Queries(rng).make()
        try:
            found = halves(sql)
        except Whole:
            continue
        split_up += 1
        db.execute(f"CREATE OR REPLACE TEMP TABLE m__s1 AS {to_duckdb(found.groups.text)}")
        whole = db.execute(to_duckdb(sql))
        names = [column[0] for column in whole.description or ()]
        rows = Counter(whole.fetchall())
        two = db.execute(to_duckdb(found.over.text))
        assert [column[0] for column in two.description or ()] == names, sql
        assert Counter(two.fetchall()) == rows, f"seed {seed}: {sql}"
    assert split_up > 90


def test_groups_of_counts_and_sums_take_rows_in_and_give_rows_up() -> None:
    for seed in range(60):
        sql = Queries(random.Random(seed)).make()
        try:
            found = halves(sql)
        except Whole:
            continue
        plan = plan_of(found.groups.text)
        assert isinstance(plan.root, Project)
        node = plan.root.child
        assert isinstance(node, Aggregate)
        shown = [expr.column for _, expr in plan.root.items]
        assert shown == [col for col, _ in (*node.keys, *node.calls)], sql
        types = {c: "double" if call.function == "avg" else "bigint" for c, call in node.calls}
        growing = any(call.function in ("min", "max") for _, call in node.calls)
        refused = not_mergeable(node, types, signed=not growing)
        assert refused is None, (sql, refused)
