select o.order_id, o.customer_id, o.ordered_on, o.status, coalesce(t.amount, 0) as amount,
       '{{ env_var("SHOP_REGION", "north") }}' as region
from {{ ref('stg_orders') }} o
left join {{ ref('order_totals') }} t on t.order_id = o.order_id
