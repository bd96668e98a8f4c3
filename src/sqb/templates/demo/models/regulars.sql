SELECT customer, count(*) AS orders
FROM orders
GROUP BY customer
HAVING count(*) > 1
