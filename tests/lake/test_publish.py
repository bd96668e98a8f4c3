from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqb.errors import SqbError
from sqb.lake.catalog import Drop, Head, Point, SqlCatalog
from sqb.lake.metadata import MANAGED, STAMP, TableFacts, read_document, read_facts
from sqb.lake.publish import Overtaken, publish_properties, publish_table, publish_view
from sqb.lake.staging import Staged, stage

STAGE = "db__sqb_stage"
Rows = Callable[..., Any]
Ids = Callable[[str], list[int]]


def stamp(facts: TableFacts) -> str:
    return json.dumps({"snapshot": facts.snapshot_id, "uuid": facts.uuid})


def publish(lake: SqlCatalog, staged: Staged, table: str = "t", **options: Any) -> Head:
    options = {"properties": {"sqb.definition": "d"}, "make_stamp": stamp, **options}
    return publish_table(lake, namespace="db", table=table, staged=staged, **options)


def staged_with(lake: SqlCatalog, ice: Any, data: Any, run_id: str = "run1") -> Staged:
    staged = stage(lake, "db", "t", run_id)
    ice.load_table(f"{STAGE}.{staged.name}").append(data)
    return staged


def test_readers_see_nothing_before_and_all_after(
    lake: SqlCatalog, ice: Any, target: Head, rows: Rows, ids: Ids
) -> None:
    staged = staged_with(lake, ice, rows(3))
    assert ids("db.t") == [1, 2]
    head = publish(lake, staged)
    assert lake.head("db", "t") == head
    assert lake.heads([STAGE]) == {}
    assert ids("db.t") == [1, 2, 3]
    facts = read_facts(head.location)
    assert json.loads(facts.stamp or "") == {"snapshot": facts.snapshot_id, "uuid": facts.uuid}
    log = [e["metadata-file"] for e in read_document(head.location)["metadata-log"]]
    assert log[-2] == target.location
    ice.load_table("db.t").append(rows(4))
    assert ids("db.t") == [1, 2, 3, 4]
    after = lake.head("db", "t")
    assert after is not None
    assert read_facts(after.location).stamp == facts.stamp


def test_a_first_build_makes_the_name(lake: SqlCatalog, ice: Any, rows: Rows, ids: Ids) -> None:
    staged = stage(lake, "db", "t", "run1")
    location = lake.default_location("db", "t")
    ice.create_table(f"{STAGE}.{staged.name}", rows().schema, location=location).append(rows(1))
    head = publish(lake, staged)
    assert ids("db.t") == [1]
    assert Path(head.location).parent == Path(location, "metadata")


