"""The release, on its own so that every room can name it without importing another."""

from __future__ import annotations

__version__ = "0.4.0"
