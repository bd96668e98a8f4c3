-- more: rows without an order
-- by: current, full:LIMIT_ORDER | full:UNSUPPORTED, full:LIMIT_ORDER | full:UNSUPPORTED, current, full:LIMIT_ORDER | full:UNSUPPORTED
SELECT k, name FROM raw.dims LIMIT 100

-- more: subtotals
-- by: rows | full:UNSUPPORTED, rows | full:UNSUPPORTED, skip:NET_CHANGE_EMPTY | full:UNSUPPORTED, rows | full:UNSUPPORTED, rows | full:UNSUPPORTED
SELECT g, k, count(*) AS n FROM raw.sales GROUP BY ROLLUP (g, k)

-- early: subtotals as Hive has them
-- by: rows, rows, skip:NET_CHANGE_EMPTY, rows, rows
SELECT g, k, count(*) AS n FROM raw.sales GROUP BY g, k WITH CUBE

-- more: a pivot
-- by: rows | full:UNSUPPORTED, rows | full:UNSUPPORTED, skip:NET_CHANGE_EMPTY | full:UNSUPPORTED, rows | full:UNSUPPORTED, rows | full:UNSUPPORTED
SELECT * FROM (SELECT g, k, v FROM raw.sales) PIVOT (sum(v) FOR k IN (1, 2))

-- more: values drawn anew
-- by: full:VOLATILE, full:VOLATILE, full:VOLATILE, full:VOLATILE, full:VOLATILE
SELECT id, g, 0 * rand() AS r FROM raw.sales

-- more: the file of a row
-- by: full:VOLATILE | full:UNSUPPORTED, full:VOLATILE | full:UNSUPPORTED, full:VOLATILE | full:UNSUPPORTED, full:VOLATILE | full:UNSUPPORTED, full:VOLATILE | full:UNSUPPORTED
SELECT id, length(input_file_name()) * 0 AS n FROM raw.sales

-- case: a free choice below a join
-- by: full:FREE_CHOICE, full:FREE_CHOICE, skip:NET_CHANGE_EMPTY, full:FREE_CHOICE, full:FREE_CHOICE
SELECT s.id, o.x FROM raw.sales s JOIN (SELECT g, any_value(x) AS x FROM raw.other WHERE g <> 4 GROUP BY g) o ON s.k = o.g

-- more: strings that only compare as equal
-- by: affected_key | full:FREE_CHOICE | full:UNSUPPORTED, affected_key | full:FREE_CHOICE | full:UNSUPPORTED, skip:NET_CHANGE_EMPTY | full:UNSUPPORTED, affected_key | full:FREE_CHOICE | full:UNSUPPORTED, affected_key | full:FREE_CHOICE | full:UNSUPPORTED
SELECT collate(s, 'UTF8_LCASE') AS s, count(*) AS n FROM raw.sales GROUP BY collate(s, 'UTF8_LCASE')
