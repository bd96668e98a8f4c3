"""What a query reads: every table name with its exact span, CTEs and functions left out."""

from __future__ import annotations

import pytest

from sqb.errors import SqbError
from sqb.sql.references import analyse

READS = [
    ("a plain name", "SELECT * FROM m", ["m"]),
    ("a qualified name", "SELECT * FROM raw.orders o", ["raw.orders"]),
    ("three parts", "SELECT * FROM lake.raw.orders", ["lake.raw.orders"]),
    ("quoted", "SELECT * FROM `raw`.`my table`", ["raw.my table"]),
    ("a comma join", "SELECT * FROM a, b", ["a", "b"]),
    ("joins", "SELECT * FROM a JOIN b USING (k) LEFT JOIN c ON true", ["a", "b", "c"]),
    ("a CTE is no reference", "WITH a AS (SELECT * FROM b) SELECT * FROM a", ["b"]),
    (
        "a CTE does not see itself",
        "WITH a AS (SELECT * FROM a) SELECT * FROM a",
        ["a"],
    ),
    (
        "a CTE sees those before it",
        "WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b",
        [],
    ),
    (
        "a CTE does not see those after it",
        "WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b",
        ["a"],
    ),
    (
        "an inner CTE ends with its query",
        "SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a), a",
        ["a"],
    ),
    ("CTE names have no case", "WITH Abc AS (SELECT 1) SELECT * FROM aBC", []),
    ("a qualified name is never a CTE", "WITH t AS (SELECT 1) SELECT * FROM raw.t", ["raw.t"]),
    ("a sub-query in WHERE", "SELECT 1 FROM a WHERE x IN (SELECT y FROM b)", ["a", "b"]),
    ("a scalar sub-query", "SELECT (SELECT max(x) FROM b) FROM a", ["b", "a"]),
    ("EXISTS", "SELECT 1 FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)", ["a", "b"]),
    ("UNION", "SELECT 1 FROM a UNION ALL SELECT 2 FROM b", ["a", "b"]),
    ("FROM that is not FROM", "SELECT extract(YEAR FROM d), trim(BOTH 'x' FROM s) FROM a", ["a"]),
    ("IS DISTINCT FROM", "SELECT a.x IS DISTINCT FROM a.y FROM a", ["a"]),
    ("a table function", "SELECT * FROM range(10)", []),
    ("VALUES", "SELECT * FROM VALUES (1), (2) AS v(x)", []),
    ("LATERAL VIEW", "SELECT * FROM a LATERAL VIEW explode(xs) e AS x", ["a"]),
    ("explicit calls", 'SELECT * FROM __ref("m") JOIN __seed("s") ON true', ["m", "s"]),
    ("a hint reads nothing", "SELECT /*+ BROADCAST(m), SHUFFLE_HASH(x) */ * FROM m x", ["m"]),
    ("a name in a literal or comment", "SELECT 'FROM x' FROM a -- FROM y", ["a"]),
]


@pytest.mark.parametrize(("sql", "names"), [c[1:] for c in READS], ids=[c[0] for c in READS])
def test_what_is_read(sql: str, names: list[str]) -> None:
    found = analyse(sql, file="m.sql").references
    assert [".".join(r.parts) for r in found] == names


def test_spans_cover_the_whole_name_and_nothing_else() -> None:
    sql = 'SELECT * FROM raw.orders AS o JOIN __ref("m") ON true, `lake`.`raw`.`x y`'
    spans = [sql[r.start : r.end] for r in analyse(sql, file="m.sql").references]
    assert spans == ["raw.orders", '__ref("m")', "`lake`.`raw`.`x y`"]


@pytest.mark.parametrize(
    ("sql", "aliased"),
    [
        ("SELECT * FROM m AS x", [True]),
        ("SELECT * FROM m x", [True]),
        ("SELECT * FROM m", [False]),
        ("SELECT * FROM m JOIN n ON true", [False, False]),
        ('SELECT * FROM __ref("m") x, __ref("n") WHERE true', [True, False]),
    ],
)
def test_aliases_are_seen(sql: str, aliased: list[bool]) -> None:
    assert [r.aliased for r in analyse(sql, file="m.sql").references] == aliased


@pytest.mark.parametrize(
    ("sql", "constants", "volatile"),
    [
        ("SELECT current_date(), current_date FROM t", 2, ()),
        ("SELECT t.current_date, 1 AS current_date FROM t", 0, ()),
        ("SELECT now(), rand(), uuid() FROM t", 0, ("now", "rand", "uuid")),
        ("SELECT unix_timestamp(x), now FROM t", 0, ()),
        ("SELECT unix_timestamp() FROM t", 0, ("unix_timestamp",)),
    ],
)
def test_values_of_the_moment(sql: str, constants: int, volatile: tuple[str, ...]) -> None:
    found = analyse(sql, file="m.sql")
    assert (len(found.constants), found.volatile) == (constants, volatile)


BROKEN = [
    ("an empty file", "", "P004", 1),
    ("only a comment", "-- nothing", "P004", 1),
    ("broken SQL", "SELECT a\nFROM t\nWHERE (", "P004", 3),
    ("two statements", "SELECT 1; SELECT 2", "P004", 1),
    ("not a query", "CREATE TABLE x AS SELECT 1", "P004", 1),
    ("a bare NULL", "SELECT 1 AS a,\n  NULL AS b", "P013", 2),
    ("a call without a name", "SELECT *\nFROM __ref(m)", "P005", 2),
    ("a metadata table", "SELECT * FROM lake.raw.t.snapshots", "C011", 1),
    ("a computed name", "SELECT * FROM IDENTIFIER('raw.t')", "C011", 1),
    ("a comment that swallows a line", "SELECT a -- x \\\n, b FROM t", "P004", 1),
    ("a later call", 'SELECT __udf("f")(1)', "C011", 1),
]


@pytest.mark.parametrize(
    ("sql", "code", "line"), [c[1:] for c in BROKEN], ids=[c[0] for c in BROKEN]
)
def test_bad_sql_is_named_with_its_line(sql: str, code: str, line: int) -> None:
    with pytest.raises(SqbError) as error:
        analyse(sql, file="models/m.sql", first_line=1)
    assert (error.value.code, error.value.file, error.value.line) == (code, "models/m.sql", line)
