"""Sibling sessions for the threads of a build.

Siblings share the JVM or the server, the catalogs' settings and the cached tables; temp views and
settings are each one's own, so what one model sets is not seen by another.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from sqb.spark.kinds import clear_marks, is_connect, release, sibling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Settings = frozenset[tuple[str, str]]

#: Classic siblings that pools let go of, by their root and settings, for the next pool: each holds
#: connections to the catalog's database, and Spark has no way to close a sibling.
_spare: WeakKeyDictionary[SparkSession, dict[Settings, list[SparkSession]]] = WeakKeyDictionary()
_sparing = threading.Lock()


class SessionPool:
    """At most ``size`` siblings of ``root``, made when first needed and used again.

    ``root`` itself is never handed out and never stopped. ``conf`` is set on each: a sibling has
    the settings of the JVM, not those that someone set on ``root`` since.
    """

    def __init__(
        self, root: SparkSession, size: int, conf: Mapping[str, str] | None = None
    ) -> None:
        if size < 1:
            raise ValueError("a pool holds at least one session")
        self._root = root
        self._conf = dict(conf or {})
        self._free: list[SparkSession] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(size)

    @contextlib.contextmanager
    def acquire(self) -> Iterator[SparkSession]:
        """A session for this thread alone; waits while all are in use.

        Afterwards this thread's tags and job description are gone. Temp views and settings stay
        until their maker takes them away: asking Spark for what is there costs more than a small
        model.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        with self._places:
            with self._lock:
                session = self._free.pop() if self._free else self._new()
            try:
                yield session
            finally:
                try:
                    clear_marks(session)
                except (PySparkException, Py4JError, OSError):
                    # A session that can't be brought back is not used again: the next user gets
                    # a new one, and the error that led here goes on its way.
                    pass
                else:
                    with self._lock:
                        self._free.append(session)

    def close(self) -> None:
        """Let go of the sessions that are not in use; the pool can go on afterwards."""
        with self._lock:
            free, self._free = self._free, []
        if not is_connect(self._root):
            with _sparing:
                kept = _spare.setdefault(self._root, {})
                kept.setdefault(frozenset(self._conf.items()), []).extend(free)
            return
        for session in free:
            release(session)

    def _new(self) -> SparkSession:
        with _sparing:
            spare = _spare.get(self._root, {}).get(frozenset(self._conf.items()))
            if spare:
                return spare.pop()
        session = sibling(self._root)
        for name, value in self._conf.items():
            session.conf.set(name, value)
        return session
