select c.customer_id, c.is_vip, count(v.visit_id) as visits
from {{ ref('dim_customers') }} c
left join {{ ref('fct_visits') }} v on v.customer_id = c.customer_id
group by c.customer_id, c.is_vip
