"""The text of a definition as a table property: compressed, so that metadata files stay small."""

from __future__ import annotations

import base64
import binascii
import zlib


def pack(text: str) -> str:
    """Text for a property.

    >>> unpack(pack("SELECT 1"))
    'SELECT 1'
    """
    return base64.b85encode(zlib.compress(text.encode("utf-8", "surrogatepass"), 6)).decode()


def unpack(value: str | None) -> str | None:
    """The text that ``pack`` packed; None for anything else."""
    if value is None:
        return None
    try:
        return zlib.decompress(base64.b85decode(value)).decode("utf-8", "surrogatepass")
    except (ValueError, zlib.error, binascii.Error):
        return None
