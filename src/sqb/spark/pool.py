"""Sibling sessions for the threads of a build.

Siblings share the JVM, the catalogs' settings and the cached tables; temp views and settings are
each one's own, so what one model sets is not seen by another.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Sibling(msgspec.Struct, frozen=True):
    """A session, and the state it is brought back to after each use."""

    session: SparkSession
    conf: dict[str, str]
    catalog: str
    namespace: str


class SessionPool:
    """At most ``size`` siblings of ``root``, made when first needed and used again.

    ``root`` itself is never handed out and never stopped.
    """

    def __init__(self, root: SparkSession, size: int) -> None:
        if size < 1:
            raise ValueError("a pool holds at least one session")
        self._root = root
        self._free: list[_Sibling] = []
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(size)

    @contextlib.contextmanager
    def acquire(self) -> Iterator[SparkSession]:
        """A session for this thread alone; waits while all are in use.

        Afterwards its temp views, settings, current catalog and schema, and this thread's tags
        and job description are as they were before.
        """
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        with self._places:
            with self._lock:
                sibling = self._free.pop() if self._free else self._make()
            try:
                yield sibling.session
            finally:
                try:
                    _reset(sibling)
                except (PySparkException, Py4JError, OSError):
                    # A session that can't be brought back is not used again: the next user gets
                    # a new one, and the error that led here goes on its way.
                    pass
                else:
                    with self._lock:
                        self._free.append(sibling)

    def _make(self) -> _Sibling:
        session = self._root.newSession()
        return _Sibling(
            session=session,
            conf=_settings(session),
            catalog=session.catalog.currentCatalog(),
            namespace=session.catalog.currentDatabase(),
        )


def _settings(session: SparkSession) -> dict[str, str]:
    return dict(session.conf.getAll)


def _reset(sibling: _Sibling) -> None:
    session = sibling.session
    session.sparkContext.clearJobTags()
    session.sparkContext.setJobDescription(None)  # type: ignore[arg-type]
    for name, value in _settings(session).items():
        if name not in sibling.conf:
            session.conf.unset(name)
        elif sibling.conf[name] != value:
            session.conf.set(name, sibling.conf[name])
    # Listing Spark's own, empty catalog shows the temp views without asking the lake.
    for view in session.sql("SHOW VIEWS IN spark_catalog.default").collect():
        if view["isTemporary"]:
            session.catalog.dropTempView(view["viewName"])
    catalog = session.catalog
    if (catalog.currentCatalog(), catalog.currentDatabase()) != (
        sibling.catalog,
        sibling.namespace,
    ):
        # A catalog's empty schema can't be named; entering the catalog anew leads back to it.
        catalog.setCurrentCatalog("spark_catalog")
        if sibling.catalog == "spark_catalog":
            catalog.setCurrentDatabase(sibling.namespace)
        else:
            catalog.setCurrentCatalog(sibling.catalog)
