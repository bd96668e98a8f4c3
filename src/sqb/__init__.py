"""sqb: change-aware SQL builds on Apache Spark.

The public names are loaded on first use, so that ``import sqb`` costs nothing.
"""

from __future__ import annotations

from sqb.version import __version__

__all__ = ["Project", "__version__"]

_LATER = frozenset({"model", "loader", "task", "asset", "check", "hook", "udf"})

# not from typing, which takes longer to import than all that a warm command needs
TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqb.api import Project


def __getattr__(name: str) -> object:
    if name == "Project":
        from sqb.api import Project

        return Project
    if name in _LATER:
        raise AttributeError(f"sqb.{name} arrives in release 0.5")
    raise AttributeError(f"module 'sqb' has no attribute {name!r}")
