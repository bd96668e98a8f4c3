"""Hashes: query, config, seed; local composed to version."""
