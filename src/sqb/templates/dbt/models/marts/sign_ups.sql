-- it reads no order, so new orders don't run it
select date_trunc('MONTH', signed_up_on) as month, count(*) as customers
from {{ ref('stg_customers') }}
group by date_trunc('MONTH', signed_up_on)
