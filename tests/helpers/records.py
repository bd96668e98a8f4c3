"""One record and the facts of the relation it speaks of, to be varied by tests."""

from __future__ import annotations

import msgspec

from sqb.lake.metadata import TableFacts
from sqb.state.record import Consumed, Record

STAMP = Record(
    node="m",
    type="model",
    materialized="table",
    scheme="1/30",
    query="q",
    config="c",
    local="l",
    version="v",
    data="t:1",
    schema="s",
    table="shape",
    uuid="u",
    snapshot=5,
    run="r1",
    ts=100,
    inputs=(Consumed("raw.x", "d", "s", ""),),
)
FACTS = TableFacts(
    kind="table",
    uuid="u",
    location="/lake/m",
    snapshot_id=5,
    data_snapshot_id=5,
    data_timestamp_ms=1,
    schema_id=0,
    columns=(),
    snapshot_columns=None,
    partitioning=(),
    sort_order=(),
    format_version=2,
    properties={},
    stamp=None,
    total_records=1,
    shape="shape",
)
AMENDMENT = msgspec.structs.replace(STAMP, version="v2", run="r2", ts=200)


def of(record: Record, **changes: object) -> Record:
    return msgspec.structs.replace(record, **changes)
