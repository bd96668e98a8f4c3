"""The janitor shows before it removes, and removes nothing that anyone needs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from records import STAMP, of
from small_lakes import SmallLake, numbers

from sqb.lake.facts import FactsCache
from sqb.lake.metadata import read_facts
from sqb.lake.publish import publish_view
from sqb.lake.staging import Lease, stage
from sqb.state.record import Consumed, encode
from sqb.state.tables import FINGERPRINTS, Fingerprint
from sqb.upkeep.janitor import Finding, Scope, Survey, remove, survey

DAY = 86_400


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[SmallLake]:
    made = SmallLake(tmp_path, reader_grace="1m")
    yield made
    made.close()


def scope(*nodes: str, now: float | None = None, **more: Any) -> Scope:
    places = frozenset(("dev", name) for name in nodes)
    at = time.time() if now is None else now
    return Scope("small/dev", ("dev",), places, frozenset(more.get("disabled", ())), at)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> float:
    """Both grace and retention are over."""
    now = time.time() + 31 * DAY
    monkeypatch.setattr("sqb.upkeep.census.wall_clock", lambda: now)
    return now


def found(lake: SmallLake, *nodes: str, **more: Any) -> dict[str, dict[str, Finding]]:
    out: dict[str, dict[str, Finding]] = {}
    for finding in survey(lake.upkeep(), scope(*nodes, **more)).findings:
        out.setdefault(finding.kind, {})[finding.relation] = finding
    return out


def cleaned(lake: SmallLake, *nodes: str, **more: Any) -> Survey:
    here = scope(*nodes, **more)
    return remove(lake.upkeep(), here, survey(lake.upkeep(), here), "j1")


def aged(lake: SmallLake, days: float) -> None:
    """Make all files of the lake older."""
    for path in lake.files():
        changed = path.stat().st_mtime - days * DAY
        os.utime(path, (changed, changed))


def test_a_young_lake_has_nothing_to_remove(lake: SmallLake) -> None:
    lake.build("t", [1])
    lake.build("t", [2])
    assert found(lake, "t") == {}
    assert cleaned(lake, "t").findings == ()


def test_snapshots_beyond_the_retention_go(lake: SmallLake, later: float) -> None:
    for turn in range(4):
        lake.build("t", [turn])
    shown = found(lake, "t", now=later)["snapshots"]["dev.t"]
    before = lake.files()
    removed = [f for f in cleaned(lake, "t", now=later).findings if f.relation == "dev.t"]
    assert lake.read("t") == [3]
    assert len(lake.snapshots("t")) == 1
    assert [(f.kind, f.count, f.files, f.bytes) for f in removed] == [
        ("snapshots", shown.count, shown.files, shown.bytes)
    ]
    assert shown.files <= len(before - lake.files()) + 1
    assert shown.bytes > 0


def test_within_the_retention_they_stay(lake: SmallLake, later: float) -> None:
    for turn in range(4):
        lake.build("t", [turn])
    assert "snapshots" not in found(lake, "t", now=later - 2 * DAY)
    assert "snapshots" in found(lake, "t", now=later)


def test_old_state_rows_go_but_the_latest_of_each_node(lake: SmallLake, later: float) -> None:
    for ts in (1, 2, 3):
        lake.store.append([Fingerprint(of(STAMP, ts=ts), "lake", "dev", "t", "d")], [], {})
    assert found(lake, now=later)["state_rows"][f"dev.{FINGERPRINTS}"].count == 2
    removed = {f.kind: f.count for f in cleaned(lake, now=later).findings}
    assert removed["state_rows"] == 2
    assert len(lake.store.history(["dev"])) == 1


def test_a_removed_model_leaves_no_file(lake: SmallLake) -> None:
    lake.build("t", [1])
    lake.build("old", [1])
    lake.build("old", [2])
    shown = found(lake, "t")
    assert list(shown) == ["relation"]
    assert list(shown["relation"]) == ["dev.old"]
    (removed,) = cleaned(lake, "t").findings
    assert (removed.kind, removed.relation) == ("relation", "dev.old")
    assert lake.catalog.head("dev", "old") is None
    assert not (Path(lake.catalog.warehouse) / "dev" / "old").exists()
    assert lake.read("t") == [1]


@pytest.mark.parametrize("why", ["other owner", "disabled", "excluded", "clone", "busy", "foreign"])
def test_a_relation_that_is_not_ours_to_drop_stays(lake: SmallLake, why: str) -> None:
    lake.build("old", [1])
    here = scope()
    if why == "other owner":
        here = msgspec.structs.replace(here, owner="small/dev_anna")
    elif why == "disabled":
        here = scope(disabled=["old"])
    elif why == "excluded":
        lake.settings = msgspec.structs.replace(lake.settings, exclude_patterns=("dev.o*",))
    elif why == "clone":
        lake.clone("old", "copy")
    elif why == "foreign":
        lake.ice.create_table("dev.theirs", numbers([]).schema).append(numbers([1]))
        here = scope("old")
    head = lake.head("old")
    if why == "busy":
        with Lease(lake.catalog, ["other__sqb_stage"], "busy"):
            assert not survey(lake.upkeep(), here).findings
    else:
        assert [f for f in survey(lake.upkeep(), here).findings if f.kind == "relation"] == []
    assert lake.head("old") == head


def test_a_relation_that_something_reads_stays(lake: SmallLake) -> None:
    for name in ("a", "b", "c"):
        lake.build(name, [1])
    # b goes with its reader c; a stays, because a view of someone else reads it
    schema = {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    publish_view(
        lake.catalog,
        namespace="dev",
        name="v",
        base=None,
        run_id="r1",
        sql="SELECT id FROM `lake`.`dev`.`a`",
        schema=schema,
        properties={},
        make_stamp=lambda _: "",
    )
    facts = read_facts(lake.head("c").location)
    reader = of(STAMP, node="c", uuid=facts.uuid, inputs=(Consumed("b", "", "", "", "dev.b"),))
    with lake.ice.load_table("dev.c").transaction() as change:
        change.set_properties({"sqb.stamp": encode(of(reader, owner="small/dev"))})
    seen = survey(lake.upkeep(), scope())
    assert {f.relation for f in seen.findings} == {"dev.b", "dev.c"}
    assert [(k.place, k.why) for k in seen.kept] == [("dev.a", "the view dev.v reads it")]
    seen = survey(lake.upkeep(), scope("c"))
    assert not seen.findings
    assert ("dev.b", "dev.c reads it") in [(k.place, k.why) for k in seen.kept]


def test_a_relation_that_was_read_once_goes(lake: SmallLake) -> None:
    for name in ("b", "c"):
        lake.build(name, [1], record=False)
    facts = read_facts(lake.head("c").location)
    reader = of(STAMP, node="c", uuid=facts.uuid, snapshot=facts.snapshot_id, owner="small/dev")
    reading = of(reader, inputs=(Consumed("b", "", "", "", "dev.b"),))
    with lake.ice.load_table("dev.c").transaction() as change:
        change.set_properties({"sqb.stamp": encode(reading)})
    assert not survey(lake.upkeep(), scope("c")).findings
    # a later run read something else, and got the same rows
    lake.store.append([Fingerprint(of(reader, ts=200), "lake", "dev", "c", "d")], [], {})
    assert list(found(lake, "c")["relation"]) == ["dev.b"]


@pytest.mark.parametrize(
    ("sql", "stays"),
    [
        ("SELECT id FROM a", True),
        ("SELECT id FROM `A` JOIN b", True),
        ("SELECT id FROM other.a", False),
        ("SELECT aa FROM b", False),
    ],
)
def test_a_view_that_names_no_schema_may_read_it(lake: SmallLake, sql: str, stays: bool) -> None:
    lake.build("a", [1])
    publish_view(
        lake.catalog,
        namespace="dev",
        name="v",
        base=None,
        run_id="r1",
        sql=sql,
        schema={"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]},
        properties={},
        make_stamp=lambda _: "",
    )
    assert [f.relation for f in survey(lake.upkeep(), scope()).findings] == ["dev.a"][stays:]


def test_staged_tables_of_a_dead_build_go(lake: SmallLake) -> None:
    lake.build("t", [1])
    before = lake.files()
    staged = stage(lake.catalog, "dev", "t", "dead")
    lake.ice.load_table(f"{staged.namespace}.{staged.name}").append(numbers([2]))
    written = lake.files() - before
    shown = found(lake, "t")["staged"]["dev__sqb_stage.t__dead"]
    assert shown.files == len(written)
    assert [f.kind for f in cleaned(lake, "t").findings] == ["staged"]
    assert lake.files() == before


def orphan(lake: SmallLake, name: str, folder: str = "data") -> Path:
    path = Path(lake.catalog.default_location("dev", name)) / folder / "lost.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"lost")
    return path


def test_files_that_nothing_names_go_when_they_are_old(lake: SmallLake) -> None:
    lake.build("t", [1])
    lake.build("t", [2])
    lost = [orphan(lake, "t"), orphan(lake, "t", "metadata"), orphan(lake, "never_built")]
    stranger = orphan(lake, "stranger")
    elsewhere = orphan(lake, "t", "notes")
    kept = lake.files() - set(lost)
    assert "orphans" not in found(lake, "t", "never_built")
    aged(lake, 4)
    shown = found(lake, "t", "never_built")["orphans"]
    assert {r: (f.count, f.bytes) for r, f in shown.items()} == {
        "dev.t": (2, 8),
        "dev.never_built": (1, 4),
    }
    cleaned(lake, "t", "never_built")
    assert lake.files() == kept
    assert {stranger, elsewhere} <= kept
    assert not lost[2].parent.parent.exists()


def test_what_a_running_build_wrote_is_no_orphan(lake: SmallLake) -> None:
    lake.build("t", [1])
    orphan(lake, "t")
    aged(lake, 4)
    began = time.time() - 5 * DAY
    lease = Lease(lake.catalog, ["dev__sqb_stage"], "long")
    lease._began = began
    with lease:
        assert "orphans" not in found(lake, "t")
    assert "orphans" in found(lake, "t")


def test_files_of_a_clone_are_no_orphans_of_its_origin(lake: SmallLake, later: float) -> None:
    lake.build("t", [1])
    lake.clone("t", "copy", tag=False)
    lake.ice.load_table("clones.copy").append(numbers([2]))
    lake.build("t", [3])
    aged(lake, 10)
    cleaned(lake, "t", now=later)
    assert lake.read("t") == [3]


def test_only_what_was_shown_goes(lake: SmallLake, later: float) -> None:
    lake.build("t", [1])
    lake.build("t", [2])
    seen = survey(lake.upkeep(), scope("t", now=later))
    lake.build("t", [3])
    lake.build("u", [3])
    remove(lake.upkeep(), scope("t", now=later), seen, "j1")
    assert lake.catalog.head("dev", "u") is not None
    for snapshot in lake.snapshots("t"):
        lake.read("t", snapshot)
    assert len(lake.snapshots("t")) > 1


def test_a_crash_of_an_expiry_is_mended_by_the_search_for_orphans(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqb.lake import expiry

    for turn in range(3):
        lake.build("t", [turn])
    gone = [i for i in lake.snapshots("t") if i != lake.document("t")["current-snapshot-id"]]
    with monkeypatch.context() as patch:
        patch.setattr(expiry, "remove_files", lambda _: (0, 0))
        expiry.expire(lake.catalog, lake.head("t"), gone, [], FactsCache(None))
    aged(lake, 4)
    assert found(lake, "t")["orphans"]["dev.t"].count > 0
    cleaned(lake, "t")
    assert "orphans" not in found(lake, "t")
    assert lake.read("t") == [2]


def test_an_alias_is_not_taken_for_a_table_of_its_own(lake: SmallLake, later: float) -> None:
    for turn in range(3):
        lake.build("t", [turn])
    staged = stage(lake.catalog, "dev", "t", "dead")
    shown = found(lake, "t", now=later)
    place = f"{staged.namespace}.{staged.name}"
    assert [kind for kind, relations in shown.items() if place in relations] == ["staged"]
