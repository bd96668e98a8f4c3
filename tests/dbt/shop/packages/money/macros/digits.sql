{% macro digits() %}2{% endmacro %}
