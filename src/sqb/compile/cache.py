"""The compile cache: an unchanged file is never tokenised or parsed again.

An entry is keyed by the file's content; the whole cache by everything else that compiling depends
on (config, macros, variables, tool and parser versions).
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from sqb.compile.nodes import CompiledModel, CompiledSeed, SourceTable

LAYOUT = 5


def fingerprint(*parts: bytes) -> bytes:
    """A short hash over length-prefixed parts: the key of cached things."""
    hasher = blake2b(digest_size=16)
    for part in parts:
        hasher.update(b"%d:" % len(part))
        hasher.update(part)
    return hasher.digest()


class CompileCache(msgspec.Struct, array_like=True):
    """What an earlier compile left, by path: the file's fingerprint and its compiled node.

    ``imports`` are the project's own modules that macros import, with their fingerprints.
    """

    key: bytes = b""
    models: dict[str, tuple[bytes, CompiledModel]] = {}
    seeds: dict[str, tuple[bytes, CompiledSeed]] = {}
    sources_key: bytes = b""
    sources: dict[str, SourceTable] = {}
    imports: dict[str, bytes] = {}
