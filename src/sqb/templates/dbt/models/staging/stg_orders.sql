select order_id, store_id, customer_id, ordered_at, cast(ordered_at as date) as ordered_on
from {{ source('till', 'orders') }}
where status = 'paid'
