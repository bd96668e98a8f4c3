select f.order_id
from {{ ref('fct_orders') }} f
left join {{ ref('dim_customers') }} c on c.customer_id = f.customer_id
where c.customer_id is null
