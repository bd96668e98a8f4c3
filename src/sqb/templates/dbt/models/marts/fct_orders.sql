select
  o.order_id,
  o.ordered_on,
  s.store,
  o.customer_id,
  {{ euros('sum(i.quantity * m.price_cents)') }} as revenue,
  sum(i.quantity * m.price_cents) >= {{ var('big_order_cents') }} as is_big
from {{ ref('stg_orders') }} o
join {{ ref('stg_order_items') }} i on i.order_id = o.order_id
join {{ ref('menu') }} m on m.item_id = i.item_id
join {{ ref('stores') }} s on s.store_id = o.store_id
group by o.order_id, o.ordered_on, s.store, o.customer_id
