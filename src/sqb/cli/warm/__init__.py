"""The warm Spark: one process that waits with everything loaded, and forks a command from it."""
