-- case: the first rows of an order, of which one goes while a better one comes
-- by: top_merge, top_merge | full:LIMIT_ORDER, skip:NET_CHANGE_EMPTY, full:LIMIT_ORDER, top_merge
SELECT id, v FROM raw.sales ORDER BY v DESC, id LIMIT 3

-- early: the first rows with columns that they are not ordered by
-- by: top_merge, full:LIMIT_ORDER, skip:NET_CHANGE_EMPTY, full:LIMIT_ORDER, top_merge
SELECT id, g, v, s FROM raw.sales ORDER BY v DESC, id LIMIT 3

-- case: equal rows on both sides of the limit
-- by: top_merge, full:LIMIT_ORDER, skip:NET_CHANGE_EMPTY, full:LIMIT_ORDER, top_merge
SELECT k, v FROM raw.sales WHERE g = 11 ORDER BY k DESC LIMIT 2

-- more: a table that is not full holds all rows
-- by: top_merge, top_merge, skip:NET_CHANGE_EMPTY, top_merge, top_merge
SELECT id, v, f FROM raw.sales ORDER BY f LIMIT 100

-- more: zeros and NaN in an order
-- by: top_merge, top_merge, skip:NET_CHANGE_EMPTY, full:LIMIT_ORDER, top_merge
SELECT id, f FROM raw.sales ORDER BY f DESC NULLS FIRST, id LIMIT 4

-- case: the largest groups
-- by: top_merge, top_merge | full:LIMIT_ORDER, skip:NET_CHANGE_EMPTY, full:LIMIT_ORDER, top_merge
SELECT g, count(*) AS n, max(s) AS s FROM raw.sales GROUP BY g ORDER BY n DESC, g NULLS LAST LIMIT 3

-- more: the first rows of a join, by the name of a result
-- by: top_merge, top_merge, top_merge, full:LIMIT_ORDER, top_merge
SELECT s.id, d.name AS named FROM raw.sales s JOIN raw.dims d ON s.k = d.k ORDER BY named, id LIMIT 5
