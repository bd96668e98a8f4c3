"""Disposable files that hold one typed value: read whole, written atomically, never trusted.

Whatever can't be read is as good as absent, so a cache can be deleted, truncated or written by
another version at any time.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def read(path: Path, kind: type[T], version: int) -> T | None:
    """The value that ``write`` left there for this version of its layout, else None."""
    try:
        data = path.read_bytes()
        if not data or data[0] != version:
            return None
        return msgspec.msgpack.decode(memoryview(data)[1:], type=kind)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write(path: Path, value: object, version: int) -> None:
    """Replace the file so that a reader sees the old one or the new one, never half of it.

    A cache that can't be written (read-only disk) is no error.
    """
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(bytes([version]) + msgspec.msgpack.encode(value))
        temporary.replace(path)
