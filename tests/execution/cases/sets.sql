-- more: a union without copies
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g FROM raw.sales UNION SELECT g FROM raw.other

-- more: except
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g FROM raw.sales EXCEPT SELECT g FROM raw.other

-- case: except all
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g FROM raw.sales EXCEPT ALL SELECT g FROM raw.other

-- more: intersect
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, k FROM raw.sales INTERSECT SELECT g, k FROM raw.other

-- more: intersect all
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g FROM raw.sales INTERSECT ALL SELECT g FROM raw.other

-- case: rows added and taken away by branches
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT k FROM raw.sales UNION ALL SELECT k FROM raw.other EXCEPT SELECT k FROM raw.dims

-- more: groups over a union
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, sum(n) AS n FROM (SELECT g, count(*) AS n FROM raw.sales GROUP BY g UNION ALL SELECT g, count(*) FROM raw.other GROUP BY g) u GROUP BY g

-- case: a CTE used twice
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
WITH c AS (SELECT g, count(*) AS n FROM raw.sales GROUP BY g) SELECT a.g, a.n, b.n AS m FROM c a JOIN c b ON a.g = b.g + 1

-- more: a CTE in a CTE
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
WITH a AS (SELECT g, k FROM raw.sales WHERE v > 1), b AS (SELECT k, count(*) AS n FROM a GROUP BY k) SELECT a.g, b.n FROM a JOIN b ON a.k = b.k

-- more: EXISTS
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT s.id, s.g FROM raw.sales s WHERE EXISTS (SELECT 1 FROM raw.other o WHERE o.g = s.g AND o.x > s.v)

-- early: NOT EXISTS
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT s.id, s.g FROM raw.sales s WHERE NOT EXISTS (SELECT 1 FROM raw.other o WHERE o.g = s.g)

-- more: IN
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT s.id, s.k FROM raw.sales s WHERE s.k IN (SELECT d.k FROM raw.dims d WHERE d.lo > 0)

-- case: NOT IN with NULLs
-- by: rows | full:NOT_IN_NULL, rows | full:NOT_IN_NULL, skip:NET_CHANGE_EMPTY | full:NOT_IN_NULL, rows | full:NOT_IN_NULL, rows | full:NOT_IN_NULL
SELECT s.id, s.k FROM raw.sales s WHERE s.k NOT IN (SELECT d.k FROM raw.dims d WHERE d.lo > 0)

-- case: a scalar that moves
-- by: rows | full:SCALAR_SUBQUERY_CHANGED | full:UNSUPPORTED, rows | full:SCALAR_SUBQUERY_CHANGED | full:UNSUPPORTED, skip:NET_CHANGE_EMPTY | full:UNSUPPORTED, rows | full:SCALAR_SUBQUERY_CHANGED | full:UNSUPPORTED, rows | full:SCALAR_SUBQUERY_CHANGED | full:UNSUPPORTED
SELECT id, v FROM raw.sales WHERE v > (SELECT min(lo) FROM raw.dims)

-- more: a scalar that does not move
-- by: rows | full:UNSUPPORTED, rows | full:UNSUPPORTED, skip:NET_CHANGE_EMPTY | full:UNSUPPORTED, rows | full:UNSUPPORTED, rows | full:UNSUPPORTED
SELECT id, v FROM raw.sales WHERE k >= (SELECT min(k) FROM raw.still)

-- more: a correlated scalar
-- by: rows | full:UNSUPPORTED, rows | full:UNSUPPORTED, skip:NET_CHANGE_EMPTY | full:UNSUPPORTED, rows | full:UNSUPPORTED, rows | full:UNSUPPORTED
SELECT s.id, (SELECT count(*) FROM raw.other o WHERE o.g = s.g) AS n FROM raw.sales s

-- more: IN under OR
-- by: rows | full:UNSUPPORTED, rows | full:UNSUPPORTED, skip:NET_CHANGE_EMPTY | full:UNSUPPORTED, rows | full:UNSUPPORTED, rows | full:UNSUPPORTED
SELECT id FROM raw.sales WHERE g = 2 OR k IN (SELECT k FROM raw.dims)
