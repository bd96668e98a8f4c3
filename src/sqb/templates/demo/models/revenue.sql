SELECT ordered_on, sum(cents) AS cents
FROM orders
GROUP BY ordered_on
