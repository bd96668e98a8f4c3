MODEL (
  description "How the orders of a store are spread over the day.",
  tags [daily]
);
SELECT
  store,
  part_of_day,
  count(*) AS orders,
  round(100 * count(*) / sum(count(*)) OVER (PARTITION BY store), 1) AS percent
FROM fct_orders
GROUP BY store, part_of_day
