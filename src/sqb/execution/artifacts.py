"""What a run leaves in ``.sqb/runs/<run_id>``: plan, results, events, logs."""

from __future__ import annotations

import threading
import time
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
            with self._lock, (self.folder / "events.jsonl").open("ab") as file:
                file.write(line + b"\n")
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
