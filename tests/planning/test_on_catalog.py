"""What a plan says about the catalog: the mode, and names that are missing for a moment."""

from __future__ import annotations

import msgspec
import pytest

from sqb.lake.metadata import TableFacts
from sqb.planning.on_catalog import for_catalog
from sqb.planning.plan import Plan, PlannedNode

TABLE = TableFacts(
    kind="table", uuid="u", location="/t", snapshot_id=1, data_snapshot_id=1, data_timestamp_ms=1,
    schema_id=0, columns=(), snapshot_columns=None, partitioning=(), sort_order=(),
    format_version=2, properties={}, stamp=None, total_records=1,
)  # fmt: skip
VIEW = msgspec.structs.replace(TABLE, kind="view")


class Catalog(msgspec.Struct):
    mode: str | None
    swaps_kinds: bool


@pytest.mark.parametrize(
    ("materialized", "stands", "swaps", "action", "warned"),
    [
        ("table", VIEW, False, "run", True),
        ("view", TABLE, False, "run", True),
        ("view", TABLE, True, "run", False),
        ("view", TABLE, False, "skip", False),
        ("table", TABLE, False, "run", False),
        ("view", VIEW, False, "run", False),
        ("view", None, False, "run", False),
    ],
)
def test_a_name_that_changes_its_kind_is_warned_of_where_it_takes_two_steps(
    materialized: str, stands: TableFacts | None, swaps: bool, action: str, warned: bool
) -> None:
    node = PlannedNode("m", "model", materialized, action, "query_changed")  # type: ignore[arg-type]
    relations = {"m": stands} if stands is not None else {}
    plan = for_catalog(Plan("dev", (node,), ()), relations, Catalog("branch", swaps))
    assert plan.publish_mode == "branch"
    assert [w.code for w in plan.warnings] == (["S308"] if warned else [])
