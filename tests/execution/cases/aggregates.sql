-- more: a group that ends, one that begins, one that is NULL
-- by: group_merge, group_merge, skip:NET_CHANGE_EMPTY, group_merge, group_merge
SELECT g, count(*) AS n FROM raw.sales GROUP BY g

-- case: a sum that becomes zero and a sum that becomes NULL
-- by: group_merge, group_merge, skip:NET_CHANGE_EMPTY, group_merge, group_merge
SELECT g, sum(v) AS total, count(v) AS counted, count(*) AS n FROM raw.sales GROUP BY g

-- early: a sum without the counts that tell when it ends
-- by: group_merge, affected_key, skip:NET_CHANGE_EMPTY, affected_key, group_merge
SELECT g, sum(v) AS total FROM raw.sales GROUP BY g

-- case: a sum of 38 digits
-- by: group_merge, group_merge, current, current, current
SELECT k, sum(big) AS total, count(big) AS c, count(*) AS n FROM raw.odd GROUP BY k

-- more: a sum of whole numbers
-- by: current, group_merge, current, group_merge, group_merge
SELECT k, sum(x) AS total, count(x) AS c, count(*) AS n FROM raw.other GROUP BY k

-- more: a sum of doubles
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, sum(f) AS total, avg(f) AS mean FROM raw.sales GROUP BY g

-- early: one of two equal extremes goes
-- by: group_merge, affected_key, skip:NET_CHANGE_EMPTY, affected_key, group_merge
SELECT g, min(s) AS first, max(v) AS most, max(d) AS latest FROM raw.sales GROUP BY g

-- more: averages of decimals
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, avg(v) AS mean, count(*) AS n FROM raw.sales GROUP BY g

-- more: distinct values of a group
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, count(DISTINCT s) AS kinds, count(DISTINCT k, s) AS pairs FROM raw.sales GROUP BY g

-- more: flags of a group
-- by: group_merge, affected_key, skip:NET_CHANGE_EMPTY, affected_key, group_merge
SELECT g, bool_and(v > 1) AS every, bool_or(v > 4) AS some, count_if(s = 'a') AS a FROM raw.sales GROUP BY g

-- early: rows of a group that meet a condition are counted
-- by: group_merge, group_merge, skip:NET_CHANGE_EMPTY, group_merge, group_merge
SELECT g, count_if(v > 3) AS large, count_if(s IN ('a', NULL)) AS a, count(*) AS n FROM raw.sales GROUP BY g

-- more: an aggregate with a filter
-- by: group_merge, affected_key, skip:NET_CHANGE_EMPTY, affected_key, group_merge
SELECT g, sum(v) FILTER (WHERE k > 2) AS high, count(*) AS n FROM raw.sales GROUP BY g

-- case: HAVING in both directions
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, count(*) AS n FROM raw.sales GROUP BY g HAVING count(*) > 3

-- more: HAVING on what is not selected
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g FROM raw.sales GROUP BY g HAVING sum(v) > 5

-- more: HAVING on an aggregate of a column that a result is named after
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, sum(v) AS v FROM raw.sales GROUP BY g HAVING sum(v) > 5 AND max(v) < 100

-- more: the group is an expression
-- by: group_merge, group_merge, skip:NET_CHANGE_EMPTY, group_merge, group_merge
SELECT g % 3 AS third, count(*) AS n, sum(v) AS total, count(v) AS c FROM raw.sales GROUP BY g % 3

-- more: groups whose key is not selected
-- by: bag_merge, bag_merge, skip:NET_CHANGE_EMPTY, bag_merge, bag_merge
SELECT count(*) AS n, max(v) AS most FROM raw.sales GROUP BY g

-- more: the output computes with its aggregates
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, sum(v) / count(*) AS share, max(k) - min(k) AS spread FROM raw.sales GROUP BY g

-- case: a group over a join whose sides both change
-- by: group_merge, group_merge, group_merge, group_merge, group_merge
SELECT d.name, sum(s.v) AS total, count(s.v) AS c, count(*) AS n FROM raw.sales s JOIN raw.dims d ON s.k = d.k GROUP BY d.name

-- more: a group over a left join
-- by: affected_key, affected_key, affected_key, affected_key, affected_key
SELECT d.k, d.name, count(s.id) AS n, sum(s.v) AS total FROM raw.dims d LEFT JOIN raw.sales s ON s.k = d.k GROUP BY d.k, d.name

-- case: an aggregate of aggregates
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT n, count(*) AS groups FROM (SELECT g, count(*) AS n FROM raw.sales GROUP BY g) c GROUP BY n

-- more: one aggregate joined to its rows
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT s.id, s.g, t.total FROM raw.sales s JOIN (SELECT g, sum(v) AS total FROM raw.sales GROUP BY g) t ON s.g = t.g

-- case: the latest row of a key by a join with its maximum
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT s.g, s.id, s.d FROM raw.sales s JOIN (SELECT g, max(d) AS d FROM raw.sales GROUP BY g) m ON s.g = m.g AND s.d = m.d

-- more: one row for all
-- by: rows | full:KEY_NOT_DERIVABLE, rows | full:KEY_NOT_DERIVABLE, skip:NET_CHANGE_EMPTY, rows | full:KEY_NOT_DERIVABLE, rows | full:KEY_NOT_DERIVABLE
SELECT count(*) AS n, sum(v) AS total, max(s) AS last FROM raw.sales

-- more: one row for all, of a table that stands still
-- by: current, current, current, current, current
SELECT count(*) AS n, max(name) AS last FROM raw.still

-- more: distinct rows
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT DISTINCT g, k FROM raw.sales

-- more: distinct negative zeros
-- by: affected_key, affected_key, current, current, current
SELECT DISTINCT z FROM raw.odd

-- more: groups of doubles
-- by: group_merge, group_merge, skip:NET_CHANGE_EMPTY, group_merge, group_merge
SELECT f, count(*) AS n FROM raw.sales GROUP BY f

-- more: first of a group is a free choice of the group alone
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, first(g) AS one, sort_array(collect_list(id)) AS ids FROM raw.sales GROUP BY g

-- more: deviations of a group
-- by: affected_key, affected_key, skip:NET_CHANGE_EMPTY, affected_key, affected_key
SELECT g, round(stddev(v), 6) AS dev FROM raw.sales GROUP BY g
