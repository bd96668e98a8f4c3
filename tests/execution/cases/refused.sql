-- case: the first rows of an order
SELECT id, v FROM raw.sales ORDER BY v DESC, id LIMIT 3

-- case: rows without an order
SELECT k, name FROM raw.dims LIMIT 100

-- case: subtotals
SELECT g, k, count(*) AS n FROM raw.sales GROUP BY ROLLUP (g, k)

-- case: a pivot
SELECT * FROM (SELECT g, k, v FROM raw.sales) PIVOT (sum(v) FOR k IN (1, 2))

-- case: values drawn anew
SELECT id, g, 0 * rand() AS r FROM raw.sales

-- case: the file of a row
SELECT id, length(input_file_name()) * 0 AS n FROM raw.sales

-- case: a free choice below a join
SELECT s.id, o.x FROM raw.sales s JOIN (SELECT g, any_value(x) AS x FROM raw.other WHERE g <> 4 GROUP BY g) o ON s.k = o.g

-- case: strings that only compare as equal
SELECT collate(s, 'UTF8_LCASE') AS s, count(*) AS n FROM raw.sales GROUP BY collate(s, 'UTF8_LCASE')
