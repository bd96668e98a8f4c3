MODEL (
  description "Orders that count: refunded ones and tests of the till are left out."
);
SELECT
  order_id,
  store_id,
  customer_id,
  ordered_at,
  CAST(ordered_at AS DATE) AS ordered_on
FROM till_orders
WHERE status = 'paid'
