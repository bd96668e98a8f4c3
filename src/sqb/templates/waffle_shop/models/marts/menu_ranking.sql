MODEL (
  description "Which items earn most, within their category.",
  tags [daily]
);
WITH sold AS (
  SELECT category, item, sum(quantity) AS sold, sum(margin_cents) AS margin_cents
  FROM order_lines
  GROUP BY category, item
)
SELECT
  category,
  rank() OVER (PARTITION BY category ORDER BY margin_cents DESC, item) AS place,
  item,
  sold,
  @euros("margin_cents") AS margin
FROM sold
