"""What a query reads: every table name with its exact span, CTEs and functions left out."""

from __future__ import annotations

import pytest

from sqb.errors import SqbError
from sqb.sql.analysis import bound
from sqb.sql.references import analyse
from sqb.sql.splice import splice

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
    (
        "a group by time",
        "SELECT window(ts, '1 day') AS w FROM a GROUP BY window(ts, '1 day')",
        ["a"],
    ),
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
        ("SELECT `current_date`(), `current_date`, `rand`() FROM t", 1, ("rand",)),
        ("SELECT now(), rand(), uuid() FROM t", 0, ("now", "rand", "uuid")),
        ("SELECT unix_timestamp(x), now FROM t", 0, ()),
        ("SELECT unix_timestamp() FROM t", 0, ("unix_timestamp",)),
        ("SELECT current_time(), uniform(1, 9) FROM t", 0, ("current_time", "uniform")),
    ],
)
def test_values_of_the_moment(sql: str, constants: int, volatile: tuple[str, ...]) -> None:
    found = analyse(sql, file="m.sql")
    days = [one for one in found.constants if one.name == "current_date"]
    assert (len(days), found.volatile) == (constants, volatile)


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("DATE'today'", "DATE'2026-01-31'"),
        ("DATE 'Yesterday '", "date_sub(DATE'2026-01-31', 1)"),
        ("date('tomorrow')", "date_add(DATE'2026-01-31', 1)"),
        ("to_date('now')", "DATE'2026-01-31'"),
        ("CAST('today' AS DATE)", "DATE'2026-01-31'"),
        ('try_cast("today" AS date)', "DATE'2026-01-31'"),
        ("'today'::date", "DATE'2026-01-31'"),
        ("TIMESTAMP'today'", "CAST(DATE'2026-01-31' AS TIMESTAMP)"),
        ("TIMESTAMP_NTZ'tomorrow'", "CAST(date_add(DATE'2026-01-31', 1) AS TIMESTAMP_NTZ)"),
        ("TIMESTAMP'now'", "current_timestamp()"),
        ("to_timestamp('now')", "current_timestamp()"),
        ("TIMESTAMP_NTZ'now'", "CAST(current_timestamp() AS TIMESTAMP_NTZ)"),
        ("'today'", None),
        ("x > 'yesterday'", None),
        ("coalesce(x, 'now')", None),
        ("DATE'today UTC'", None),
        ("TIMESTAMP'tomorrow Europe/Berlin'", None),
        ("CASE WHEN x THEN 'today' ELSE y END", None),
        ("CASE x WHEN 'today' THEN 'a' END", None),
    ],
)
def test_words_that_spark_reads_as_days(written: str, becomes: str | None) -> None:
    """Where only types would tell whether it is a day, it counts as one and stays as it is."""
    sql = f"SELECT a, {written} AS b FROM t"
    found = analyse(sql, file="m.sql")
    assert len(found.constants) == 1
    assert found.constants[0].certain == (becomes is not None)
    edits = bound(found.constants, {"current_date": "2026-01-31"})
    assert splice(sql, edits).text == f"SELECT a, {becomes or written} AS b FROM t"


@pytest.mark.parametrize(
    "written",
    [
        "CASE WHEN x THEN 'today' WHEN (y) THEN 'yesterday' ELSE 'earlier' END",
        "CASE WHEN CASE WHEN y THEN 1 END = 1 THEN 'now' END",
        "'nowhere'",
        "'today is a day'",
        "'todays'",
        "DATE'epoch'",
        "DATE'2026-01-31'",
    ],
)
def test_words_that_are_no_days(written: str) -> None:
    assert analyse(f"SELECT {written} AS b FROM t", file="m.sql").constants == ()


BROKEN = [
    ("an empty file", "", "P004", 1),
    ("only a comment", "-- nothing", "P004", 1),
    ("broken SQL", "SELECT a\nFROM t\nWHERE (", "P004", 3),
    ("a call that the parser stumbles over", "SELECT a,\n  map(1) AS m FROM t", "P004", 1),
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
