"""Queries over the three tables of ``plans`` that row-level refresh understands."""

from __future__ import annotations

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
    (
        "SELECT c, SUM(b) OVER (PARTITION BY a + 1, b % 2 ORDER BY c) AS r,"
        " COUNT(*) OVER (PARTITION BY b % 2) AS n FROM t0"
    ),
    "SELECT b, c FROM t0 QUALIFY RANK() OVER (PARTITION BY abs(a) ORDER BY b, c) = 1",
    "SELECT a, b FROM t0 QUALIFY RANK() OVER (PARTITION BY a ORDER BY b DESC) = 1",
    "SELECT a, b, RANK() OVER (PARTITION BY a ORDER BY b) AS r FROM t0 QUALIFY r < 3",
    "SELECT a, b FROM t0 WHERE (a > 1 AND (b < 3)) ORDER BY a",
    "SELECT a b, b AS `the c` FROM t0 -- a comment, with = and AND\nWHERE /* x */ a = 1",
    "SELECT T0.A, t0.B FROM T0 WHERE t0.C = 1",
    "SELECT a <=> b AS same, x.a = 1 AS one FROM t0 x",
    "SELECT x.a FROM t0 x JOIN t1 y ON x.a <=> y.a",
    "SELECT x.a, y.b, z.c FROM t0 x LEFT JOIN (t1 y JOIN t2 z ON y.b = z.b) ON x.a = y.a",
    "SELECT * FROM (t0 x JOIN t1 y ON x.a = y.a) LEFT JOIN t2 z ON z.b = y.b AND z.c > x.c",
    "SELECT * FROM (t0 x FULL JOIN t1 y USING (a)) JOIN (t2 z) ON z.b = y.b",
    "SELECT x.a, z.c FROM t0 x RIGHT JOIN ((t1 y LEFT JOIN t2 z ON y.b = z.b)) ON x.b = z.b",
    "SELECT x.a, w.n FROM t0 x JOIN ((SELECT a, COUNT(*) AS n FROM t1 GROUP BY a)) w ON x.a = w.a",
    "SELECT w.b FROM t0 x LEFT JOIN ((SELECT a, b FROM t1) w JOIN t2 z ON w.b = z.b) ON x.a = z.a",
    "SELECT x.a FROM t0 x JOIN ((SELECT a FROM t1) UNION ALL (SELECT b FROM t2)) w ON x.a = w.a",
    "SELECT x.a, COUNT(z.c) FROM t0 x LEFT JOIN (t1 y CROSS JOIN t2 z) ON x.a = y.a GROUP BY x.a",
    "SELECT x.a, y.b FROM t0 x CROSS JOIN t1 y WHERE x.a < y.a",
    "SELECT x.a FROM t0 x LEFT SEMI JOIN t1 y ON x.a = y.a",
    "SELECT x.a FROM t0 x LEFT ANTI JOIN t1 y ON x.a = y.a AND y.b > 1",
    "SELECT CAST(a AS STRING) AS s, CASE a WHEN 1 THEN 'one = 1' ELSE 'x, y' END AS w FROM t0",
    "SELECT x.a, y.b FROM t0 x FULL JOIN t1 y ON x.a = y.a WHERE x.b > 1",
    "SELECT x.a, y.b FROM t0 x FULL JOIN t1 y ON x.a = y.a WHERE y.b IS NULL AND x.c < 3",
    "SELECT x.a, y.b FROM t0 x LEFT JOIN t1 y ON x.a = y.a WHERE y.b > 1 AND x.c < 3",
    # expressions over aggregates and group keys
    "SELECT a, 100 * SUM(CASE WHEN b > 1 THEN c ELSE 0 END) + SUM(c) AS p FROM t0 GROUP BY a",
    "SELECT abs(a) AS k, concat(abs(a), '-', SUM(b)) AS w FROM t0 GROUP BY abs(a)",
    "SELECT 2 * (a + b) AS k, COUNT(*) AS n FROM t0 GROUP BY a + b",
    (
        "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END || '!' AS k, MIN(b) AS m FROM t0"
        " GROUP BY CASE  when A > 1 then 'x' else 'y' end"
    ),
    "SELECT a, COUNT(DISTINCT b, c) AS n FROM t0 GROUP BY a",
    "SELECT a, SUM(SUM(b)) OVER (PARTITION BY a) AS s, SUM(b) AS own FROM t0 GROUP BY a, c",
    "SELECT a, RANK() OVER (PARTITION BY a ORDER BY COUNT(*) DESC, c) AS r FROM t0 GROUP BY a, c",
    "SELECT a, b FROM t0 WHERE a BETWEEN 1 AND 3 AND NOT (b = 2) AND c IN (0, 1, 2)",
    "SELECT * EXCEPT (b) FROM t0",
    "SELECT x.* EXCEPT (a, C), y.b AS yb FROM t0 x JOIN t1 y ON x.a = y.a",
    "SELECT a + 1 AS k, k * 2 AS twice, twice + b AS z FROM t0",
    "SELECT SUM(a) AS s, s + 1 AS s1, b FROM t0 GROUP BY b",
    "SELECT a AS b, b AS c FROM t0 WHERE b > 1",
    # constants
    "SELECT a, v.w FROM t0 JOIN (VALUES (1, 'one'), (2, 'two')) AS v(k, w) ON t0.a = v.k",
    "SELECT a FROM t0 UNION ALL SELECT 7 AS a",
    "WITH p AS (SELECT 2 AS low) SELECT t0.a FROM t0 JOIN p ON t0.a > p.low",
    # grouping sets
    "SELECT a, b, SUM(c) AS s FROM t0 GROUP BY GROUPING SETS ((a, b), (a))",
    "SELECT a, c, COUNT(*) AS n FROM t0 GROUP BY a, CUBE (c) HAVING COUNT(*) > 1",
    (
        "SELECT a, grouping(b) AS g, grouping_id(a, b) AS i, MAX(c) AS m FROM t0"
        " GROUP BY GROUPING SETS ((a, b), (b), (a))"
    ),
    # scalar sub-queries
    "SELECT a, b FROM t0 WHERE b > (SELECT MIN(b) FROM t1)",
    "SELECT a, (SELECT COUNT(*) FROM t1) AS n FROM t0",
    "SELECT a, (SELECT COUNT(*) FROM t1 WHERE t1.a = t0.a) AS n FROM t0",
    "SELECT a, b FROM t0 WHERE b < (SELECT 2 * MAX(t1.b) FROM t1 WHERE t1.a = t0.a AND t1.b < 4)",
    (
        "SELECT a, (SELECT SUM(z.c) - COUNT(z.b) FROM t2 z WHERE z.b <=> x.b AND x.a = z.a) AS n"
        " FROM t0 x"
    ),
    "SELECT a, SUM(b) AS s FROM t0 GROUP BY a HAVING SUM(b) > (SELECT AVG(b) FROM t1)",
    "SELECT SUM(b * (SELECT MAX(a) FROM t1)) AS s, c FROM t0 GROUP BY c",
    "SELECT a FROM t0 WHERE b = (SELECT MAX(b) FROM t0 WHERE c > (SELECT MIN(c) FROM t2))",
    # IN, NOT IN and EXISTS
    "SELECT a, b FROM t0 WHERE a NOT IN (SELECT b FROM t1)",
    "SELECT a, b FROM t0 WHERE NOT a IN (SELECT b FROM t1 WHERE b IS NOT NULL)",
    "SELECT a, b FROM t0 WHERE a NOT IN (SELECT t1.a FROM t1 WHERE t1.b = t0.b)",
    "SELECT a, b FROM t0 WHERE a NOT IN (SELECT t1.a FROM t1 WHERE t1.b > t0.b)",
    "SELECT a, b FROM t0 WHERE (a, b) IN (SELECT a, b FROM t1)",
    "SELECT a, b FROM t0 WHERE (a, b) NOT IN (SELECT a, b FROM t1)",
    "SELECT a FROM t0 WHERE a IN (SELECT a FROM t1 GROUP BY a HAVING COUNT(*) > 1)",
    "SELECT a FROM t0 WHERE a IN (SELECT a FROM t1 UNION SELECT c FROM t2)",
    "SELECT a FROM t0 WHERE 2 IN (SELECT a FROM t1)",
    (
        "SELECT a FROM t0 WHERE EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a AND NOT EXISTS"
        " (SELECT 1 FROM t2 WHERE t2.b = t1.b))"
    ),
    "SELECT x.a FROM t0 x JOIN t1 y ON x.a = y.a AND y.b IN (SELECT c FROM t2)",
    "SELECT a FROM t0 WHERE NOT (EXISTS (SELECT * FROM t1 WHERE t1.a = t0.a))",
    # EXISTS and IN inside expressions
    "SELECT a FROM t0 WHERE a IN (SELECT a FROM t1) OR b = 1",
    "SELECT a, b, c FROM t0 WHERE a = 1 OR b = 2 AND c = 3",
    "SELECT a, b, c FROM t0 WHERE a = 1 AND b = 2 OR c = 3 AND NOT a = 2 OR b IS NULL",
    "SELECT x.a, y.b FROM t0 x JOIN t1 y ON x.a = y.a AND x.c = 1 OR y.b = 3",
    "SELECT x.a, y.b FROM t0 x LEFT JOIN t1 y ON x.a = y.a OR x.b = y.b AND x.c > 1",
    "SELECT a, COUNT(*) AS n FROM t0 GROUP BY a HAVING COUNT(*) > 2 OR a = 1 AND MAX(b) > 1",
    "SELECT a, SUM(b) AS b, -MAX(c) AS c FROM t0 GROUP BY a HAVING SUM(b) > 2 AND MAX(c + b) < 9",
    "SELECT a FROM t0 WHERE b = 1 OR a IN (SELECT a FROM t1) AND c = 3",
    "SELECT a FROM t0 WHERE a BETWEEN 1 AND 2 OR b BETWEEN 0 AND 1 AND c > 1",
    "SELECT a FROM t0 WHERE EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a OR t1.b = 1 AND t1.a > 2)",
    "SELECT a, b FROM t0 WHERE b = 1 OR (c > 1 AND a + 1 NOT IN (SELECT t1.b FROM t1))",
    "SELECT a, b FROM t0 WHERE a NOT IN (SELECT t1.a FROM t1 WHERE t1.b = t0.b) OR c = 2",
    "SELECT a FROM t0 WHERE (a, b) NOT IN (SELECT a, b FROM t1) OR c = 2",
    "SELECT a FROM t0 WHERE CASE WHEN EXISTS (SELECT 1 FROM t1) THEN TRUE END",
    "SELECT a FROM t0 WHERE NOT (EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a) AND b > 1)",
    "SELECT a, EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a AND t1.b < t0.c) AS m FROM t0",
    "SELECT a, CASE WHEN b > 1 OR a IN (SELECT b FROM t1) THEN 'x' ELSE 'y' END AS m FROM t0",
    (
        "SELECT a, SUM(CASE WHEN EXISTS (SELECT 1 FROM t1 WHERE t1.b = t0.b) THEN c ELSE 0 END)"
        " AS s FROM t0 GROUP BY a"
    ),
    (
        "SELECT a FROM t0 WHERE EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a AND (t1.b = 1"
        " OR t1.b IN (SELECT c FROM t2)))"
    ),
    "SELECT x.a, y.b FROM t0 x JOIN t1 y ON x.a = y.a AND (x.c > 1 OR y.b IN (SELECT c FROM t2))",
    "SELECT /*+ BROADCAST(t1) */ t0.a FROM t0 JOIN t1 ON t0.a = t1.a",
]
