-- case: ranks of rows that stayed
SELECT id, g, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r FROM raw.sales

-- case: running totals
SELECT id, g, sum(v) OVER (PARTITION BY g ORDER BY id) AS so_far FROM raw.sales

-- case: neighbours of rows in a partition that changed
SELECT id, g, lag(id) OVER (PARTITION BY g ORDER BY id) AS before, lead(v) OVER (PARTITION BY g ORDER BY id) AS after FROM raw.sales

-- case: two windows with one common column
SELECT id, g, k, count(*) OVER (PARTITION BY g) AS n, count(*) OVER (PARTITION BY g, k) AS m FROM raw.sales

-- case: two windows without a common column
SELECT id, g, k, count(*) OVER (PARTITION BY g) AS n, count(*) OVER (PARTITION BY k) AS m FROM raw.sales

-- case: the latest row of each key
SELECT g, id, v FROM (SELECT g, id, v, row_number() OVER (PARTITION BY g ORDER BY d DESC, id) AS rn FROM raw.sales) x WHERE rn = 1

-- case: the first rows of each key in a derived table
SELECT g, id FROM (SELECT g, id, rank() OVER (PARTITION BY g ORDER BY id) AS r FROM raw.sales) x WHERE r <= 2

-- case: a share of the partition
SELECT id, g, v / sum(v) OVER (PARTITION BY g) AS share FROM raw.sales WHERE g IN (4, 5, 6, 10, 11)

-- case: a partition that is not selected
SELECT id, count(*) OVER (PARTITION BY s) AS same FROM raw.sales

-- case: a window over a join
SELECT s.id, d.name, count(*) OVER (PARTITION BY d.name) AS n FROM raw.sales s JOIN raw.dims d ON s.k = d.k

-- case: a window without a partition
SELECT id, rank() OVER (ORDER BY id) AS r FROM raw.sales

-- case: groups of a window's result
SELECT r, count(*) AS n FROM (SELECT rank() OVER (PARTITION BY g ORDER BY id) AS r FROM raw.sales) x GROUP BY r
