"""The publish protocol on a real REST catalog, in each of its modes; pyiceberg does the writing."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Iterator
from typing import Any

import pytest
from proxy import RULES, proxy

from sqb.errors import SqbError
from sqb.lake import rest_cleanup, rest_lake, rest_publish
from sqb.lake.catalog import Head
from sqb.lake.facts import FactsCache
from sqb.lake.iceberg import open_iceberg
from sqb.lake.io import local_path, normalised
from sqb.lake.metadata import MANAGED, TableFacts
from sqb.lake.publish import Overtaken
from sqb.lake.rest_client import RestClient, UnknownOutcome
from sqb.lake.rest_lake import RestLake
from sqb.lake.shape import Shape
from sqb.lake.staging import Lease, Staged

MODES = ["alias", "branch", "replace"]
SHAPE = Shape((("id", "BIGINT"), ("s", "STRING")))
WIDER = Shape((("id", "BIGINT"), ("s", "STRING"), ("more", "INT")))
VIEW = {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
_numbers = itertools.count(1)


class Place:
    """A schema of its own on the server, opened by sqb and by pyiceberg."""

    def __init__(self, lake: RestLake, ice: Any) -> None:
        self.lake, self.ice = lake, ice
        self.db = f"db{next(_numbers)}"
        lake.ensure_namespace(self.db)
        self.facts = FactsCache(None, None, lake.read)

    def rows(self, *ids: int, more: bool = False) -> Any:
        import pyarrow as pa

        columns = {
            "id": pa.array(ids, pa.int64()),
            "s": pa.array([f"s{i}" for i in ids], pa.string()),
        }
        return pa.table({**columns, "more": pa.array(ids, pa.int32())} if more else columns)

    def table(self, *ids: int) -> Head:
        self.ice.create_table((self.db, "t"), self.rows().schema).append(self.rows(*ids))
        return self.now()

    def now(self) -> Head:
        head = self.lake.head(self.db, "t")
        assert head is not None
        return head

    def write(self, staged: Staged, data: Any) -> None:
        """What Spark would do with staged work."""
        name = (staged.namespace, staged.name)
        mine = {"sqb.run-id": staged.run_id}
        if staged.creates:
            table = self.ice.create_table(name, data.schema, location=staged.location)
            table.append(data, snapshot_properties=mine)
            return
        table = self.ice.load_table(name)
        if table.schema().column_names != data.schema.names:
            with table.update_schema() as update:
                update.union_by_name(data.schema)
        table.overwrite(data, snapshot_properties=mine, branch=staged.branch or "main")

    def build(self, run_id: str, data: Any, shape: Shape = SHAPE, **options: Any) -> Head:
        staged = self.lake.stage(self.db, "t", run_id, shape)
        self.write(staged, data)
        head = self.publish(staged, **options)
        self.lake.discard(staged, self.facts)
        return head

    def publish(self, staged: Staged, **options: Any) -> Head:
        options = {"properties": {"k": "v"}, "make_stamp": stamp, **options}
        return self.lake.publish_table(namespace=self.db, table="t", staged=staged, **options)

    def view(self, base: Head | None, sql: str = "SELECT 1L AS id", **options: Any) -> Head:
        options = {"properties": {}, "make_stamp": stamp, **options}
        return self.lake.publish_view(
            namespace=self.db, name="t", base=base, run_id="r", sql=sql, schema=VIEW, **options
        )

    def ids(self) -> list[int]:
        table = self.ice.load_table((self.db, "t"))
        return sorted(table.scan().to_arrow()["id"].to_pylist())

    def stray(self) -> set[str]:
        """Files in the table's folder that its metadata does not lead to."""
        table = self.ice.load_table((self.db, "t"))
        known = {table.metadata_location, *(e.metadata_file for e in table.metadata.metadata_log)}
        for snapshot in table.metadata.snapshots:
            known.add(snapshot.manifest_list)
            for manifest in snapshot.manifests(table.io):
                known.add(manifest.manifest_path)
                entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
                known |= {entry.data_file.file_path for entry in entries}
        there = local_path(table.location()).rglob("*")
        files = {normalised(str(p)) for p in there if p.is_file() and p.suffix != ".crc"}
        return files - {normalised(file) for file in known}

    def staged_names(self) -> list[str]:
        stage = f"{self.db}__sqb_stage"
        properties = self.lake.namespace_properties(stage)
        marks = [key for key in properties if key.startswith("sqb.")]
        refs = []
        if self.lake.head(self.db, "t") is not None:
            table = self.ice.load_table((self.db, "t"))
            refs = [name for name in table.metadata.refs if name != "main"]
        return [*(name for _, name, _ in self.lake.names([stage])), *marks, *refs]


