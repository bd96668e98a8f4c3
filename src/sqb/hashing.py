"""The one way hashes are made: BLAKE2b-256 over length-prefixed fields, as hex."""

from __future__ import annotations

from hashlib import blake2b


def digest(*fields: str) -> str:
    """Hash ``fields`` so that no two lists of fields can give the same input.

    >>> digest("ab", "c") == digest("a", "bc")
    False
    """
    hasher = blake2b(digest_size=32)
    for field in fields:
        data = field.encode("utf-8", "surrogatepass")
        hasher.update(b"%d:" % len(data))
        hasher.update(data)
    return hasher.hexdigest()
