"""Classic and Connect sessions behind one set of verbs: mark jobs, interrupt them, make siblings,
keep rows.

All that differs between the two kinds after a session was opened is here. Opening is in ``session``
and ``connect``.
"""

from __future__ import annotations

import atexit
import time
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Prefix of the tag that names the model of a job in a Connect session.
NAME_TAG = "sqb-model-"


#: How long a statement that shows no task is left to plan before it is interrupted all the same.
_PATIENCE = 40.0


class _Watch:
    """Whether a Connect session's statement has come to its tasks.

    A server interrupts a statement once. Before its tasks run that may be lost in the planning,
    and the statement then runs to its end whatever is asked later.
    """

    def __init__(self) -> None:
        self._tasks = False
        self._asked: float | None = None

    def hear(self, *, stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:  # noqa: ARG002
        """What pyspark tells, by these very names."""
        self._tasks = inflight_tasks > 0 and not done

    def may_interrupt(self, now: float) -> bool:
        """Is it safe, or has it been waited for long enough?"""
        self._asked = self._asked if self._asked is not None else now
        return self._tasks or now - self._asked > _PATIENCE


_watches: WeakKeyDictionary[Any, _Watch] = WeakKeyDictionary()


def is_connect(session: SparkSession) -> bool:
    """Is it a Spark Connect session? Told without importing either kind."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def name_jobs(session: SparkSession, text: str | None) -> None:
    """Describe the Spark jobs that this thread starts from now on; None ends it.

    A Connect server writes the description itself, so there the name is a tag of the jobs.
    """
    if not is_connect(session):
        # pyspark hands None through, which removes the description; its annotation forgets that.
        session.sparkContext.setJobDescription(text)  # type: ignore[arg-type]
        return
    for tag in [tag for tag in session.getTags() if tag.startswith(NAME_TAG)]:
        session.removeTag(tag)
    if text:
        # the separator of tags can't be part of one
        session.addTag(NAME_TAG + text.replace(",", "_"))


def add_tag(session: SparkSession, tag: str) -> None:
    """Mark the jobs that this thread starts from now on, so that ``interrupt`` finds them."""
    if is_connect(session):
        session.addTag(tag)
    else:
        # Not SparkSession.addTag: in a classic session its interruptTag finds only the tags of
        # the thread that calls it, and interrupting is done from another one.
        session.sparkContext.addJobTag(tag)


def clear_marks(session: SparkSession) -> None:
    """Take this thread's tags and job description away."""
    if is_connect(session):
        session.clearTags()
    else:
        session.sparkContext.clearJobTags()
        session.sparkContext.setJobDescription(None)  # type: ignore[arg-type]


def interrupt(session: SparkSession, tag: str) -> None:
    """Cancel the running jobs that carry ``tag``; any thread may call it.

    In a classic session these are the jobs of every sibling, in a Connect session its own alone.
    Jobs that start afterwards under the same tag are not stopped, so call it again and again.
    """
    if is_connect(session):
        watch = _watches.get(session)
        if watch is None or watch.may_interrupt(time.monotonic()):
            session.interruptTag(tag)
    else:
        session.sparkContext.cancelJobsWithTag(tag)


def sibling(session: SparkSession) -> SparkSession:
    """A new session beside ``session``, with temp views and settings of its own."""
    if not is_connect(session):
        return session.newSession()
    remote = cast("Any", session)
    clone = remote.cloneSession()
    # pyspark's clone leaves out what its stop() looks at, and the patience of the original.
    clone.release_session_on_close = True
    clone.client.set_retry_policies(remote.client.get_retry_policies())
    _watches[clone] = watch = _Watch()
    clone.registerProgressHandler(watch.hear)
    return ended_by_hand(clone)


def ended_by_hand(session: SparkSession) -> SparkSession:
    """A Connect session that only ``release`` closes, never the garbage collector.

    pyspark 4.1 closes a collected session in whatever thread the collector runs in, stopped or not,
    and waits there for the calls of all others: if that thread holds a lock of gRPC which one of
    them needs, the process hangs (SPARK-55406). It also has every client that was not closed ask
    its server for something when Python ends, for minutes if the server is gone.
    """
    client = cast("Any", session).client
    client.close = _left_open
    atexit.unregister(client._cleanup_ml_cache)
    return session


def _left_open() -> None:
    """What the collector does to a client: gRPC ends the connection when the channel goes."""


def release(session: SparkSession) -> None:
    """End a session: a Connect server keeps each one until it is told, or for an hour."""
    if not is_connect(session):
        return
    client = cast("Any", session).client
    vars(client).pop("close", None)
    try:
        session.stop()
    finally:
        ended_by_hand(session)


def keep(frame: DataFrame) -> DataFrame:
    """Rows computed once and for all, until ``forget``: what they are made from is not read again.

    pyspark 4.1 believes that a Connect server keeps them in the thread's active session, whichever
    computed them, and lets them go with a call in whatever thread the collector runs in.
    """
    made = frame.localCheckpoint()
    if not is_connect(frame.sparkSession):
        return made
    remote: Any = made
    remote._plan._spark_session = None
    found: DataFrame = type(remote)(remote._plan, frame.sparkSession)
    return found


def forget(frame: DataFrame) -> None:
    """Let rows go that were kept; where Spark counts who uses them, it sees by itself."""
    if is_connect(frame.sparkSession):
        remote: Any = frame
        plan = remote._plan
        plan._spark_session = frame.sparkSession
        plan.__del__()
        plan._spark_session = None
