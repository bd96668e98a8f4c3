"""An existing dbt project on Spark: what it is, what of it is stale, and running exactly that."""
