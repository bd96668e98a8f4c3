-- early: a row that leaves its filter
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id, g, v FROM raw.sales WHERE v > 2

-- case: a column that is not read was written
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id, g, s FROM raw.sales WHERE g >= 8

-- early: texts of other forms
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id, s LIKE ANY ('a%', 'z%') AS found, s NOT LIKE ALL ('a', r'b%') AS other, concat(X'41', CAST(s AS BINARY)) AS bytes, get_json_object(concat('{"a": [', id, ']}'), '$.a[0]') AS first FROM raw.sales

-- more: expressions and a CASE over NULLs
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id, coalesce(g, -1) + 1 AS g1, CASE WHEN v > 3 THEN 'much' WHEN v IS NULL THEN 'none' ELSE s END AS w FROM raw.sales

-- early: equal rows are counted
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT g, s FROM raw.sales

-- more: every column by star
-- by: current, affected_key, current, affected_key, append
SELECT * FROM raw.other

-- more: one column, all alike
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT 1 AS one FROM raw.sales WHERE g IS NOT NULL

-- case: negative zero and NaN
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id, f, f * 1 AS f1 FROM raw.sales

-- more: a table of negative zeros that is told apart from zeros
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT f FROM raw.sales WHERE g = 9

-- early: an array exploded
-- by: append, affected_key, current, current, current
SELECT o.id, t.tag FROM raw.odd o LATERAL VIEW explode(o.tags) t AS tag

-- more: an array exploded, rows without elements kept
-- by: append, affected_key, current, current, current
SELECT o.id, t.p, t.tag FROM raw.odd o LATERAL VIEW OUTER posexplode(o.tags) t AS p, tag

-- early: an array exploded in SELECT
-- by: append, affected_key, current, current, current
SELECT id, upper(k) AS k, posexplode(tags) AS (place, tag) FROM raw.odd WHERE id <> 4

-- early: a map is carried along
-- by: append, full:TYPE_NOT_COMPARABLE, current, current, current
SELECT id, m FROM raw.odd

-- more: a map beside a row that is there twice
-- by: append, full:TYPE_NOT_COMPARABLE, current, current, current
SELECT k, m FROM raw.odd WHERE id > 2

-- more: structs with doubles inside
-- by: append, full:TYPE_NOT_COMPARABLE, current, current, current
SELECT id, st, st.a AS a FROM raw.odd

-- more: arrays of doubles
-- by: append, full:TYPE_NOT_COMPARABLE, current, current, current
SELECT id, array(z, 1.0D) AS zs FROM raw.odd

-- more: decimals of 38 digits and microseconds
-- by: append, affected_key, current, current, current
SELECT id, big, at, big * 1 AS wide FROM raw.odd

-- more: three branches of a union
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT g, 's' AS src FROM raw.sales UNION ALL SELECT g, 'o' FROM raw.other UNION ALL SELECT k, 'd' FROM raw.dims

-- more: the same table on both sides of a union
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id FROM raw.sales WHERE g < 5 UNION ALL SELECT id FROM raw.sales WHERE g > 3

-- more: nothing that is read changes
-- by: current, current, current, current, current
SELECT k, name FROM raw.still

-- more: names in other cases and quotes
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT `ID`, S.`g` AS `the group`, s.V FROM raw.sales S WHERE S.ID <> 3

-- more: an order that a table does not keep
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id, g FROM raw.sales ORDER BY id DESC

-- more: columns named like the words of the refresh
-- by: append, affected_key, skip:NET_CHANGE_EMPTY, affected_key, append
SELECT id AS _change_type, g AS weight, v AS __op, k AS sqb_i FROM raw.sales
