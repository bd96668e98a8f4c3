"""The kinds of tables that are more than a query's rows replaced: one module each."""
