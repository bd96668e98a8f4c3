MODEL (
  materialized view,
  description "Orders that count: paid ones."
);
SELECT order_id, customer, ordered_at, CAST(amount AS DECIMAL(10, 2)) AS amount
FROM raw_orders
WHERE status = 'paid'
