"""Plan in, tables out: walks the plan with Spark and decides nothing the plan could have decided."""
