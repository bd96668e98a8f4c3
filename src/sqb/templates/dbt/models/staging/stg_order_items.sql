select order_id, line, item_id, quantity
from {{ source('till', 'order_items') }}
where quantity > 0
