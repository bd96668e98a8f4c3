SELECT
  o.id,
  o.customer,
  d.label AS drink,
  o.quantity * d.cents AS cents,
  o.ordered_on
FROM stg_orders AS o
JOIN drinks AS d ON d.drink = o.drink
