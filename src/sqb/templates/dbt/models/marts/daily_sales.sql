select ordered_on, store, count(*) as orders, sum(revenue) as revenue
from {{ ref('fct_orders') }}
group by ordered_on, store
