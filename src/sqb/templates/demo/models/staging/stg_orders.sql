SELECT id, customer, drink, quantity, ordered_on
FROM raw_orders
WHERE quantity > 0