def stamp(facts: TableFacts) -> str:
    return json.dumps({"snapshot": facts.snapshot_id, "uuid": facts.uuid})


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def address(mode: str, rest_server: str) -> Iterator[str]:
    """The server, through a proxy that leaves only one mode."""
    rule = RULES[mode]
    if rule is None:
        yield rest_server
        return
    with proxy(rest_server, rule) as place:
        yield place


@pytest.fixture(scope="module")
def clients(address: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    lake = RestLake(RestClient("lake", address, "", {}), tmp_path_factory.mktemp("m") / "mode.mp")
    ice = open_iceberg("lake", address, "", "rest")
    yield lake, ice
    lake.close()
    ice._session.close()


@pytest.fixture
def place(clients: tuple[Any, Any]) -> Place:
    return Place(*clients)


def test_a_first_build_takes_the_name_in_one_step(place: Place) -> None:
    staged = place.lake.stage(place.db, "t", "run1", SHAPE)
    assert staged.creates
    assert staged.location is not None
    assert staged.location.endswith(f"{place.db}/t")
    place.write(staged, place.rows(1))
    assert place.lake.head(place.db, "t") is None
    head = place.publish(staged)
    place.lake.discard(staged, place.facts)
    facts = place.facts.get(head.location)
    assert json.loads(facts.stamp or "") == {"snapshot": facts.snapshot_id, "uuid": facts.uuid}
    assert facts.properties["k"] == "v"
    assert place.ids() == [1]
    assert place.staged_names() == []
    assert place.stray() == set()


def test_a_rebuild_is_published_by_the_servers_mode(place: Place, mode: str) -> None:
    base = place.table(1, 2)
    staged = place.lake.stage(place.db, "t", "run1", SHAPE)
    assert place.lake.mode == mode
    place.write(staged, place.rows(3))
    facts = place.lake.staged_facts(staged, place.facts)
    assert facts is not None
    # Readers see nothing of it before, but where it is replaced in place.
    assert place.ids() == ([3] if mode == "replace" else [1, 2])
    head = place.publish(staged)
    place.lake.discard(staged, place.facts)
    assert place.ids() == [3]
    now = place.facts.get(head.location)
    assert (now.snapshot_id, now.uuid) == (facts.snapshot_id, place.facts.get(base.location).uuid)
    assert json.loads(now.stamp or "")["snapshot"] == now.snapshot_id
    assert place.lake.head(place.db, "t") == head
    assert place.staged_names() == []
    assert place.stray() == set()
    # Someone else goes on with it as with any table.
    place.ice.load_table((place.db, "t")).append(place.rows(4))
    assert place.ids() == [3, 4]
    assert place.facts.get(place.now().location).stamp == now.stamp


def test_another_shape_is_published_too(place: Place, mode: str) -> None:
    place.table(1)
    staged = place.lake.stage(place.db, "t", "run1", WIDER)
    assert staged.in_place == (mode != "alias")
    place.write(staged, place.rows(2, more=True))
    head = place.publish(staged, sort_order=("id DESC NULLS LAST",))
    place.lake.discard(staged, place.facts)
    facts = place.facts.get(head.location)
    assert [c.name for c in facts.columns] == ["id", "s", "more"]
    assert facts.sort_order == ("id DESC NULLS LAST",)
    assert place.ids() == [2]
    assert place.stray() == set()


def test_a_foreign_write_wins(place: Place, mode: str) -> None:
    place.table(1)
    staged = place.lake.stage(place.db, "t", "run1", SHAPE)
    place.write(staged, place.rows(2))
    place.ice.load_table((place.db, "t")).append(place.rows(9))
    winner = place.now()
    with pytest.raises(Overtaken) as caught:
        place.publish(staged)
    assert caught.value.winner == winner == place.now()
    place.lake.discard(staged, place.facts)
    assert place.ids() == ([2, 9] if mode == "replace" else [1, 9])
    assert place.facts.get(place.now().location).stamp is None
    assert place.staged_names() == []
    assert place.stray() == set()


def test_of_two_builds_that_have_both_written_the_first_to_publish_wins(
    place: Place, mode: str
) -> None:
    if mode == "replace":
        pytest.skip("rows are published as soon as they are written")
    base = place.table(1)
    one, two = (place.lake.stage(place.db, "t", run, SHAPE) for run in ("run1", "run2"))
    place.write(one, place.rows(2))
    place.write(two, place.rows(3))
    # one that changes no rows is not held up by those two, and does not hold them up
    place.lake.publish_properties(
        namespace=place.db,
        table="t",
        base=base,
        run_id="run3",
        properties={"k": "w"},
        make_stamp=stamp,
    )
    assert place.ids() == [1]
    place.publish(one)
    with pytest.raises(Overtaken):
        place.publish(two)
    for staged in (one, two):
        place.lake.discard(staged, place.facts)
    assert place.ids() == [2]
    assert place.staged_names() == []
    assert place.stray() == set()


def test_what_moved_beside_the_data_stays(place: Place) -> None:
    place.table(1)
    place.build("run0", place.rows(1), properties={"k": "v", "gone": "x"})
    staged = place.lake.stage(place.db, "t", "run1", SHAPE)
    place.write(staged, place.rows(2))
    table = place.ice.load_table((place.db, "t"))
    table.manage_snapshots().create_tag(table.current_snapshot().snapshot_id, "keep").commit()
    with table.transaction() as change:
        change.set_properties({"foreign": "1"})
    head = place.publish(staged)
    place.lake.discard(staged, place.facts)
    facts = place.facts.get(head.location)
    assert facts.properties["foreign"] == "1"
    assert facts.properties[MANAGED] == '["k"]'
    assert "gone" not in facts.properties
    assert set(place.ice.load_table((place.db, "t")).metadata.refs) == {"main", "keep"}
    assert place.ids() == [2]


def test_a_dropped_target_and_a_taken_name_are_overtaken(place: Place) -> None:
    first = place.lake.stage(place.db, "t", "run1", SHAPE)
    place.write(first, place.rows(1))
    place.table(5)
    with pytest.raises(Overtaken) as caught:
        place.publish(first)
    assert caught.value.winner == place.now()
    place.lake.discard(first, place.facts)
    assert place.ids() == [5]
    staged = place.lake.stage(place.db, "t", "run2", SHAPE)
    place.write(staged, place.rows(2))
    place.ice.drop_table((place.db, "t"))
    with pytest.raises((Overtaken, SqbError)):
        place.publish(staged)
    place.lake.discard(staged, place.facts)
    assert place.lake.head(place.db, "t") is None


def test_properties_alone_are_one_commit(place: Place) -> None:
    base = place.table(1)
    head = place.lake.publish_properties(
        namespace=place.db, table="t", base=base, run_id="r",
        properties={"a": "b"}, make_stamp=lambda _: "new",
    )  # fmt: skip
    facts = place.facts.get(head.location)
    assert (facts.stamp, facts.properties["a"]) == ("new", "b")
    assert facts.snapshot_id == place.facts.get(base.location).snapshot_id
    place.ice.load_table((place.db, "t")).append(place.rows(2))
    with pytest.raises(Overtaken):
        place.lake.publish_properties(
            namespace=place.db, table="t", base=head, run_id="r",
            properties={}, make_stamp=lambda _: "newer",
        )  # fmt: skip


def test_views_are_made_replaced_and_give_way(place: Place) -> None:
    first = place.view(None)
    facts = place.facts.get(first.location)
    assert json.loads(facts.stamp or "") == {"snapshot": None, "uuid": facts.uuid}
    second = place.view(first, "SELECT 2L AS id")
    again = place.facts.get(second.location)
    assert (again.sql, again.uuid) == ("SELECT 2L AS id", facts.uuid)
    with pytest.raises(Overtaken) as caught:
        place.view(first, "SELECT 3L AS id")
    assert caught.value.winner == second
    back = place.view(second, "SELECT 1L AS id")
    assert place.facts.get(back.location).sql == "SELECT 1L AS id"
    with pytest.raises(Overtaken):
        place.view(None, "SELECT 3L AS id")
    head = place.build("run1", place.rows(1))
    assert head.kind == "table"
    assert place.ids() == [1]
    back = place.view(head, "SELECT 4L AS id")
    assert place.lake.heads([place.db]) == {(place.db, "t"): back}


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the protocol catches it, so no clean-up runs."""


POINTS = ["publish:1", "publish:2", "publish:3", "publish:4", "publish:5a", "publish:5b"]
#: All of them when the run is about REST, else those in which most is under way.
KILLS = (
    [*itertools.product(POINTS, ["first", "same", "wider"])]
    if os.environ.get("SQB_TEST_CATALOG") == "rest"
    else [("publish:5a", "first"), ("publish:4", "same"), ("publish:5b", "same")]
)


@pytest.mark.parametrize(("point", "shape"), KILLS)
def test_killed_anywhere_the_next_build_finds_all_whole(
    *, place: Place, mode: str, point: str, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shape != "first":
        place.build("run0", place.rows(1))
    wanted = WIDER if shape == "wider" else SHAPE
    before = [] if shape == "first" else [1]

    def die(at: str) -> None:
        if at == point:
            raise Killed

    def build(run_id: str, *ids: int) -> None:
        staged = place.lake.stage(place.db, "t", run_id, wanted)
        place.write(staged, place.rows(*ids, more=shape == "wider"))
        rest_lake.reached("publish:3")
        place.publish(staged)
        place.lake.discard(staged, place.facts)

    with monkeypatch.context() as patch:
        for module in (rest_lake, rest_publish, rest_cleanup):
            patch.setattr(module, "reached", die)
        if (point, shape) == ("publish:2", "first"):
            build("run1", 2)
        else:
            with pytest.raises(Killed):
                build("run1", 2)
    there = place.lake.head(place.db, "t")
    if point == "publish:5b" or (point, shape) == ("publish:2", "first"):
        assert place.ids() == [2]
        assert there is not None
        assert place.facts.get(there.location).stamp is not None
    elif shape == "first":
        assert there is None
    elif mode == "replace" or (mode == "branch" and shape == "wider"):
        # In place: the new rows are there, and the stamp is not theirs.
        written = point not in {"publish:1", "publish:2"}
        assert place.ids() == ([2] if written else before)
        assert there is not None
        facts = place.facts.get(there.location)
        assert (json.loads(facts.stamp or "")["snapshot"] != facts.snapshot_id) == written
    else:
        assert place.ids() == before
    place.lake.sweep(f"{place.db}__sqb_stage", time.time())
    assert place.staged_names() == []
    build("run2", 3)
    assert place.ids() == [3]
    assert place.staged_names() == []
    assert place.stray() == set()


def test_a_living_runs_work_is_left_alone(place: Place) -> None:
    place.table(1)
    stage = f"{place.db}__sqb_stage"
    with Lease(place.lake, [stage], "run1"):
        staged = place.lake.stage(place.db, "t", "run1", SHAPE)
        place.write(staged, place.rows(2))
        assert place.lake.sweep(stage, time.time()) == []
        place.publish(staged)
        place.lake.discard(staged, place.facts)
    assert place.ids() == [2]
    assert place.staged_names() == []


def test_a_commit_that_got_through_although_the_line_broke_is_seen(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.table(1)
    staged = place.lake.stage(place.db, "t", "run1", SHAPE)
    place.write(staged, place.rows(2))
    commit = RestLake.commit

    def break_off(lake: RestLake, *request: Any) -> Any:
        assert commit(lake, *request).good
        raise UnknownOutcome(lake.place, "cut")

    with monkeypatch.context() as patch:
        patch.setattr(RestLake, "commit", break_off)
        head = place.publish(staged)
    place.lake.discard(staged, place.facts)
    assert head == place.now()
    assert place.ids() == [2]


def test_a_commit_that_gets_through_later_finds_its_files(
    place: Place, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.table(1)
    staged = place.lake.stage(place.db, "t", "run1", SHAPE)
    place.write(staged, place.rows(2))
    commit, late = RestLake.commit, []

    def break_off(lake: RestLake, *request: Any) -> Any:
        late.append(request)
        raise UnknownOutcome(lake.place, "cut")

    with monkeypatch.context() as patch:
        patch.setattr(RestLake, "commit", break_off)
        with pytest.raises(UnknownOutcome):
            place.publish(staged)
    place.lake.discard(staged, place.facts)
    answer = commit(place.lake, *late[0])
    # A branch that is gone stops it; the other ways are told by their result.
    assert answer.good == (mode != "branch")
    assert place.ids() == ([1] if mode == "branch" else [2])
    assert place.staged_names() == []


@pytest.mark.parametrize("written", [False, True])
def test_staged_work_takes_no_file_of_a_table_that_was_renamed(place: Place, written: bool) -> None:
    place.table(1, 2)
    staged = place.lake.stage(place.db, "t", "run1", SHAPE)
    if staged.alias is None:
        pytest.skip("only an alias outlives its table's name")
    if written:
        place.write(staged, place.rows(3))
    place.ice.rename_table((place.db, "t"), (place.db, "kept"))
    assert place.lake.sweep(f"{place.db}__sqb_stage", time.time()) != []
    kept = place.ice.load_table((place.db, "kept"))
    assert sorted(kept.scan().to_arrow()["id"].to_pylist()) == [1, 2]


def test_a_first_build_that_failed_leaves_no_file(place: Place) -> None:
    staged = place.lake.stage(place.db, "t", "run1", SHAPE)
    place.write(staged, place.rows(1))
    place.lake.discard(staged, place.facts)
    assert staged.location is not None
    assert [p for p in local_path(staged.location).rglob("*") if p.is_file()] == []


def test_a_look_loads_only_what_is_asked_for(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b", "c"):
        place.ice.create_table((place.db, name), place.rows().schema)
    asked: list[str] = []
    get = RestClient.get

    def counted(client: RestClient, path: str, **params: str) -> Any:
        asked.append(path)
        return get(client, path, **params)

    monkeypatch.setattr(RestClient, "get", counted)
    found = place.lake.look([(place.db, "b"), (place.db, "nope")], ["nowhere"])
    assert list(found) == [(place.db, "b")]
    assert len([path for path in asked if path.endswith("/b")]) == 1
    assert len(asked) == 5


@pytest.mark.parametrize(("status", "unknown"), [(503, True), (524, True), (501, False)])
def test_what_a_broken_server_did_is_not_known(
    rest_server: str, status: int, unknown: bool
) -> None:
    rule = lambda method, *_: status if method == "POST" else None  # noqa: E731
    with proxy(rest_server, rule) as place:
        client = RestClient("lake", place, "", {})
        if unknown:
            with pytest.raises(UnknownOutcome, match=str(status)):
                client.post("namespaces", {})
        else:
            assert client.post("namespaces", {}).refused
        client.close()


@pytest.mark.parametrize("status", [409, 500, 400])
def test_a_schema_that_someone_else_made_at_this_moment_is_no_error(
    rest_server: str, status: int
) -> None:
    """Servers answer in their own ways when two make one: by the code for it, or by breaking."""
    name, other = f"made{status}", RestLake(RestClient("lake", rest_server, "", {}), None)

    def overtaken(method: str, path: str, _: bytes) -> int | None:
        if method != "POST" or not path.endswith("/namespaces"):
            return None
        if name.startswith("made"):
            other.ensure_namespace(name)
        return status

    with proxy(rest_server, overtaken) as address:
        lake = RestLake(RestClient("lake", address, "", {}), None)
        lake.ensure_namespace(name)
        assert name in lake.namespaces()
        name = f"refused{status}"
        if status != 409:
            with pytest.raises(SqbError, match=str(status)):
                lake.ensure_namespace(name)
        lake.close()
    other.close()


@pytest.mark.parametrize(
    ("uri", "properties"),
    [
        ("http://127.0.0.1:9/x", {"token": "hunter2"}),
        ("http://me:hunter2@127.0.0.1:9/x", {"credential": "id:hunter2"}),
    ],
)
def test_a_server_that_is_not_there_is_an_error_without_secrets(
    uri: str, properties: dict[str, str]
) -> None:
    lake = RestLake(RestClient("lake", uri, "w", properties), None)
    with pytest.raises(SqbError) as caught:
        lake.heads()
    error = caught.value
    assert error.code == "L001"
    assert error.help
    assert "hunter2" not in f"{error.message}{error.help}{lake!r}"
