MODEL (
  description "Guests with a loyalty card, and how loyal they are.",
  columns (tier (type STRING, description "See the seed loyalty_tiers."))
);
WITH visits AS (
  SELECT customer_id, count(*) AS orders, sum(revenue) AS revenue, max(ordered_on) AS last_order
  FROM fct_orders
  GROUP BY customer_id
), tiers AS (
  SELECT tier, from_orders, lead(from_orders) OVER (ORDER BY from_orders) AS to_orders
  FROM loyalty_tiers
)
SELECT
  c.customer_id,
  c.customer,
  c.email,
  coalesce(v.orders, 0) AS orders,
  coalesce(v.revenue, 0) AS revenue,
  v.last_order,
  t.tier
FROM stg_customers AS c
LEFT JOIN visits AS v ON v.customer_id = c.customer_id
JOIN tiers AS t
  ON coalesce(v.orders, 0) >= t.from_orders
  AND (t.to_orders IS NULL OR coalesce(v.orders, 0) < t.to_orders)
