"""The name of the canonical form in force, known without importing the tokeniser.

The scheme is recorded beside every hash. When it differs, the *stored text* is made canonical
again before comparing, so that an upgrade alone makes nothing stale.
"""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

#: Raised by hand when the rules of ``canonical`` change.
RULES = 2


@cache
def tokenizer_version() -> str:
    """The installed sqlglot's version, read from its file: importing it costs 0.2 s."""
    spec = importlib.util.find_spec("sqlglot")
    if spec is None or spec.origin is None:
        raise RuntimeError("sqlglot is not installed")
    text = Path(spec.origin).with_name("_version.py").read_text(encoding="utf-8")
    found = re.search(r"^__version__ = (?:version = )?['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return found.group(1) if found else str(hash(text))


def scheme() -> str:
    """The scheme of hashes made now, e.g. ``1/30.30.0``."""
    return f"{RULES}/{tokenizer_version()}"
