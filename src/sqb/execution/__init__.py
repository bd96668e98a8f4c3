"""Plan in, tables out: walks the plan and decides nothing the plan could have decided."""
