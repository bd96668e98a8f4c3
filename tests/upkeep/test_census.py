"""What is needed in the whole catalog."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest
from records import STAMP, of
from small_lakes import SmallLake

from sqb.errors import SqbError
from sqb.lake.catalog import Drop, Head, Point, SqlCatalog
from sqb.lake.metadata import read_facts
from sqb.lake.staging import Lease
from sqb.state.tables import Fingerprint


def test_the_oldest_running_build_sets_how_far_back_everything_stays(lake: SmallLake) -> None:
    now = time.time()
    assert abs(lake.upkeep().census().needs.since_ms / 1000 - (now - 3600)) < 60
    lease = Lease(lake.catalog, ["dev__sqb_stage"], "busy")
    lease._began = now - 9000
    with lease:
        census = lake.upkeep().census()
    assert abs(census.needs.since_ms / 1000 - (now - 9000 - 3600)) < 60
    assert list(census.leases) == ["dev__sqb_stage"]


def test_a_lease_of_an_older_release_keeps_everything(lake: SmallLake) -> None:
    lease = Lease(lake.catalog, ["dev__sqb_stage"], "busy")
    lease._began = 0.0
    with lease:
        assert lake.upkeep().census().needs.since_ms < 0


def test_pins_of_stamps_and_of_newer_rows_count_while_the_relation_stands(lake: SmallLake) -> None:
    head = lake.build("reader", [1], pins={"a": 11})
    assert head is not None
    facts = read_facts(head.location)
    row = of(STAMP, node="reader", uuid=facts.uuid, ts=time.time_ns() // 1000 + 1, pins={"a": 22})
    lake.store.append([Fingerprint(row, "lake", "dev", "reader", "d")], [], {})
    view = of(STAMP, node="v", materialized="view", uuid=facts.uuid, pins={"a": 33})
    lake.store.append([Fingerprint(view, "lake", "dev", "v", "d")], [], {})
    assert {11, 22, facts.snapshot_id} <= lake.upkeep().census().needs.snapshots
    assert 33 not in lake.upkeep().census().needs.snapshots
    lake.catalog.commit([Drop("dev", "reader", head)])
    assert not {11, 22} & lake.upkeep().census().needs.snapshots


def test_a_relation_that_goes_while_it_is_looked_at_is_no_trouble(lake: SmallLake) -> None:
    lake.build("t", [1])
    gone = Head("dev", "gone", "table", f"{lake.folder}/nothing.metadata.json")

    class Late(SqlCatalog):
        """Sees a row that is dropped before its file is read."""

        def heads(self, namespaces: Iterable[str] | None = None) -> dict[tuple[str, str], Head]:
            return {**super().heads(namespaces), ("dev", "gone"): gone}

    known = lake.catalog
    lake.catalog = Late(known.name, known.uri, known.warehouse)
    census = lake.upkeep().census()
    assert ("dev", "gone") not in census.heads
    assert ("dev", "t") in census.records
    lake.catalog.commit([Point("dev", "gone", "table", gone.location, expected=None)])
    with pytest.raises(SqbError, match="is missing"):
        lake.upkeep().census()
