"""Order, concurrency, failure and interruption, without Spark."""

from __future__ import annotations

import threading
import time

from sqb.execution.events import NodeResult
from sqb.execution.scheduler import Work, run_all

DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": []}


def run(
    work: Work, *, concurrency: int = 2, fail_fast: bool = False
) -> tuple[dict[str, str], list[str]]:
    heard: list[str] = []
    results, interrupted = run_all(
        list(DIAMOND),
        DIAMOND,
        work,
        concurrency=concurrency,
        fail_fast=fail_fast,
        on_result=lambda result: heard.append(result.name),
        on_stop=lambda: None,
    )
    assert not interrupted
    return {name: result.status for name, result in results.items()}, heard


def ok(name: str) -> NodeResult:
    return NodeResult(name, "success", "forced")


def test_parents_come_first_and_everyone_is_heard_once() -> None:
    started: list[str] = []

    def work(name: str) -> NodeResult:
        started.append(name)
        return ok(name)

    status, heard = run(work)
    assert set(status.values()) == {"success"}
    assert sorted(heard) == sorted(DIAMOND)
    assert started.index("a") < started.index("b") < started.index("d")
    assert started.index("c") < started.index("d")


def test_independent_nodes_run_at_the_same_time_and_never_too_many() -> None:
    now, most, lock = 0, 0, threading.Lock()

    def work(name: str) -> NodeResult:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.05)
        with lock:
            now -= 1
        return ok(name)

    run(work, concurrency=2)
    assert most == 2
    most = 0
    run(work, concurrency=1)
    assert most == 1


def test_what_is_below_a_failure_is_blocked_and_the_rest_goes_on() -> None:
    def work(name: str) -> NodeResult:
        return NodeResult(name, "failed" if name == "b" else "success", "forced")

    status, _ = run(work)
    assert status == {"a": "success", "b": "failed", "c": "success", "d": "blocked", "e": "success"}


def test_fail_fast_starts_nothing_new() -> None:
    def work(name: str) -> NodeResult:
        return NodeResult(name, "failed" if name == "a" else "success", "forced")

    status, _ = run(work, concurrency=1, fail_fast=True)
    assert status == {"a": "failed", "b": "blocked", "c": "blocked", "d": "blocked", "e": "blocked"}
