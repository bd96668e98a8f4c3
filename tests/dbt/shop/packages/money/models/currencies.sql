select '{{ var("currency", "USD") }}' as currency, {{ digits() }} as digits
