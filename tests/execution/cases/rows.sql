-- case: a row that leaves its filter
SELECT id, g, v FROM raw.sales WHERE v > 2

-- case: a column that is not read was written
SELECT id, g, s FROM raw.sales WHERE g >= 8

-- case: expressions and a CASE over NULLs
SELECT id, coalesce(g, -1) + 1 AS g1, CASE WHEN v > 3 THEN 'much' WHEN v IS NULL THEN 'none' ELSE s END AS w FROM raw.sales

-- case: equal rows are counted
SELECT g, s FROM raw.sales

-- case: every column by star
SELECT * FROM raw.other

-- case: one column, all alike
SELECT 1 AS one FROM raw.sales WHERE g IS NOT NULL

-- case: negative zero and NaN
SELECT id, f, f * 1 AS f1 FROM raw.sales

-- case: a table of negative zeros that is told apart from zeros
SELECT f FROM raw.sales WHERE g = 9

-- case: an array exploded
SELECT o.id, t.tag FROM raw.odd o LATERAL VIEW explode(o.tags) t AS tag

-- case: an array exploded, rows without elements kept
SELECT o.id, t.p, t.tag FROM raw.odd o LATERAL VIEW OUTER posexplode(o.tags) t AS p, tag

-- case: a map is carried along
SELECT id, m FROM raw.odd

-- case: a map beside a row that is there twice
SELECT k, m FROM raw.odd WHERE id > 2

-- case: structs with doubles inside
SELECT id, st, st.a AS a FROM raw.odd

-- case: arrays of doubles
SELECT id, array(z, 1.0D) AS zs FROM raw.odd

-- case: decimals of 38 digits and microseconds
SELECT id, big, at, big * 1 AS wide FROM raw.odd

-- case: three branches of a union
SELECT g, 's' AS src FROM raw.sales UNION ALL SELECT g, 'o' FROM raw.other UNION ALL SELECT k, 'd' FROM raw.dims

-- case: the same table on both sides of a union
SELECT id FROM raw.sales WHERE g < 5 UNION ALL SELECT id FROM raw.sales WHERE g > 3

-- case: nothing that is read changes
SELECT k, name FROM raw.still

-- case: names in other cases and quotes
SELECT `ID`, S.`g` AS `the group`, s.V FROM raw.sales S WHERE S.ID <> 3

-- case: an order that a table does not keep
SELECT id, g FROM raw.sales ORDER BY id DESC

-- case: columns named like the words of the refresh
SELECT id AS _change_type, g AS weight, v AS __op, k AS sqb_i FROM raw.sales