def test_a_table_takes_the_place_of_a_view_and_back(
    lake: SqlCatalog, ice: Any, rows: Rows, ids: Ids
) -> None:
    options: dict[str, Any] = {"properties": {}, "make_stamp": stamp}
    schema = {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
    view = publish_view(
        lake, namespace="db", name="t", base=None, run_id="r1", sql="SELECT 1L AS id",
        schema=schema, **options,
    )  # fmt: skip
    assert lake.head("db", "t") == view
    staged = stage(lake, "db", "t", "run1")
    ice.create_table(f"{STAGE}.{staged.name}", rows().schema).append(rows(1))
    table = publish(lake, staged)
    assert ids("db.t") == [1]
    again = publish_view(
        lake, namespace="db", name="t", base=table, run_id="r2", sql="SELECT 2L AS id",
        schema=schema, **options,
    )  # fmt: skip
    assert lake.heads() == {("db", "t"): again}
    assert read_facts(again.location).sql == "SELECT 2L AS id"


@pytest.mark.usefixtures("target")
def test_wanted_properties_rule_and_foreign_ones_stay(lake: SqlCatalog, ice: Any) -> None:
    with ice.load_table("db.t").transaction() as change:
        change.set_properties({"foreign": "1", "mine": "theirs"})
    for run, wanted in (("r1", {"mine": "a", "gone": "x"}), ("r2", {"mine": "b"})):
        staged = stage(lake, "db", "t", run)
        head = publish(lake, staged, properties={**wanted, "format-version": "2"})
    facts = read_facts(head.location)
    assert facts.properties == {"foreign": "1", "mine": "b", MANAGED: '["mine"]'}


def test_deleting_metadata_after_commits_is_never_set(lake: SqlCatalog, target: Head) -> None:
    staged = stage(lake, "db", "t", "run1")
    with pytest.raises(SqbError):
        publish(lake, staged, properties={"write.metadata.delete-after-commit.enabled": "true"})
    assert lake.head("db", "t") == target


@pytest.mark.usefixtures("target")
def test_the_sort_order_is_set_and_taken_back(lake: SqlCatalog, ice: Any) -> None:
    wanted: list[tuple[str, ...]] = [
        ("id DESC NULLS LAST", "truncate(4, s) ASC NULLS FIRST"),
        ("s ASC NULLS FIRST",),
        (),
        ("s ASC NULLS FIRST",),
    ]
    for run, order in enumerate(wanted):
        head = publish(lake, stage(lake, "db", "t", f"r{run}"), sort_order=order)
        assert read_facts(head.location).sort_order == order
    assert len(read_document(head.location)["sort-orders"]) == 3
    assert len(ice.load_table("db.t").sort_order().fields) == 1
    with pytest.raises(SqbError, match="nope") as caught:
        publish(lake, stage(lake, "db", "t", "r9"), sort_order=("nope ASC",))
    assert caught.value.code == "P003"


@pytest.mark.usefixtures("target")
def test_a_foreign_write_wins_and_nothing_of_the_loser_is_seen(
    *, lake: SqlCatalog, ice: Any, rows: Rows, ids: Ids, files: Callable[[], set[str]]
) -> None:
    staged = staged_with(lake, ice, rows(3))
    ice.load_table("db.t").append(rows(9))
    winner = lake.head("db", "t")
    before = files()
    with pytest.raises(Overtaken) as caught:
        publish(lake, staged)
    assert caught.value.winner == winner == lake.head("db", "t")
    assert ids("db.t") == [1, 2, 9]
    assert files() == before
    assert lake.head(STAGE, staged.name) is not None


def test_a_dropped_target_and_a_taken_name_are_overtaken_too(
    lake: SqlCatalog, ice: Any, target: Head, rows: Rows
) -> None:
    staged = staged_with(lake, ice, rows(3))
    lake.commit([Drop("db", "t", target)])
    with pytest.raises(Overtaken) as caught:
        publish(lake, staged)
    assert caught.value.winner is None
    first = stage(lake, "db", "t", "run2")
    ice.create_table(f"{STAGE}.{first.name}", rows().schema)
    lake.commit([Point("db", "t", "table", target.location, expected=None)])
    with pytest.raises(Overtaken) as caught:
        publish(lake, first)
    assert caught.value.winner == target


def test_an_alias_that_was_cleaned_up_publishes_nothing(
    lake: SqlCatalog, ice: Any, target: Head, rows: Rows
) -> None:
    staged = staged_with(lake, ice, rows(3))
    alias = lake.head(STAGE, staged.name)
    assert alias is not None

    def swept(facts: TableFacts) -> str:
        lake.commit([Drop(STAGE, staged.name, alias)])
        return stamp(facts)

    for make in (swept, stamp):
        with pytest.raises(SqbError, match="lease"):
            publish(lake, staged, make_stamp=make)
    assert lake.head("db", "t") == target


@pytest.mark.usefixtures("target")
def test_what_moved_beside_the_data_is_kept(
    lake: SqlCatalog, ice: Any, rows: Rows, ids: Ids
) -> None:
    table = ice.load_table("db.t")
    first = table.current_snapshot().snapshot_id
    table.append(rows(3))
    table.manage_snapshots().create_tag(first, "old").create_tag(first, "gone").commit()
    table.append(rows(4))
    second = table.snapshots()[1].snapshot_id
    staged = staged_with(lake, ice, rows(5))
    table = ice.load_table("db.t")
    main = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_tag(main, "new").remove_tag("gone").commit()
    with table.transaction() as change:
        change.set_properties({"foreign": "1"})
    table.maintenance.expire_snapshots().by_id(second).commit()
    moved = lake.head("db", "t")
    assert moved is not None
    head = publish(lake, staged)
    assert ids("db.t") == [1, 2, 3, 4, 5]
    after = ice.load_table("db.t")
    assert set(after.metadata.refs) == {"main", "old", "new"}
    assert second not in {s.snapshot_id for s in after.snapshots()}
    assert second not in {e.snapshot_id for e in after.history()}
    assert read_facts(head.location).properties["foreign"] == "1"
    log = [e["metadata-file"] for e in read_document(head.location)["metadata-log"]]
    assert log[-1] == moved.location
    assert len(log) == len(set(log))
    after.append(rows(6))
    assert ids("db.t") == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("change", ["schema", "branch"])
@pytest.mark.usefixtures("target")
def test_a_changed_schema_or_a_new_branch_commit_is_overtaken(
    lake: SqlCatalog, ice: Any, rows: Rows, change: str
) -> None:
    staged = staged_with(lake, ice, rows(3))
    table = ice.load_table("db.t")
    if change == "schema":
        from pyiceberg.types import StringType

        with table.update_schema() as update:
            update.add_column("more", StringType())
    else:
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
        table.append(rows(7), branch="b")
    with pytest.raises(Overtaken):
        publish(lake, staged)


def test_properties_are_published_without_touching_rows(
    lake: SqlCatalog, ice: Any, target: Head, rows: Rows, ids: Ids
) -> None:
    head = publish_properties(
        lake, namespace="db", table="t", base=target, run_id="run1",
        properties={"k": "v"}, make_stamp=lambda _: "new",
    )  # fmt: skip
    facts = read_facts(head.location)
    assert (facts.stamp, facts.properties["k"]) == ("new", "v")
    assert facts.snapshot_id == read_facts(target.location).snapshot_id
    assert ids("db.t") == [1, 2]
    ice.load_table("db.t").append(rows(3))
    with pytest.raises(Overtaken):
        publish_properties(
            lake, namespace="db", table="t", base=head, run_id="run2",
            properties={}, make_stamp=lambda _: "newer",
        )  # fmt: skip
    assert lake.heads([STAGE]) == {}


@pytest.mark.usefixtures("target")
def test_of_two_builds_one_publishes_and_the_other_is_told(
    lake: SqlCatalog, ice: Any, rows: Rows, ids: Ids
) -> None:
    staged = [staged_with(lake, ice, rows(10 + i), f"run{i}") for i in range(4)]
    gate = threading.Barrier(len(staged))
    results: list[Head | Overtaken] = []

    def build(mine: Staged) -> None:
        gate.wait()
        try:
            results.append(publish(lake, mine))
        except Overtaken as error:
            results.append(error)

    threads = [threading.Thread(target=build, args=[s]) for s in staged]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    heads = [r for r in results if isinstance(r, Head)]
    assert heads == [lake.head("db", "t")]
    assert len(results) == 4
    assert len(ids("db.t")) == 3


def test_a_view_whose_properties_moved_is_replaced_on_the_new_head(lake: SqlCatalog) -> None:
    schema = {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}

    def build(base: Head | None, run_id: str, sql: str, make: Any = stamp, **wanted: str) -> Head:
        return publish_view(
            lake, namespace="db", name="v", base=base, run_id=run_id, sql=sql,
            schema=schema, properties=wanted, make_stamp=make,
        )  # fmt: skip

    first = build(None, "r1", "SELECT 1L AS id")
    # Foreign properties on the same version: a view is replaced on top of them.
    document = read_document(first.location)
    document["properties"]["foreign"] = "1"
    other = str(Path(first.location).with_name("00001-x.metadata.json"))
    Path(other).write_text(json.dumps(document))
    lake.commit([Point("db", "v", "view", other, expected=first)])
    second = build(first, "r2", "SELECT 2L AS id", k="v")
    facts = read_facts(second.location)
    assert (facts.sql, facts.properties["foreign"]) == ("SELECT 2L AS id", "1")
    assert facts.stamp is not None
    assert facts.uuid == read_facts(first.location).uuid
    # A view that someone else replaced meanwhile wins.
    with pytest.raises(Overtaken) as caught:
        build(first, "r3", "SELECT 3L AS id")
    assert caught.value.winner == second
    assert lake.heads() == {("db", "v"): second}
    assert STAMP not in facts.properties
