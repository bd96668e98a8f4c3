MODEL (
  description "Sales of each store, day by day.",
  sorted_by [ordered_on],
  tags [daily]
);
SELECT
  ordered_on,
  store,
  count(*) AS orders,
  sum(revenue) AS revenue,
  sum(margin) AS margin
FROM fct_orders
GROUP BY ordered_on, store
