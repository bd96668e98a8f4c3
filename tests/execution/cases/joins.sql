-- case: both sides of a join change
-- by: append, affected_key, affected_key, affected_key, append
SELECT s.id, s.g, d.name FROM raw.sales s JOIN raw.dims d ON s.k = d.k

-- more: a join written with commas
-- by: append, affected_key, affected_key, affected_key, append
SELECT s.id, d.name, o.x FROM raw.sales s, raw.dims d, raw.other o WHERE s.k = d.k AND o.g = s.g AND o.x > 0

-- more: a join with a table that stands still
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT s.id, t.name FROM raw.sales s JOIN raw.still t ON s.k = t.k

-- case: NULL keys that meet
-- by: append, affected_key, affected_key, affected_key, append
SELECT s.id, d.name FROM raw.sales s JOIN raw.dims d ON s.k <=> d.k

-- more: a join with a residual condition
-- by: append, affected_key, affected_key, affected_key, affected_key
SELECT s.id, d.name FROM raw.sales s JOIN raw.dims d ON s.k = d.k AND s.v > d.lo

-- more: a join without equality
-- by: append, affected_key, affected_key, affected_key, affected_key
SELECT s.id, d.name FROM raw.sales s JOIN raw.dims d ON s.v < d.lo

-- more: only columns of the changed dimension
-- by: append, affected_key, affected_key, affected_key, append
SELECT d.name FROM raw.sales s JOIN raw.dims d ON s.k = d.k

-- early: a self-join
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT a.id, b.id AS other_id FROM raw.sales a JOIN raw.sales b ON a.g = b.g AND a.id < b.id

-- case: a left join gains and loses its only match and its second
-- by: append, affected_key, affected_key, affected_key, append
SELECT s.id, s.k, d.name FROM raw.sales s LEFT JOIN raw.dims d ON s.k = d.k

-- more: a left join whose right side stands still
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT s.id, t.name FROM raw.sales s LEFT JOIN raw.still t ON s.k = t.k

-- more: a left join with a residual condition
-- by: append, affected_key, affected_key, affected_key, affected_key
SELECT s.id, d.name FROM raw.sales s LEFT JOIN raw.dims d ON s.k = d.k AND d.lo > 1

-- case: a left join filtered on its nullable side
-- by: append, affected_key, affected_key, affected_key, affected_key
SELECT s.id, d.name FROM raw.sales s LEFT JOIN raw.dims d ON s.k = d.k WHERE d.k IS NULL OR d.lo > 1

-- more: a right join
-- by: affected_key, affected_key, affected_key, affected_key, affected_key
SELECT s.id, d.k, d.name FROM raw.sales s RIGHT JOIN raw.dims d ON s.k = d.k

-- case: a full join with its merged key
-- by: current, affected_key, affected_key, affected_key, affected_key
SELECT coalesce(o.k, d.k) AS k, o.x, d.name FROM raw.other o FULL JOIN raw.dims d ON o.k = d.k

-- more: a full join by using
-- by: current, affected_key, affected_key, affected_key, affected_key
SELECT k, x, name FROM raw.other FULL JOIN raw.dims USING (k)

-- more: a full join on two columns
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT coalesce(s.g, o.g) AS g, coalesce(s.k, o.k) AS k, s.id, o.x FROM raw.sales s FULL JOIN raw.other o ON s.g = o.g AND s.k = o.k

-- more: a full join without its key in the output
-- by: current, bag_merge, bag_merge, bag_merge, bag_merge
SELECT o.x, d.name FROM raw.other o FULL JOIN raw.dims d ON o.k = d.k

-- more: a semi join
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT s.id, s.g FROM raw.sales s LEFT SEMI JOIN raw.dims d ON s.k = d.k AND d.lo > 0

-- case: an anti join
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT s.id, s.k FROM raw.sales s LEFT ANTI JOIN raw.dims d ON s.k = d.k

-- more: a join of joins
-- by: append, affected_key, affected_key, affected_key, affected_key
SELECT s.id, d.name, o.x FROM raw.sales s JOIN raw.dims d ON s.k = d.k LEFT JOIN raw.other o ON o.g = s.g AND o.k = d.k

-- more: a natural join
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id, k, name FROM raw.sales NATURAL JOIN raw.still

-- more: a cross join with a small table
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT s.id, t.name FROM raw.sales s CROSS JOIN raw.still t WHERE s.g = 5

-- more: a hint is not a source
-- by: rows | full:UNSUPPORTED, rows | full:UNSUPPORTED, rows | full:UNSUPPORTED, rows | full:UNSUPPORTED, rows | full:UNSUPPORTED
SELECT /*+ BROADCAST(d) */ s.id, d.name FROM raw.sales s JOIN raw.dims d ON s.k = d.k

-- case: a sub-query that is one of two conditions
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, g FROM raw.sales s WHERE s.v > 8 OR EXISTS (SELECT 1 FROM raw.dims d WHERE d.k = s.k AND d.lo > 1)

-- case: whether there is a match, as a value
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, EXISTS (SELECT 1 FROM raw.dims d WHERE d.k = s.k AND d.lo < s.v) AS known FROM raw.sales s

-- early: not among the values of a sub-query, in one of two conditions
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, k FROM raw.sales WHERE s = 'a' OR k NOT IN (SELECT k FROM raw.dims WHERE lo > 0)

-- more: among the values of a sub-query, inside an aggregate
-- by: group_merge, affected_key, affected_key, affected_key, rows
SELECT g, count(*) AS n, sum(CASE WHEN k IN (SELECT k FROM raw.dims WHERE name < 'p') THEN v END) AS known FROM raw.sales GROUP BY g

-- more: several values not among those of a sub-query
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, g FROM raw.sales WHERE id < 5 OR (g, k) NOT IN (SELECT g, k FROM raw.other WHERE x > 15)
