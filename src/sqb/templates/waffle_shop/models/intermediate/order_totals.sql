SELECT
  order_id,
  count(*) AS lines,
  sum(revenue_cents) AS revenue_cents,
  sum(margin_cents) AS margin_cents,
  bool_or(category = 'topping') AS has_topping
FROM order_lines
GROUP BY order_id
