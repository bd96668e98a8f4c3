"""Runs nodes as soon as what they read is done, several at once; knows nothing of Spark."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence

from sqb.execution.events import NodeResult

Work = Callable[[str], NodeResult]


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
    and whether the user interrupted (``on_stop`` then cancels what is running,
    again and again until nothing is).
    """
    names = list(order)
    among = set(names)
    waits = {name: {p for p in parents[name] if p in among} for name in names}
    results: dict[str, NodeResult] = {}
    done: queue.Queue[NodeResult] = queue.Queue()
    running: set[str] = set()
    pending = list(names)
    stopping = interrupted = False

    def start(name: str) -> None:
        running.add(name)
        threading.Thread(target=lambda: done.put(work(name)), name=name, daemon=True).start()

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

    while pending or running:
        try:
            dispatch()
            if not running:
                continue
            result = done.get(timeout=0.5)
        except queue.Empty:
            if interrupted:
                # what began after the last cancellation is cancelled too
                on_stop()
            continue
        except KeyboardInterrupt:
            stopping = interrupted = True
            on_stop()
            continue
        running.discard(result.name)
        settle(result)
        if result.status == "failed" and fail_fast:
            stopping = True
    return results, interrupted
