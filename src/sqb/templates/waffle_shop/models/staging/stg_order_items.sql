SELECT order_id, line, item_id, quantity
FROM till_order_items
WHERE quantity > 0
