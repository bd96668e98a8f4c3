"""Keeping the lake small: what may be removed, removing it, and packing what is scattered."""
