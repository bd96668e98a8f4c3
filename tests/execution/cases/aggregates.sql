-- case: a group that ends, one that begins, one that is NULL
SELECT g, count(*) AS n FROM raw.sales GROUP BY g

-- case: a sum that becomes zero and a sum that becomes NULL
SELECT g, sum(v) AS total, count(v) AS counted, count(*) AS n FROM raw.sales GROUP BY g

-- case: a sum without the counts that tell when it ends
SELECT g, sum(v) AS total FROM raw.sales GROUP BY g

-- case: a sum of 38 digits
SELECT k, sum(big) AS total, count(big) AS c, count(*) AS n FROM raw.odd GROUP BY k

-- case: a sum of whole numbers
SELECT k, sum(x) AS total, count(x) AS c, count(*) AS n FROM raw.other GROUP BY k

-- case: a sum of doubles
SELECT g, sum(f) AS total, avg(f) AS mean FROM raw.sales GROUP BY g

-- case: one of two equal extremes goes
SELECT g, min(s) AS first, max(v) AS most, max(d) AS latest FROM raw.sales GROUP BY g

-- case: averages of decimals
SELECT g, avg(v) AS mean, count(*) AS n FROM raw.sales GROUP BY g

-- case: distinct values of a group
SELECT g, count(DISTINCT s) AS kinds, count(DISTINCT k, s) AS pairs FROM raw.sales GROUP BY g

-- case: flags of a group
SELECT g, bool_and(v > 1) AS every, bool_or(v > 4) AS some, count_if(s = 'a') AS a FROM raw.sales GROUP BY g

-- case: an aggregate with a filter
SELECT g, sum(v) FILTER (WHERE k > 2) AS high, count(*) AS n FROM raw.sales GROUP BY g

-- case: HAVING in both directions
SELECT g, count(*) AS n FROM raw.sales GROUP BY g HAVING count(*) > 3

-- case: HAVING on what is not selected
SELECT g FROM raw.sales GROUP BY g HAVING sum(v) > 5

-- case: the group is an expression
SELECT g % 3 AS third, count(*) AS n, sum(v) AS total, count(v) AS c FROM raw.sales GROUP BY g % 3

-- case: groups whose key is not selected
SELECT count(*) AS n, max(v) AS most FROM raw.sales GROUP BY g

-- case: the output computes with its aggregates
SELECT g, sum(v) / count(*) AS share, max(k) - min(k) AS spread FROM raw.sales GROUP BY g

-- case: a group over a join whose sides both change
SELECT d.name, sum(s.v) AS total, count(s.v) AS c, count(*) AS n FROM raw.sales s JOIN raw.dims d ON s.k = d.k GROUP BY d.name

-- case: a group over a left join
SELECT d.k, d.name, count(s.id) AS n, sum(s.v) AS total FROM raw.dims d LEFT JOIN raw.sales s ON s.k = d.k GROUP BY d.k, d.name

-- case: an aggregate of aggregates
SELECT n, count(*) AS groups FROM (SELECT g, count(*) AS n FROM raw.sales GROUP BY g) c GROUP BY n

-- case: one aggregate joined to its rows
SELECT s.id, s.g, t.total FROM raw.sales s JOIN (SELECT g, sum(v) AS total FROM raw.sales GROUP BY g) t ON s.g = t.g

-- case: the latest row of a key by a join with its maximum
SELECT s.g, s.id, s.d FROM raw.sales s JOIN (SELECT g, max(d) AS d FROM raw.sales GROUP BY g) m ON s.g = m.g AND s.d = m.d

-- case: one row for all
SELECT count(*) AS n, sum(v) AS total, max(s) AS last FROM raw.sales

-- case: one row for all, of a table that stands still
SELECT count(*) AS n, max(name) AS last FROM raw.still

-- case: distinct rows
SELECT DISTINCT g, k FROM raw.sales

-- case: distinct negative zeros
SELECT DISTINCT z FROM raw.odd

-- case: groups of doubles
SELECT f, count(*) AS n FROM raw.sales GROUP BY f

-- case: first of a group is a free choice of the group alone
SELECT g, first(g) AS one, sort_array(collect_list(id)) AS ids FROM raw.sales GROUP BY g

-- case: deviations of a group
SELECT g, round(stddev(v), 6) AS dev FROM raw.sales GROUP BY g
