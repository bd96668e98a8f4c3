from __future__ import annotations

import msgspec
import pytest

from sqb.lake.metadata import Column, TableFacts
from sqb.lake.shape import Shape, fits

FACTS = TableFacts(
    kind="table", uuid="u", location="/t", snapshot_id=1, data_snapshot_id=1, data_timestamp_ms=1,
    schema_id=0, columns=(Column(1, "id", "long", False), Column(2, "ts", "timestamptz", False)),
    snapshot_columns=None, partitioning=("bucket(4, id)", "days(ts)"),
    sort_order=("id DESC NULLS LAST",), format_version=2, properties={}, stamp=None,
    total_records=1,
)  # fmt: skip
SHAPE = Shape((("id", "BIGINT"), ("ts", "TIMESTAMP")), ("bucket(4,`id`)", "DAYS(ts)"), ("id desc",))


def test_spelling_does_not_matter() -> None:
    assert fits(SHAPE, FACTS)


@pytest.mark.parametrize(
    "change",
    [
        {"columns": SHAPE.columns[::-1]},
        {"columns": (("id", "INT"), ("ts", "TIMESTAMP"))},
        {"columns": SHAPE.columns[:1]},
        {"partitioned_by": ("bucket(8, id)", "days(ts)")},
        {"partitioned_by": ()},
        {"sorted_by": ("id",)},
        {"sorted_by": ("id DESC NULLS FIRST",)},
    ],
)
def test_anything_else_does(change: dict[str, object]) -> None:
    assert not fits(msgspec.structs.replace(SHAPE, **change), FACTS)


def test_a_table_that_someone_altered_does_not_fit() -> None:
    required = tuple(msgspec.structs.replace(c, required=True) for c in FACTS.columns)
    assert not fits(SHAPE, msgspec.structs.replace(FACTS, columns=required))
    assert not fits(SHAPE, msgspec.structs.replace(FACTS, snapshot_columns=FACTS.columns[:1]))
