"""State tables pack themselves; no row that a build appends is ever lost."""

from __future__ import annotations

import threading

import pytest
from records import STAMP, of
from small_lakes import SmallLake

from sqb.lake.facts import FactsCache
from sqb.state.store import StateStore
from sqb.state.tables import FINGERPRINTS, Fingerprint
from sqb.upkeep.state_tables import is_scattered, old_rows, pack


def row(name: str, ts: int) -> Fingerprint:
    return Fingerprint(of(STAMP, node=name, ts=ts), "lake", "dev", name, f"text {ts}")


def append(lake: SmallLake, *rows: tuple[str, int]) -> None:
    for name, ts in rows:
        lake.store.append([row(name, ts)], [], {})


def packed(lake: SmallLake, **options: int) -> bool:
    head = lake.head(FINGERPRINTS)
    return pack(lake.catalog, lake.store, FactsCache(None), head, "p1", **options) is not None


def history(lake: SmallLake) -> list[tuple[str, str]]:
    return [(r["node_name"], r["ts"].strftime("%f")) for r in lake.store.history(["dev"])]


@pytest.mark.parametrize(
    ("files", "size", "expected"),
    [(50, 0, False), (51, 0, True), (51, 8 << 20, False), (53, 8 << 20, True)],
)
def test_a_large_table_is_packed_less_often(files: int, size: int, expected: bool) -> None:
    summary = {"total-data-files": str(files), "total-files-size": str(size)}
    document = {
        "current-snapshot-id": 7,
        "snapshots": [{"snapshot-id": 7, "summary": summary}],
    }
    assert is_scattered(document) is expected


def test_packing_keeps_every_row_in_one_file(lake: SmallLake) -> None:
    append(lake, ("a", 1), ("b", 2), ("a", 3))
    before = history(lake)
    assert packed(lake)
    assert history(lake) == before
    table = lake.ice.load_table(f"dev.{FINGERPRINTS}")
    assert len(list(table.scan().plan_files())) == 1
    assert lake.catalog.heads(["dev__sqb_stage"]) == {}
    append(lake, ("c", 4))
    assert [name for name, _ in history(lake)] == ["a", "b", "a", "c"]


def test_what_is_known_of_a_packed_table_is_not_read_again(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(lake, ("a", 1), ("a", 2))
    assert packed(lake)
    monkeypatch.setattr(StateStore, "_scan", lambda *_: pytest.fail("read again"))
    latest = lake.store.latest(lake.catalog.heads(), ["dev"])
    assert {name: record.ts for name, record in latest.items()} == {"a": 2}


def test_trimming_keeps_the_latest_row_of_each_node(lake: SmallLake) -> None:
    append(lake, ("a", 1), ("b", 2), ("a", 3), ("b", 40), ("b", 50))
    assert old_rows(lake.store, lake.head(FINGERPRINTS), 40) == 2
    assert packed(lake, older_than_us=40)
    assert history(lake) == [("a", "000003"), ("b", "000040"), ("b", "000050")]
    assert old_rows(lake.store, lake.head(FINGERPRINTS), 40) == 0


def test_rows_that_are_appended_meanwhile_stay(lake: SmallLake) -> None:
    append(lake, *((f"n{i}", i) for i in range(5)))
    stop = threading.Event()

    def appending(which: int) -> None:
        store = StateStore("lake", lake.catalog.uri, lake.catalog.warehouse, None)
        for turn in range(5):
            store.append([row(f"t{which}_{turn}", 100 + turn)], [], {})
        store.close()

    def packing() -> None:
        while not stop.is_set():
            packed(lake)

    packer = threading.Thread(target=packing)
    writers = [threading.Thread(target=appending, args=(i,)) for i in range(2)]
    packer.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    stop.set()
    packer.join()
    expected = {f"n{i}" for i in range(5)} | {f"t{w}_{t}" for w in range(2) for t in range(5)}
    assert sorted(name for name, _ in history(lake)) == sorted(expected)
