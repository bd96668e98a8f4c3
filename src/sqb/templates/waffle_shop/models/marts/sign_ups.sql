MODEL (
  description "New loyalty cards per month. It reads no order, so new orders don't run it."
);
SELECT date_trunc('MONTH', signed_up_on) AS month, count(*) AS customers
FROM stg_customers
GROUP BY date_trunc('MONTH', signed_up_on)
