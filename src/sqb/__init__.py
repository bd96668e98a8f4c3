"""sqb: change-aware SQL builds on Apache Spark.

The public names are loaded on first use, so that ``import sqb`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqb.version import __version__

__all__ = ["Project", "__version__"]

if TYPE_CHECKING:
    from sqb.api import Project


def __getattr__(name: str) -> object:
    if name == "Project":
        from sqb.api import Project

        return Project
    raise AttributeError(f"module 'sqb' has no attribute {name!r}")
