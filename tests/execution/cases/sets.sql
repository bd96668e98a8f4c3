-- case: a union without copies
SELECT g FROM raw.sales UNION SELECT g FROM raw.other

-- case: except
SELECT g FROM raw.sales EXCEPT SELECT g FROM raw.other

-- case: except all
SELECT g FROM raw.sales EXCEPT ALL SELECT g FROM raw.other

-- case: intersect
SELECT g, k FROM raw.sales INTERSECT SELECT g, k FROM raw.other

-- case: intersect all
SELECT g FROM raw.sales INTERSECT ALL SELECT g FROM raw.other

-- case: rows added and taken away by branches
SELECT k FROM raw.sales UNION ALL SELECT k FROM raw.other EXCEPT SELECT k FROM raw.dims

-- case: groups over a union
SELECT g, sum(n) AS n FROM (SELECT g, count(*) AS n FROM raw.sales GROUP BY g UNION ALL SELECT g, count(*) FROM raw.other GROUP BY g) u GROUP BY g

-- case: a CTE used twice
WITH c AS (SELECT g, count(*) AS n FROM raw.sales GROUP BY g) SELECT a.g, a.n, b.n AS m FROM c a JOIN c b ON a.g = b.g + 1

-- case: a CTE in a CTE
WITH a AS (SELECT g, k FROM raw.sales WHERE v > 1), b AS (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT a.g, b.n FROM a JOIN b ON a.k = b.k

-- case: EXISTS
SELECT s.id, s.g FROM raw.sales s WHERE EXISTS (SELECT 1 FROM raw.other o WHERE o.g = s.g AND o.x > s.v)

-- case: NOT EXISTS
SELECT s.id, s.g FROM raw.sales s WHERE NOT EXISTS (SELECT 1 FROM raw.other o WHERE o.g = s.g)

-- case: IN
SELECT s.id, s.k FROM raw.sales s WHERE s.k IN (SELECT d.k FROM raw.dims d WHERE d.lo > 0)

-- case: NOT IN with NULLs
SELECT s.id, s.k FROM raw.sales s WHERE s.k NOT IN (SELECT d.k FROM raw.dims d WHERE d.lo > 0)

-- case: a scalar that moves
SELECT id, v FROM raw.sales WHERE v > (SELECT min(lo) FROM raw.dims)

-- case: a scalar that does not move
SELECT id, v FROM raw.sales WHERE k >= (SELECT min(k) FROM raw.still)

-- case: a correlated scalar
SELECT s.id, (SELECT count(*) FROM raw.other o WHERE o.g = s.g) AS n FROM raw.sales s

-- case: IN under OR
SELECT id FROM raw.sales WHERE g = 2 OR k IN (SELECT k FROM raw.dims)
