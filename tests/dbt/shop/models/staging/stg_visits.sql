select visit_id, customer_id, page, loaded_at
from {{ source('app', 'visits') }}
