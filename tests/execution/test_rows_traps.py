"""Queries whose text means something else than it seems to: each is refreshed to what it gives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from proof import BY_ROWS, at_home, differences, on_spark, way_of

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof

TRAPS = {
    # each side of a set operation has a type of its own, the whole has another
    "union_all_of_types": "SELECT k AS x FROM raw.u UNION ALL SELECT s AS x FROM raw.t",
    "union_of_types": "SELECT k AS x FROM raw.u UNION SELECT s AS x FROM raw.t",
    "except_of_types": "SELECT k AS x FROM raw.u EXCEPT SELECT s AS x FROM raw.t",
    "intersect_of_types": "SELECT s AS x FROM raw.t INTERSECT ALL SELECT k AS x FROM raw.u",
    "groups_of_types": "SELECT x, count(*) AS n FROM"
    " (SELECT k AS x FROM raw.u UNION ALL SELECT s AS x FROM raw.t) q GROUP BY x",
    "hash_of_types": "SELECT hash(x) AS h, id FROM"
    " (SELECT id, k AS x FROM raw.t UNION ALL SELECT id, l AS x FROM raw.u) q",
    "third_of_types": "SELECT x / 3 AS third, id FROM"
    " (SELECT id, v AS x FROM raw.t UNION ALL SELECT id, w AS x FROM raw.u) q",
    # strings that are compared as numbers
    "left_join": "SELECT t.id, t.s, u.w FROM raw.t t LEFT JOIN raw.u u ON t.s = u.k",
    "exists": "SELECT id, s FROM raw.t t WHERE EXISTS (SELECT 1 FROM raw.u u WHERE u.k = t.s)",
    "not_in": "SELECT t.id, t.s FROM raw.t t"
    " WHERE t.s NOT IN (SELECT u.k FROM raw.u u WHERE u.k IS NOT NULL)",
    "full_join": "SELECT coalesce(t.s, u.k) AS key, t.id, u.w"
    " FROM raw.t t FULL JOIN raw.u u ON t.s = u.k",
    "using": "SELECT key, t.id, u.w FROM (SELECT s AS key, id FROM raw.t) t"
    " FULL JOIN (SELECT k AS key, w FROM raw.u) u USING (key)",
    # matches that are told as values, over rows that are a union: also where the query has none
    "mark_over_union": "SELECT q.id, q.k FROM (SELECT id, k FROM raw.t UNION ALL SELECT id, k"
    " FROM raw.u) q WHERE q.k IN (SELECT k FROM raw.p) OR q.id > 5",
    "mark_over_change": "SELECT known, count(*) AS n FROM (SELECT CASE WHEN t.g IN (SELECT k FROM"
    " raw.p) THEN 1 ELSE 0 END AS known FROM raw.t t JOIN raw.u u ON t.k = u.k) q GROUP BY known",
    "mark_below_change": "SELECT known, count(*) AS n FROM (SELECT CASE WHEN t.g IN (SELECT k FROM"
    " raw.u) THEN 1 ELSE 0 END AS known FROM raw.t t) q GROUP BY known",
    # a table with partitions: files without a value are read where Spark forgets to say that
    "mark_in_partitions": "SELECT id, g FROM raw.q"
    " WHERE g <> 0 AND (id IN (SELECT k FROM raw.p) OR id > 2)",
    "partitions": "SELECT g, id, count(*) OVER (PARTITION BY id) AS n FROM raw.q WHERE g <> 0",
    # Spark shows FALSE where IN is NULL
    "in_shown": "SELECT id, g IN (SELECT k FROM raw.p) AS known FROM raw.t",
    "not_in_shown": "SELECT id, g NOT IN (SELECT k FROM raw.u) AS strange FROM raw.t",
    "in_shown_beside": "SELECT id, k IN (SELECT k FROM raw.u WHERE u.id = t.id) OR g > 2 AS known"
    " FROM raw.t t",
    "pairs_shown": "SELECT DISTINCT g, (g, k) NOT IN (SELECT id, k FROM raw.u) AS strange"
    " FROM raw.t",
    # 0.0 and -0.0 are one value with two texts
    "floats_of_groups": "SELECT CAST(x AS STRING) AS sx, count(*) AS n FROM raw.f GROUP BY x",
    "floats_once": "SELECT concat('v', x) AS sx FROM (SELECT DISTINCT x FROM raw.f) q",
    "floats_in_windows": "SELECT id, CAST(x AS STRING) AS sx, count(*) OVER (PARTITION BY x) AS n"
    " FROM raw.f",
    "floats_united": "SELECT concat('v', x) AS sx FROM (SELECT x FROM raw.f UNION"
    " SELECT x + 1 FROM raw.f WHERE id < 3) q",
    "floats_joined": "SELECT CAST(a.x AS STRING) AS ax, CAST(b.x AS STRING) AS bx, a.id"
    " FROM raw.f a JOIN raw.f b ON a.x = b.x",
    "floats_matched": "SELECT a.id, EXISTS (SELECT 1 FROM raw.f b WHERE b.x = a.x"
    " AND concat('v', b.x) = concat('v', a.x) AND b.id <> a.id) AS known FROM raw.f a",
    "floats_in_structs": "SELECT CAST(p.x AS STRING) AS sx, count(*) AS n"
    " FROM (SELECT named_struct('x', x) AS p FROM raw.f) q GROUP BY p",
    # decimals of which Spark rounds one
    "wide_in": "SELECT id, CASE WHEN w0 IN (SELECT w18 FROM raw.f) THEN 1 ELSE 0 END AS c"
    " FROM raw.f",
    "wide_count": "SELECT a.id, (SELECT count(*) FROM raw.f b WHERE b.w18 = a.w0) AS c"
    " FROM raw.f a",
    # the smallest number has no counterpart
    "smallest": "SELECT g, sum(i) AS s, count(i) AS c, count(*) AS n FROM raw.f GROUP BY g",
    # a filter keeps a cast from failing
    "guarded": "SELECT DISTINCT CAST(s AS INT) AS i FROM raw.f WHERE s RLIKE '^[0-9]+$'",
    "guarded_join": "SELECT f.id, q.i FROM raw.f f LEFT JOIN (SELECT CAST(s AS INT) AS i"
    " FROM raw.f WHERE s RLIKE '^[0-9]+$') q ON f.g = q.i",
    # columns of USING come first, those of NATURAL as the left side has them
    "natural": "SELECT * FROM raw.f NATURAL JOIN raw.n",
    "natural_case": "SELECT f.id, n2.z FROM raw.f NATURAL JOIN (SELECT g AS G, z FROM raw.n) n2",
    "using_star": "SELECT f.*, n.z FROM raw.f f JOIN raw.n n USING (g)",
    "using_right": "SELECT n.*, f.id AS fid FROM raw.f f RIGHT JOIN raw.n n USING (g)",
    "using_semi": "SELECT * FROM raw.f SEMI JOIN raw.n USING (g)",
    "using_twice": "SELECT n.*, f.s FROM raw.f f JOIN raw.n n USING (g) JOIN raw.p USING (k)",
    # columns that are called like a unit or a function
    "unit": "SELECT id, date_trunc(month, at) AS t FROM raw.n",
    "day": "SELECT id, current_date FROM raw.n",
    "day_inside": "WITH q(id, current_date) AS (SELECT id, d FROM raw.t)"
    " SELECT id, current_date FROM q",
    "user": "SELECT session_user AS who, count(*) AS n FROM raw.n GROUP BY session_user",
    # an order inside parentheses, and below a window
    "ordered_twice": "SELECT g, collect_list(id) AS ids"
    " FROM ((SELECT g, id FROM raw.f ORDER BY id DESC)) q GROUP BY g",
    "ordered_window": "SELECT g, id, collect_list(id) OVER (PARTITION BY g) AS ids"
    " FROM (SELECT g, id FROM raw.f ORDER BY id DESC) q",
    # a condition that nothing meets
    "never": "SELECT t.id FROM raw.t t WHERE NOT EXISTS"
    " (SELECT 1 FROM raw.u u WHERE u.k = t.k AND u.w > NULL)",
    # fields that are called after columns
    "fields": "SELECT id, to_json(struct(id, t.g, tags[0] AS first, id + 1)) AS j FROM raw.t t",
    "fields_of_groups": "SELECT g, to_json(max(struct(d, id))) AS j, max(struct(d, id)).id AS last"
    " FROM raw.t GROUP BY g",
    "fields_of_sums": "SELECT g, to_json(struct(g, count(*))) AS j FROM raw.t GROUP BY g",
    "fields_of_keys": "SELECT to_json(struct(k % 3)) AS j, count(*) AS n FROM raw.t GROUP BY k % 3",
    "fields_of_windows": "SELECT id, g, to_json(struct(id, count(*) OVER (PARTITION BY g))) AS j"
    " FROM raw.t",
    "zipped": "SELECT id, to_json(arrays_zip(tags, tags)) AS j FROM raw.t",
    "in_parentheses": "SELECT id, to_json((id, s)) AS j FROM raw.t",
    # all columns are more of them, or others, in a plan
    "all_columns": "SELECT id, hash(*) AS h FROM (SELECT id, k, s FROM raw.t) q",
    # variables of lambdas
    "other_case": "SELECT id, transform(tags, X -> concat(x, '!')) AS y FROM raw.t",
    "own_name": "SELECT id, transform(tags, c4 -> concat(c4, s)) AS y FROM raw.t",
    "name_of_a_side": "SELECT t.id, u.id AS uid FROM raw.t t"
    " JOIN raw.u u ON size(filter(t.tags, b -> length(b) = u.k)) > 0",
    "field_in_parentheses": "SELECT id, to_json(struct((k))) AS j FROM raw.t",
    # OR binds looser than AND
    "or_and": "SELECT id, k, g FROM raw.t WHERE id = 1 OR k = 3 AND g = 1",
    "or_and_in": "SELECT id FROM raw.t WHERE g = 1 OR k IN (SELECT k FROM raw.u) AND g = 2",
    "or_and_join": "SELECT t.id, u.id AS uid FROM raw.t t"
    " JOIN raw.u u ON t.k = u.k AND t.g = 1 OR u.w = 3.3333",
    # words that are names, and a sign that is a word
    "end_in_join": "SELECT t.id, u.id AS uid FROM raw.t t JOIN raw.u u ON t.b = u.end AND u.id > 1",
    "end_in_left_join": "SELECT t.id, u.id AS uid FROM raw.t t"
    " LEFT JOIN raw.u u ON t.b = u.end AND u.id > 1",
    "end_alone": "SELECT id, end, CASE WHEN end AND id > 1 THEN 1 ELSE 0 END AS c FROM raw.u",
    "not_equal": "SELECT t.id, u.id AS uid FROM raw.t t, raw.u u WHERE !t.b <=> u.b2",
    "not_in_sign": "SELECT id FROM raw.t WHERE ! b IN (SELECT b2 FROM raw.u WHERE b2 IS NOT NULL)",
    # an order below what depends on it
    "ordered_list": "SELECT g, collect_list(id) AS ids"
    " FROM (SELECT g, id FROM raw.t ORDER BY id DESC) q GROUP BY g",
    # strings that differ in their case alone
    "or_of_cases": "SELECT id FROM raw.t WHERE (x = 'N' AND id > 1) OR (x = 'n' AND id < 9)",
    "raw_strings": "SELECT x, concat(x, r'a') AS one, concat(x, r'A') AS two, count(*) AS n"
    " FROM raw.t GROUP BY x, concat(x, r'a')",
    # functions whose names are quoted
    "quoted_max": "SELECT `max`(k) AS most FROM raw.t",
    "quoted_struct": "SELECT id, to_json(`struct`(id, g)) AS j FROM raw.t",
    # what a string, and a column in parentheses, are called
    "string_by_itself": "SELECT id, s IN (SELECT s FROM (SELECT 's', k FROM raw.u) q"
    " WHERE q.k = t.k) AS known FROM raw.t t",
    "column_in_parentheses": "SELECT t.id FROM raw.t t WHERE t.g IN"
    " (SELECT id FROM (SELECT (id), k FROM raw.u) q WHERE q.k = t.k)",
    # units that are no names
    "interval_of_less": "SELECT id, at + INTERVAL -1 DAY FROM raw.n",
    "interval_of_two": "SELECT id, at + INTERVAL 1 DAY 2 HOURS FROM raw.n",
    # rows that can't be hashed, added
    "map_added": "SELECT id, map('g', g) AS m FROM raw.q",
    # values that look like something else
    "variables": "SELECT x, count(*) AS n, max(v) AS most FROM raw.t GROUP BY x",
}
BEGINNING = """
CREATE TABLE raw.t (id INT, g INT, k INT, s STRING, v DECIMAL(10,2), d DATE, x STRING,
  tags ARRAY<STRING>, b BOOLEAN) USING iceberg;
