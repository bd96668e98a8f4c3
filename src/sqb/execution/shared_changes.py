"""Changes of sources that several models of a run read: compared once, then known to all.

A rewritten file holds mostly rows that stay. Leaving those out is the dear part, so it is done
once for each source and range of versions, on all columns that can be compared.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from sqb.spark.kinds import forget, keep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Key = tuple[str, int | None, int | None]


class SharedChanges:
    """The changes that a run has compared, each a global view."""

    def __init__(self, run_id: str) -> None:
        self._prefix = "sqb_" + "".join(c if c.isalnum() else "_" for c in run_id)
        self._made: dict[Key, str] = {}
        self._kept: list[DataFrame] = []
        self._locks: dict[Key, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, make: Callable[[], DataFrame]) -> str:
        """The name of a change; who asks first makes it, who asks meanwhile waits."""
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
            number = list(self._locks).index(key)
        with lock:
            if key not in self._made:
                name = f"{self._prefix}_{number}"
                rows = keep(make())
                self._kept.append(rows)
                rows.createOrReplaceGlobalTempView(name)
                self._made[key] = name
            return f"global_temp.{self._made[key]}"

    def close(self, session: SparkSession) -> None:
        """Take the views away again."""
        for name in self._made.values():
            with contextlib.suppress(Exception):
                session.catalog.dropGlobalTempView(name)
        for rows in self._kept:
            forget(rows)
        self._made.clear()
        self._kept.clear()
