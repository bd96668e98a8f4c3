"""What a build does at its end: only what has grown is touched, what is needed stays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from records import STAMP, of
from small_lakes import SmallLake, numbers

from sqb.lake.metadata import read_facts
from sqb.lake.staging import Lease
from sqb.state.tables import FINGERPRINTS, Fingerprint
from sqb.upkeep.after_build import tidy


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[SmallLake]:
    made = SmallLake(tmp_path, keep_snapshots=2, reader_grace="1m")
    yield made
    made.close()


def grown(lake: SmallLake, count: int = 6, name: str = "t") -> list[int]:
    made = []
    for turn in range(count):
        head = lake.build(name, [turn], record=turn == count - 1)
        assert head is not None
        made.append(read_facts(head.location).snapshot_id or 0)
    return made


def tidied(lake: SmallLake, *names: str, later: float = 3600) -> list[str]:
    """Tidy as if it were later: the grace is over."""
    from unittest.mock import patch

    now = time.time() + later
    with patch("sqb.upkeep.census.wall_clock", lambda: now):
        return tidy(lake.upkeep(), [lake.head(name) for name in names], ["dev"], "r99")


def test_a_table_that_was_rebuilt_often_keeps_its_newest_snapshots(lake: SmallLake) -> None:
    made = grown(lake)
    assert tidied(lake, "t") == []
    kept = lake.snapshots("t")
    assert made[-1] in kept
    assert len(kept) == 2
    assert lake.read("t") == [5]


def test_what_takes_too_long_is_left_to_the_next_build(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown(lake)
    now = time.time() + 3600
    monkeypatch.setattr("sqb.upkeep.census.wall_clock", lambda: now)
    before = lake.snapshots("t")
    assert tidy(lake.upkeep(), [lake.head("t")], ["dev"], "r99", seconds=-1) == []
    assert lake.snapshots("t") == before
    assert tidy(lake.upkeep(), [lake.head("t")], ["dev"], "r99", seconds=60) == []
    assert len(lake.snapshots("t")) == 2


def test_within_the_grace_nothing_goes(lake: SmallLake) -> None:
    grown(lake)
    head, files = lake.head("t"), lake.files()
    assert tidied(lake, "t", later=0) == []
    assert (lake.head("t"), lake.files()) == (head, files)


def test_what_a_reader_recorded_stays_whatever_schema_it_is_in(lake: SmallLake) -> None:
    made = grown(lake)
    lake.catalog.ensure_namespace("prod")
    lake.build("reader", [1], schema="prod", pins={"t": made[1]})
    tidied(lake, "t")
    assert made[1] in lake.snapshots("t")
    assert lake.read("t", made[1]) == [1]
    assert len(lake.snapshots("t")) == 3


def test_what_a_running_build_may_read_stays(lake: SmallLake) -> None:
    grown(lake)
    head = lake.head("t")
    with Lease(lake.catalog, ["other__sqb_stage"], "busy", ttl=7200):
        tidied(lake, "t", later=3600)
        assert lake.head("t") == head


def test_tags_and_clones_stay_readable(lake: SmallLake) -> None:
    grown(lake, 2)
    first = lake.clone("t", "tagged")
    grown(lake, 2)
    second = lake.clone("t", "untagged", tag=False)
    grown(lake, 4)
    tidied(lake, "t")
    assert {first, second} <= set(lake.snapshots("t"))
    assert lake.read("tagged", schema="clones") == [1]
    assert lake.read("untagged", schema="clones") == [1]


def test_tables_of_others_are_not_touched(lake: SmallLake) -> None:
    table = lake.ice.create_table("dev.foreign", numbers([]).schema)
    for turn in range(6):
        table.append(numbers([turn]))
    # a copied stamp does not make it ours
    grown(lake, 1)
    stamp = lake.document("t")["properties"]["sqb.stamp"]
    with table.transaction() as change:
        change.set_properties({"sqb.stamp": stamp})
    assert len(lake.snapshots("foreign")) == 6
    tidied(lake, "foreign")
    assert len(lake.snapshots("foreign")) == 6


def test_state_tables_are_packed_and_expired(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqb.upkeep.state_tables._FILES", 11)
    for turn in range(12):
        lake.store.append([Fingerprint(of(STAMP, ts=turn), "lake", "dev", "t", "d")], [], {})
    before = len(lake.store.history(["dev"]))
    assert tidied(lake) == []
    document = lake.document(FINGERPRINTS)
    summary = document["snapshots"][-1]["summary"]
    assert summary["total-data-files"] == "1"
    assert len(document["snapshots"]) <= 8
    assert len(lake.store.history(["dev"])) == before == 12


def test_trouble_is_a_note_and_the_off_switch_works(lake: SmallLake) -> None:
    grown(lake)
    broken = lake.document("t")["snapshots"][-1]["manifest-list"]
    Path(broken.removeprefix("file://")).unlink()
    files = lake.files()
    notes = tidied(lake, "t")
    assert len(notes) == 1
    assert notes[0].startswith("dev.t: upkeep left something for later")
    lake.settings = msgspec.structs.replace(lake.settings, automatic=False)
    assert tidied(lake, "t") == []
    assert lake.files() == files
