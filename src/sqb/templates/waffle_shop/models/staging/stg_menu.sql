SELECT
  item_id,
  item,
  category,
  price_cents,
  price_cents - cost_cents AS margin_cents
FROM menu
