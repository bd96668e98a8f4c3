SELECT
  customer_id,
  trim(name) AS customer,
  lower(trim(email)) AS email,
  signed_up_on
FROM crm_customers
