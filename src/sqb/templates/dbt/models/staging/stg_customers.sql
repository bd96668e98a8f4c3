select customer_id, trim(name) as customer, lower(trim(email)) as email, signed_up_on
from {{ source('crm', 'customers') }}
