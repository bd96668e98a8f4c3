"""Sources: observe what they are now, compare with what was consumed."""
