-- A table, because sqlbuild_project.toml says so in [defaults].
SELECT customer, COUNT(*) AS orders, SUM(amount) AS total, MAX(ordered_at) AS last_order
FROM stg_orders
GROUP BY customer
