-- case: both sides of a join change
SELECT s.id, s.g, d.name FROM raw.sales s JOIN raw.dims d ON s.k = d.k

-- case: a join written with commas
SELECT s.id, d.name, o.x FROM raw.sales s, raw.dims d, raw.other o WHERE s.k = d.k AND o.g = s.g AND o.x > 0

-- case: a join with a table that stands still
SELECT s.id, t.name FROM raw.sales s JOIN raw.still t ON s.k = t.k

-- case: NULL keys that meet
SELECT s.id, d.name FROM raw.sales s JOIN raw.dims d ON s.k <=> d.k

-- case: a join with a residual condition
SELECT s.id, d.name FROM raw.sales s JOIN raw.dims d ON s.k = d.k AND s.v > d.lo

-- case: a join without equality
SELECT s.id, d.name FROM raw.sales s JOIN raw.dims d ON s.v < d.lo

-- case: only columns of the changed dimension
SELECT d.name FROM raw.sales s JOIN raw.dims d ON s.k = d.k

-- case: a self-join
SELECT a.id, b.id AS other_id FROM raw.sales a JOIN raw.sales b ON a.g = b.g AND a.id < b.id

-- case: a left join gains and loses its only match and its second
SELECT s.id, s.k, d.name FROM raw.sales s LEFT JOIN raw.dims d ON s.k = d.k

-- case: a left join whose right side stands still
SELECT s.id, t.name FROM raw.sales s LEFT JOIN raw.still t ON s.k = t.k

-- case: a left join with a residual condition
SELECT s.id, d.name FROM raw.sales s LEFT JOIN raw.dims d ON s.k = d.k AND d.lo > 1

-- case: a left join filtered on its nullable side
SELECT s.id, d.name FROM raw.sales s LEFT JOIN raw.dims d ON s.k = d.k WHERE d.k IS NULL OR d.lo > 1

-- case: a right join
SELECT s.id, d.k, d.name FROM raw.sales s RIGHT JOIN raw.dims d ON s.k = d.k

-- case: a full join with its merged key
SELECT coalesce(o.k, d.k) AS k, o.x, d.name FROM raw.other o FULL JOIN raw.dims d ON o.k = d.k

-- case: a full join by using
SELECT k, x, name FROM raw.other FULL JOIN raw.dims USING (k)

-- case: a full join on two columns
SELECT coalesce(s.g, o.g) AS g, coalesce(s.k, o.k) AS k, s.id, o.x FROM raw.sales s FULL JOIN raw.other o ON s.g = o.g AND s.k = o.k

-- case: a full join without its key in the output
SELECT o.x, d.name FROM raw.other o FULL JOIN raw.dims d ON o.k = d.k

-- case: a semi join
SELECT s.id, s.g FROM raw.sales s LEFT SEMI JOIN raw.dims d ON s.k = d.k AND d.lo > 0

-- case: an anti join
SELECT s.id, s.k FROM raw.sales s LEFT ANTI JOIN raw.dims d ON s.k = d.k

-- case: a join of joins
SELECT s.id, d.name, o.x FROM raw.sales s JOIN raw.dims d ON s.k = d.k LEFT JOIN raw.other o ON o.g = s.g AND o.k = d.k

-- case: a natural join
SELECT id, k, name FROM raw.sales NATURAL JOIN raw.still

-- case: a cross join with a small table
SELECT s.id, t.name FROM raw.sales s CROSS JOIN raw.still t WHERE s.g = 5

-- case: a hint is not a source
SELECT /*+ BROADCAST(d) */ s.id, d.name FROM raw.sales s JOIN raw.dims d ON s.k = d.k
