{{ config(materialized='incremental', incremental_strategy='merge', unique_key='visit_id') }}
select visit_id, customer_id, page, loaded_at
from {{ ref('stg_visits') }}
{% if is_incremental() %}
where loaded_at > (select max(loaded_at) from {{ this }})
{% endif %}
