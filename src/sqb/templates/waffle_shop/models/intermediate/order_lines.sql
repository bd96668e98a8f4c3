MODEL (
  description "One row per line of an order, with what it brought in."
);
SELECT
  o.order_id,
  i.line,
  o.ordered_on,
  m.item,
  m.category,
  i.quantity,
  i.quantity * m.price_cents AS revenue_cents,
  i.quantity * m.margin_cents AS margin_cents
FROM stg_orders AS o
JOIN stg_order_items AS i ON i.order_id = o.order_id
JOIN stg_menu AS m ON m.item_id = i.item_id
