"""Runs nodes as soon as what they read is done, several at once; knows nothing of Spark."""

from __future__ import annotations

import contextlib
import queue
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType

from sqb.execution.events import NodeResult

Work = Callable[[str], NodeResult]

#: How often, in seconds, a build that was interrupted cancels again what still runs.
_TURN = 0.5


def run_all(
    order: Sequence[str],
    parents: Mapping[str, Sequence[str]],
    work: Work,
    *,
    concurrency: int,
    fail_fast: bool,
    on_result: Callable[[NodeResult], None],
    on_stop: Callable[[], None],
) -> tuple[dict[str, NodeResult], bool]:
    """Run ``work`` for each name once all its parents among ``order`` are done.

    What is below a failure is blocked; the rest goes on unless ``fail_fast``. Gives the results
    and whether the user interrupted (``on_stop`` then cancels what is running, again and again
    until nothing is).
    """
    names = list(order)
    among = set(names)
    waits = {name: {p for p in parents[name] if p in among} for name in names}
    results: dict[str, NodeResult] = {}
    # its put may interrupt itself: a signal's handler runs in the middle of anything
    done: queue.SimpleQueue[NodeResult | None] = queue.SimpleQueue()
    running: set[str] = set()
    pending = list(names)
    stopping = False

    def start(name: str) -> None:
        running.add(name)
        threading.Thread(target=answer, args=(name,), name=name, daemon=True).start()

    def answer(name: str) -> None:
        result = NodeResult(name, "failed", "upstream_changed")
        try:
            result = work(name)
        finally:
            done.put(result)

    def settle(result: NodeResult) -> None:
        results[result.name] = result
        on_result(result)

    def dispatch() -> None:
        nonlocal pending
        later: list[str] = []
        for name in pending:
            ends = [results[p].status for p in waits[name] if p in results]
            if any(status in ("failed", "blocked") for status in ends) or stopping:
                settle(NodeResult(name, "blocked", "upstream_changed"))
            elif len(ends) == len(waits[name]) and len(running) < concurrency:
                start(name)
            else:
                later.append(name)
        pending = later

    with _interrupts(lambda: done.put(None)) as asked:
        while pending or running:
            dispatch()
            if not running:
                continue
            with contextlib.suppress(queue.Empty):
                result = done.get(timeout=_TURN)
                if result is not None:
                    running.discard(result.name)
                    settle(result)
                    stopping = stopping or (result.status == "failed" and fail_fast)
            if asked.is_set():
                stopping = True
                on_stop()
    return results, asked.is_set()


@contextlib.contextmanager
def _interrupts(wake: Callable[[], None]) -> Iterator[threading.Event]:
    """Ctrl-C as an event while the ``with`` block lasts.

    As an exception it could come between taking a result and settling it, and the build would
    wait for that node for ever. Only the main thread hears signals.
    """
    asked = threading.Event()

    def note(_signal: int, _frame: FrameType | None) -> None:
        asked.set()
        wake()

    if threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)
