"""What a run leaves in ``.sqb/runs/<run_id>``: plan, results, events, logs; secrets are masked."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import msgspec

from sqb.execution.events import BuildResult, Event, Listener
from sqb.planning.plan import Plan
from sqb.project.secrets import masked


class Artifacts:
    """Writes a run's files; events as they happen, the rest at the ends."""

    def __init__(self, folder: Path, plan: Plan, mask: Callable[[str], str]) -> None:
        self.folder = folder
        self._mask = mask
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        self._write("plan.json", msgspec.to_builtins(plan))

    def listening(self, listener: Listener) -> Listener:
        """A listener that also writes every event down."""

        def hear(event: Event) -> None:
            plain = masked(msgspec.to_builtins(event), self._mask)
            line = msgspec.json.encode({"at": time.time(), **plain})
            sentence = self._mask(_sentence(event))
            with self._lock:
                with (self.folder / "events.jsonl").open("ab") as file:
                    file.write(line + b"\n")
                with (self.folder / "sqb.log").open("a", encoding="utf-8") as log:
                    log.write(f"{datetime.now().astimezone():%H:%M:%S} {sentence}\n")
            listener(event)

        return hear

    def finish(self, result: BuildResult) -> None:
        """The end of the run."""
        self._write(
            "results.json",
            {
                "run_id": result.run_id,
                "seconds": result.seconds,
                "interrupted": result.interrupted,
                "nodes": msgspec.to_builtins(result.nodes),
            },
        )

    def _write(self, name: str, value: object) -> None:
        data = msgspec.json.encode(masked(value, self._mask))
        (self.folder / name).write_bytes(msgspec.json.format(data, indent=2))


def mask_log(path: Path, mask: Callable[[str], str]) -> None:
    """Mask what a JVM wrote to its log. It appends, so the file is changed in place."""
    try:
        with path.open("r+b") as file:
            text = file.read().decode("utf-8", errors="surrogateescape")
            clean = mask(text)
            if clean != text:
                file.seek(0)
                file.write(clean.encode("utf-8", errors="surrogateescape"))
                file.truncate()
    except FileNotFoundError:
        pass


def _sentence(event: Event) -> str:
    """An event as a line of the log."""
    result = event.result
    if result is None:
        return " ".join(filter(None, (event.kind.replace("_", " "), event.node, event.message)))
    text = f"{result.name} {result.status} ({result.reason}) in {result.seconds:.2f}s"
    if result.error is None:
        return text
    where = f" at {result.error['file']}:{result.error['line']}" if result.error["file"] else ""
    return f"{text}: error[{result.error['code']}] {result.error['message']}{where}"
