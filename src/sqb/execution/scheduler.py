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

#: Seconds after which a build that was interrupted cancels again what still runs.
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
    # a handler of signals puts too, maybe in the middle of another put: this queue allows that
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
            above = [results[p] for p in sorted(waits[name]) if p in results]
            failed = _failures(above)
            if failed or stopping:
                settle(NodeResult(name, "blocked", "upstream_changed", blocked_by=failed))
            elif len(above) == len(waits[name]) and len(running) < concurrency:
                start(name)
            else:
                later.append(name)
        pending = later

    asked: list[bool] = []
    with _interrupts(asked, lambda: done.put(None)):
        while pending or running:
            dispatch()
            if not running:
                continue
            try:
                result = done.get(timeout=_TURN)
            except queue.Empty:
                result = None
            if result is not None:
                running.discard(result.name)
                settle(result)
                stopping = stopping or (result.status == "failed" and fail_fast)
            if asked:
                stopping = True
                on_stop()
    return results, bool(asked)


def _failures(above: list[NodeResult]) -> tuple[str, ...]:
    """The failures that these results are or come from."""
    names = [
        name
        for result in above
        if result.status in ("failed", "blocked")
        for name in ((result.name,) if result.status == "failed" else result.blocked_by)
    ]
    return tuple(dict.fromkeys(names))


@contextlib.contextmanager
def _interrupts(asked: list[bool], wake: Callable[[], None]) -> Iterator[None]:
    """Note Ctrl-C in ``asked`` instead of raising it, while the ``with`` block lasts.

    As an exception it could come between taking a result and settling it, and the build would
    wait for that node for ever. Only the main thread hears signals.
    """

    def note(_signal: int, _frame: FrameType | None) -> None:
        asked.append(True)
        wake()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before if before is not None else signal.SIG_DFL)
