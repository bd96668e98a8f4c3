"""Snapshots are taken out by one commit, then the files that only they reach."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from small_lakes import SmallLake, numbers, rows_at

from sqb.lake.catalog import Point
from sqb.lake.expiry import expire
from sqb.lake.facts import FactsCache
from sqb.lake.io import normalised
from sqb.lake.metadata import read_facts
from sqb.lake.staging import stage


def reachable(lake: SmallLake) -> set[Path]:
    """Every file that a row of the catalog leads to, asked of pyiceberg."""
    from pyiceberg.table import StaticTable

    found: set[str] = set()
    for head in lake.catalog.heads().values():
        table = StaticTable.from_metadata(head.location)
        found |= {head.location, *(e.metadata_file for e in table.metadata.metadata_log)}
        for snapshot in table.metadata.snapshots:
            found.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                found.add(manifest.manifest_path)
                for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
                    found.add(entry.data_file.file_path)
    return {Path(normalised(file)) for file in found}


def grown(lake: SmallLake, count: int = 5) -> list[int]:
    """A table that was rebuilt a few times, then appended to; its snapshots, oldest first."""
    made = []
    for turn in range(count):
        head = lake.build("t", [turn, turn + 1], append=turn == count - 1)
        assert head is not None
        made.append(read_facts(head.location).snapshot_id or 0)
    return made


def test_only_what_the_removed_snapshots_alone_reach_is_deleted(lake: SmallLake) -> None:
    made = grown(lake)
    before = lake.files()
    kept = {i: lake.read("t", i) for i in made[2:]}
    gone = [i for i in lake.snapshots("t") if i not in made[2:]]
    done = expire(lake.catalog, lake.head("t"), gone, [], FactsCache(None))
    assert done is not None
    assert lake.snapshots("t") == made[2:]
    assert {i: lake.read("t", i) for i in made[2:]} == kept
    assert lake.files() == reachable(lake)
    assert done.files == len(before - lake.files()) > 0
    assert done.bytes > 0
    # and life goes on
    lake.build("t", [9])
    lake.ice.load_table("dev.t").append(numbers([10]))
    assert lake.read("t") == [9, 10]


def test_a_file_that_outlived_its_snapshot_goes_with_the_last_that_reads_it(
    lake: SmallLake,
) -> None:
    lake.build("t", [1])
    lake.build("t", [2], append=True)
    lake.build("t", [3])
    first, second, *rest = lake.snapshots("t")
    for gone in (first, second, rest[0]):
        if gone != lake.document("t")["current-snapshot-id"]:
            assert expire(lake.catalog, lake.head("t"), [gone], [], FactsCache(None))
    assert lake.files() == reachable(lake)
    assert lake.read("t") == [3]


def test_old_metadata_files_go_unless_a_row_names_them(lake: SmallLake) -> None:
    grown(lake)
    log = [e["metadata-file"] for e in lake.document("t")["metadata-log"]]
    lake.catalog.commit([Point("dev__sqb_stage", "t__x", "table", log[0], expected=None)])
    done = expire(lake.catalog, lake.head("t"), [], log[:3], FactsCache(None))
    assert done is not None
    assert [Path(file).exists() for file in log[:4]] == [True, False, False, True]


def test_a_table_that_moved_is_left_for_later(lake: SmallLake) -> None:
    made = grown(lake)
    old = lake.head("t")
    lake.build("t", [7])
    before = lake.files()
    assert expire(lake.catalog, old, made[:1], [], FactsCache(None)) is None
    assert lake.files() == before


def test_where_what_stays_cannot_be_read_nothing_happens(lake: SmallLake) -> None:
    made = grown(lake)
    current = lake.document("t")["snapshots"][-1]["manifest-list"]
    Path(normalised(current)).unlink()
    before, head = lake.files(), lake.head("t")
    with pytest.raises(FileNotFoundError):
        expire(lake.catalog, head, made[:1], [], FactsCache(None))
    assert lake.files() == before
    assert lake.head("t") == head


def test_a_build_that_staged_before_publishes_after_an_expiry(lake: SmallLake) -> None:
    made = grown(lake)
    staged = stage(lake.catalog, "dev", "t", "other")
    alias = lake.ice.load_table(f"{staged.namespace}.{staged.name}")
    alias.append(numbers([50]))
    expire(lake.catalog, lake.head("t"), made[:3], [], FactsCache(None))
    assert alias.refresh().scan().to_arrow()["id"].to_pylist().count(50) == 1
    from sqb.lake.publish import publish_table

    publish_table(
        lake.catalog,
        namespace="dev",
        table="t",
        staged=staged,
        properties={},
        make_stamp=lambda _: "stamp",
    )
    assert 50 in lake.read("t")
    assert not set(made[:3]) & set(lake.snapshots("t"))
    for snapshot in lake.snapshots("t"):
        lake.read("t", snapshot)


CRASH = """
import sys
from sqb.lake.catalog import SqlCatalog
from sqb.lake.expiry import expire
from sqb.lake.facts import FactsCache
catalog = SqlCatalog("lake", sys.argv[1], sys.argv[2])
expire(catalog, catalog.head("dev", "t"), [int(i) for i in sys.argv[3:]], [], FactsCache(None))
"""


def test_a_crash_after_the_commit_leaves_only_files_that_nothing_names(lake: SmallLake) -> None:
    made = grown(lake)
    gone = [i for i in lake.snapshots("t") if i not in made[2:]]
    before = lake.files()
    arguments = [lake.catalog.uri, lake.catalog.warehouse, *map(str, gone)]
    done = subprocess.run(
        [sys.executable, "-c", CRASH, *arguments],
        env={**os.environ, "SQB_FAILPOINT": "expire:1"},
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert before < lake.files()
    assert reachable(lake) < lake.files()
    for snapshot in lake.snapshots("t"):
        lake.read("t", snapshot)


def test_a_publish_dates_its_snapshot_by_the_swap(lake: SmallLake) -> None:
    lake.build("t", [1])
    lake.build("t", [2], lag=0.3)
    document = lake.document("t")
    log = document["snapshot-log"]
    written = {s["snapshot-id"]: s["timestamp-ms"] for s in document["snapshots"]}
    assert len(log) == 2
    assert log[-1]["timestamp-ms"] >= written[log[-1]["snapshot-id"]] + 250
    assert log[-1]["timestamp-ms"] == document["last-updated-ms"]


def test_two_at_once_remove_everything_once(lake: SmallLake) -> None:
    made = grown(lake, 8)
    halves = (made[:4], made[:6])

    def work(ids: list[int]) -> None:
        for _ in range(20):
            if expire(lake.catalog, lake.head("t"), ids, [], FactsCache(None)) is not None:
                return

    threads = [threading.Thread(target=work, args=(half,)) for half in halves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not set(made[:6]) & set(lake.snapshots("t"))
    assert rows_at(lake.head("t").location) == lake.read("t")
    assert reachable(lake) <= lake.files()
