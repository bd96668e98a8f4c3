"""What a run leaves in ``.sqb/runs/<run_id>``: plan, results, events, logs."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from pathlib import Path

import msgspec

from sqb.execution.events import BuildResult, Event, Listener
from sqb.planning.plan import Plan


class Artifacts:
    """Writes a run's files; events as they happen, the rest at the ends."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "plan.json").write_bytes(msgspec.json.format(msgspec.json.encode(plan), indent=2))
        self._lock = threading.Lock()

    def listening(self, listener: Listener) -> Listener:
        """A listener that also writes every event down."""

        def hear(event: Event) -> None:
            line = msgspec.json.encode({"at": time.time(), **msgspec.to_builtins(event)})
            with self._lock:
                with (self.folder / "events.jsonl").open("ab") as file:
                    file.write(line + b"\n")
                with (self.folder / "sqb.log").open("a", encoding="utf-8") as log:
                    log.write(f"{datetime.now().astimezone():%H:%M:%S} {_sentence(event)}\n")
            listener(event)

        return hear

    def finish(self, result: BuildResult) -> None:
        """The end of the run."""
        data = msgspec.json.encode(
            {
                "run_id": result.run_id,
                "seconds": result.seconds,
                "interrupted": result.interrupted,
                "nodes": msgspec.to_builtins(result.nodes),
            }
        )
        (self.folder / "results.json").write_bytes(msgspec.json.format(data, indent=2))


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
