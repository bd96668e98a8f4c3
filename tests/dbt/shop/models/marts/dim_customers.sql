select c.customer_id, c.name, c.city, coalesce(sum(f.amount), 0) as spent,
       coalesce(sum(f.amount), 0) >= {{ var('vip_from') }} as is_vip
from {{ ref('stg_customers') }} c
left join {{ ref('fct_orders') }} f on f.customer_id = c.customer_id
group by c.customer_id, c.name, c.city
