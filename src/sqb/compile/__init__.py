"""Project and SQL together: compiled nodes, and the cache that spares compiling them again."""
