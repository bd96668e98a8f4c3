select * from {{ ref('daily_sales') }} where revenue <= 0
