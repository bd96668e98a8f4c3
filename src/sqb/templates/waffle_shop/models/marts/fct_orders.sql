MODEL (
  description "One row per order that counts.",
  partitioned_by [months(ordered_on)],
  columns (
    order_id (type BIGINT, description "As printed on the receipt."),
    revenue (type DECIMAL(12, 2), description "What the guest paid, in euros."),
    margin (type DECIMAL(12, 2), description "Revenue without the cost of ingredients.")
  ),
  tags [daily]
);
SELECT
  o.order_id,
  o.ordered_on,
  @part_of_day("o.ordered_at") AS part_of_day,
  s.store,
  s.city,
  o.customer_id,
  t.lines,
  t.has_topping,
  t.revenue_cents >= @@big_order_cents AS is_big,
  @euros("t.revenue_cents") AS revenue,
  @euros("t.margin_cents") AS margin
FROM stg_orders AS o
JOIN order_totals AS t ON t.order_id = o.order_id
JOIN stores AS s ON s.store_id = o.store_id
