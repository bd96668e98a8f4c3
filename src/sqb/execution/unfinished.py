"""What a run wrote in place and did not live to stamp.

Only where a catalog lets tables be replaced and nothing else are rows seen before their stamp is. A
plain table is simply made again. One that holds history is brought up to date from the version that
its record names, as if the other had never been.
"""

from __future__ import annotations

import time
from typing import Any

import msgspec

from sqb.execution.run import Run
from sqb.lake.metadata import TableFacts
from sqb.lake.staging import live_runs, stage_schema
from sqb.lake.writers import writers_since


def as_recorded(run: Run, name: str) -> TableFacts | None:
    """The facts of a table at its recorded version, if all that came since is what a run of sqb
    wrote in place before it ended."""
    record, facts = run.situation.recorded.get(name), run.situation.relations.get(name)
    if record is None or facts is None or run.catalog.mode not in {"branch", "replace"}:
        return None
    expected = run.expected(name)
    head = run.heads[(expected.namespace, expected.relation)]
    if head.kind == "view" or (record.uuid, record.table) != (facts.uuid, facts.shape):
        return None
    document = msgspec.json.decode(run.catalog.read(head.location), type=dict[str, Any])
    writers = writers_since(document, record.snapshot)
    stage = stage_schema(expected.namespace)
    if not writers or writers & live_runs(run.catalog, stage, time.time()):
        return None
    return msgspec.structs.replace(
        facts,
        snapshot_id=record.snapshot,
        data_snapshot_id=record.snapshot,
        snapshot_columns=None,
        total_records=record.rows,
    )
