{% macro cents_to_units(column) %}{{ shop.rounded(column ~ ' / 100') }}{% endmacro %}

{% macro rounded(expression) %}cast({{ expression }} as decimal(12, {{ money.digits() }})){% endmacro %}
