-- case: ranks of rows that stayed
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, g, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r FROM raw.sales

-- early: windows by name, in a query and in one inside it
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, g, n, sum(v) OVER w AS so_far, rank() OVER other AS place
FROM (SELECT id, g, v, count(*) OVER w AS n FROM raw.sales WINDOW w AS (PARTITION BY g)) q
WINDOW w AS (PARTITION BY g ORDER BY id), other AS (PARTITION BY g ORDER BY v DESC, id)

-- more: running totals
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, g, sum(v) OVER (PARTITION BY g ORDER BY id) AS so_far FROM raw.sales

-- more: neighbours of rows in a partition that changed
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, g, lag(id) OVER (PARTITION BY g ORDER BY id) AS before, lead(v) OVER (PARTITION BY g ORDER BY id) AS after FROM raw.sales

-- more: two windows with one common column
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, g, k, count(*) OVER (PARTITION BY g) AS n, count(*) OVER (PARTITION BY g, k) AS m FROM raw.sales

-- case: two windows without a common column
-- by: full:KEY_NOT_DERIVABLE, full:KEY_NOT_DERIVABLE, skip:NET_CHANGE_EMPTY, full:KEY_NOT_DERIVABLE, full:KEY_NOT_DERIVABLE
SELECT id, g, k, count(*) OVER (PARTITION BY g) AS n, count(*) OVER (PARTITION BY k) AS m FROM raw.sales

-- case: the latest row of each key
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, id, v FROM (SELECT g, id, v, row_number() OVER (PARTITION BY g ORDER BY d DESC, id) AS rn FROM raw.sales) x WHERE rn = 1

-- more: the first rows of each key in a derived table
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, id FROM (SELECT g, id, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM raw.sales) x WHERE r <= 2

-- more: a share of the partition
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT id, g, v / sum(v) OVER (PARTITION BY g) AS share FROM raw.sales WHERE g IN (4, 5, 6, 10, 11)

-- more: a partition that is not selected
-- by: bag_merge, bag_merge, skip:NET_CHANGE_EMPTY, bag_merge, bag_merge
SELECT id, count(*) OVER (PARTITION BY s) AS same FROM raw.sales

-- more: a window over a join
-- by: affected_key, affected_key, affected_key, affected_key, affected_key
SELECT s.id, d.name, count(*) OVER (PARTITION BY d.name) AS n FROM raw.sales s JOIN raw.dims d ON s.k = d.k

-- more: a window without a partition
-- by: rows | full:KEY_NOT_DERIVABLE | full:WINDOW_WITHOUT_PARTITION, rows | full:KEY_NOT_DERIVABLE | full:WINDOW_WITHOUT_PARTITION, skip:NET_CHANGE_EMPTY, rows | full:KEY_NOT_DERIVABLE | full:WINDOW_WITHOUT_PARTITION, rows | full:KEY_NOT_DERIVABLE | full:WINDOW_WITHOUT_PARTITION
SELECT id, rank() OVER (ORDER BY id) AS r FROM raw.sales

-- more: groups of a window's result
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT r, count(*) AS n FROM (SELECT rank() OVER (PARTITION BY g ORDER BY id) AS r FROM raw.sales) x GROUP BY r