INSERT INTO raw.t VALUES
  (1, 1, 1, '1', 1.50, DATE'2026-01-01', '$' || '{name}', array('a', 'b'), true),
  (2, 1, 2, '2', 2.25, DATE'2026-01-02', 'it\\'s', array('c'), false),
  (3, 2, 10, '10', 10.00, DATE'2026-01-03', 'a\\\\b', array('y'), NULL),
  (4, 2, 9, '9', 3.10, NULL, NULL, NULL, true),
  (5, NULL, NULL, NULL, NULL, DATE'2026-01-05', 'z', array('a', NULL), false),
  (6, 3, 1, '01', 7.77, DATE'2026-01-06', 'p', array('x'), true);
CREATE TABLE raw.u (id INT, k INT, w DECIMAL(18,4), l BIGINT, `end` BOOLEAN, b2 BOOLEAN)
  USING iceberg;
INSERT INTO raw.u VALUES (1, 1, 1.1234, 1, true, true), (2, 2, 2.5, 2, false, false),
  (3, 10, 3.3333, 10, NULL, true), (4, 9, NULL, 9, true, NULL),
  (5, NULL, 0, NULL, false, false), (6, 1, 5, 1, false, true);
CREATE TABLE raw.p (k INT) USING iceberg;
INSERT INTO raw.p VALUES (1), (10), (NULL);
CREATE TABLE raw.q (id INT, g INT) USING iceberg PARTITIONED BY (g);
INSERT INTO raw.q VALUES (1, 0), (2, 1), (3, 2), (4, NULL);
CREATE TABLE raw.f (id INT, x DOUBLE, s STRING, i INT, w0 DECIMAL(38,0), w18 DECIMAL(38,18),
  k INT, g INT) USING iceberg;
INSERT INTO raw.f VALUES (1, 0.0, '1', -2147483648, 1, 1.1, 1, 1), (2, 1.5, 'x', 5, 2, 1.2, 1, 1),
  (3, -0.0, '2', -2147483648, 3, 2.000000000000000001, 10, 2), (4, NULL, 'y', 1, 1, 2.9, 2, 2);
CREATE TABLE raw.n (z INT, month STRING, session_user STRING, at TIMESTAMP, k INT, g INT, id INT,
  current_date DATE) USING iceberg;
INSERT INTO raw.n VALUES (10, 'year', 'ann', TIMESTAMP'2026-03-09 10:00:00', 1, 1, 1, NULL),
  (20, 'day', 'bob', TIMESTAMP'2026-03-09 10:00:00', 10, 2, 3,
  DATE'2020-01-01')
"""
CHANGES = [
    """
INSERT INTO raw.t VALUES (7, 1, 3, '3', 5.00, DATE'2026-01-07', 'n', array('m'), true),
  (8, 2, 10, '10', 10.01, DATE'2026-01-08', '$' || '{name}', array('m', 'o'), false);
DELETE FROM raw.t WHERE s = '01';
INSERT INTO raw.q VALUES (5, NULL), (6, 0), (7, 1), (1, 2);
INSERT INTO raw.f VALUES (5, -0.0, '3', 7, 2, 3.4, 2, 1), (6, -0.0, 'z', NULL, 4, 1.2, 1, 3);
INSERT INTO raw.n VALUES (30, 'hour', 'cy', TIMESTAMP'2026-03-10 10:30:00', 2, 1, 5, NULL);
UPDATE raw.t SET v = v + 1 WHERE s IN ('10', '9', '2', '1')
""",
    """
UPDATE raw.u SET w = w + 1, `end` = NOT `end` WHERE k IN (1, 2, 10, 9);
INSERT INTO raw.u VALUES (9, 3, 9.9999, 3, true, false)
""",
    """
DELETE FROM raw.t WHERE id IN (1, 7);
UPDATE raw.q SET g = NULL WHERE id IN (3, 6);
DELETE FROM raw.p WHERE k IS NULL;
DELETE FROM raw.f WHERE id IN (1, 3);
UPDATE raw.n SET z = z + 1, session_user = 'dan' WHERE z = 10;
INSERT INTO raw.p VALUES (2);
INSERT INTO raw.u VALUES (10, 2, 8.5, 2, false, true), (11, 9, 1, 9, NULL, NULL)
""",
]


def happen(bench: Workbench, statements: str) -> None:
    for statement in statements.split(";\n"):
        bench.sql(on_spark(statement))


def test_traps(bench: Workbench) -> None:
    happen(bench, BEGINNING)
    for name, sql in TRAPS.items():
        bench.model(name, at_home(sql))
    bench.build()
    for change in CHANGES:
        happen(bench, change)
        result = bench.build(refresh="rows")
        ways = {node.name: way_of(node) for node in result.nodes}
        assert {n: way for n, way in ways.items() if "ROW_ERROR" in way or "fail" in way} == {}
        assert differences(bench, TRAPS) == {}, ways
        shown = {name: way for name, way in ways.items() if "shown" in name}
        assert not any("UNSUPPORTED" in way for way in shown.values()), shown


MOVING = {
    "star_in_union": "SELECT id, k FROM raw.t UNION ALL SELECT * FROM raw.b",
    "star_renamed": "WITH q(x, y) AS (SELECT * FROM raw.b) SELECT x, max(y) AS m FROM q GROUP BY x",
    "star_once": "SELECT g, count(*) AS n FROM (SELECT DISTINCT * FROM raw.c) q GROUP BY g",
    "alias_or_column": "SELECT g AS a, a + 1 AS z FROM raw.c",
    "outer_or_inner": "SELECT t.id FROM raw.t t WHERE EXISTS"
    " (SELECT 1 FROM raw.c c WHERE c.g = t.k AND a > 1)",
    "all_the_same": "SELECT g, count(*) AS n FROM raw.c GROUP BY g",
}


def test_columns_that_come_go_or_move_may_change_what_names_mean(bench: Workbench) -> None:
    happen(
        bench,
        """
CREATE TABLE raw.t (id INT, k INT, a INT) USING iceberg;
INSERT INTO raw.t VALUES (1, 10, 2), (2, 20, 0), (3, 3, 3);
CREATE TABLE raw.b (id INT, k INT) USING iceberg;
INSERT INTO raw.b VALUES (1, 10), (5, 50), (3, 3);
CREATE TABLE raw.c (g INT, a INT) USING iceberg;
INSERT INTO raw.c VALUES (10, 7), (20, 7), (10, 8)
""",
    )
    for name, sql in MOVING.items():
        bench.model(name, at_home(sql))
    bench.build()
    happen(
        bench,
        """
ALTER TABLE raw.b ALTER COLUMN k FIRST;
ALTER TABLE raw.c DROP COLUMN a;
INSERT INTO raw.b VALUES (60, 6);
INSERT INTO raw.c VALUES (3)
""",
    )
    result = bench.build(refresh="rows")
    ways = {node.name: way_of(node) for node in result.nodes}
    assert differences(bench, MOVING) == {}, ways
    assert ways.pop("all_the_same") in BY_ROWS
    assert set(ways.values()) == {"full:SCHEMA_CHANGED"}, ways
