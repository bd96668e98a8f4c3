"""A warehouse in an object store: the same protocol, on a real server of the S3 API."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table import StaticTable
from servers import object_store
from small_lakes import SmallLake, numbers

from sqb.errors import SqbError
from sqb.lake import stores
from sqb.lake.catalog import Head
from sqb.lake.cleanup import discard, sweep
from sqb.lake.expiry import expire
from sqb.lake.facts import FactsCache
from sqb.lake.io import exists, file_size, files_below, read_bytes, remove, write_new
from sqb.lake.metadata import TableFacts, read_document, read_facts
from sqb.lake.publish import Overtaken, publish_table, publish_view
from sqb.lake.staging import Staged, stage
from sqb.project.stores import completed
from sqb.state.store import StateStore
from sqb.upkeep.janitor import Finding, Scope, survey
from sqb.upkeep.janitor import remove as clean

STAGE = "dev__sqb_stage"
DAY = 86_400
COLUMNS = {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}

_buckets = itertools.count(1)


@pytest.fixture(scope="module")
def properties() -> Iterator[dict[str, str]]:
    with object_store() as found:
        yield completed(found)


@pytest.fixture
def bucket(properties: dict[str, str]) -> Iterator[str]:
    """A bucket of its own that the process knows how to open."""
    import boto3

    name = f"lake-{next(_buckets)}"
    client = boto3.client(
        "s3",
        endpoint_url=properties["s3.endpoint"],
        aws_access_key_id=properties["s3.access-key-id"],
        aws_secret_access_key=properties["s3.secret-access-key"],
        region_name=properties["s3.region"],
    )
    client.create_bucket(Bucket=name)
    client.close()
    stores.use(f"s3://{name}/tables", properties)
    yield name
    stores.forget()


class StoreLake(SmallLake):
    """A small lake whose files are in a bucket."""

    def __init__(self, folder: Path, bucket: str, properties: dict[str, str]) -> None:
        super().__init__(folder, f"s3://{bucket}/tables", properties, reader_grace="1m")
        self.properties = properties

    def objects(self) -> set[str]:
        return {file.location for file in files_below(self.catalog.warehouse)}

    def read(self, name: str, snapshot: int | None = None, schema: str = "dev") -> list[int]:
        table = StaticTable.from_metadata(self.head(name, schema).location, self.properties)
        return sorted(table.scan(snapshot_id=snapshot).to_arrow()["id"].to_pylist())

    def alias(self, run_id: str) -> Head:
        return self.head(f"t__{run_id}", STAGE)


@pytest.fixture
def lake(tmp_path: Path, bucket: str, properties: dict[str, str]) -> Iterator[StoreLake]:
    made = StoreLake(tmp_path, bucket, properties)
    yield made
    made.close()


def stamp(facts: TableFacts) -> str:
    return json.dumps({"snapshot": facts.snapshot_id, "uuid": facts.uuid})


def publish(lake: StoreLake, staged: Staged) -> Head:
    return publish_table(
        lake.catalog, namespace="dev", table="t", staged=staged,
        properties={"sqb.definition": "d"}, make_stamp=stamp,
    )  # fmt: skip


def scope(*nodes: str, now: float | None = None) -> Scope:
    places = frozenset(("dev", name) for name in nodes)
    return Scope("small/dev", ("dev",), places, frozenset(), time.time() if now is None else now)


def found(lake: StoreLake, here: Scope) -> dict[tuple[str, str], Finding]:
    return {(f.kind, f.relation): f for f in survey(lake.upkeep(), here).findings}


@pytest.mark.parametrize("name", ["a.json", "day=2026%2F01/a b.json", "odd?x=1#y", "ünï/ö"])
def test_a_file_is_written_once_read_measured_and_removed(bucket: str, name: str) -> None:
    location = f"s3://{bucket}/tables/{name}"
    assert not exists(location)
    with pytest.raises(FileNotFoundError):
        read_bytes(location)
    write_new(location, b"one")
    with pytest.raises(FileExistsError):
        write_new(location, b"two")
    other = location.replace("s3://", "s3a://")
    assert (read_bytes(other), file_size(other)) == (b"one", 3)
    (listed,) = files_below(f"s3://{bucket}/tables")
    assert (listed.location, listed.size) == (location, 3)
    assert abs(listed.modified - time.time()) < DAY
    assert remove(location)
    assert not remove(location)
    assert list(files_below(f"s3://{bucket}/tables")) == []


def test_a_prefix_is_no_file_and_a_neighbour_is_not_below(bucket: str) -> None:
    write_new(f"s3://{bucket}/tables/t/data/x", b"1")
    write_new(f"s3://{bucket}/tables/t2/data/y", b"2")
    assert not exists(f"s3://{bucket}/tables/t")
    assert [f.location for f in files_below(f"s3://{bucket}/tables/t")] == [
        f"s3://{bucket}/tables/t/data/x"
    ]
    assert list(files_below(f"s3://{bucket}/tables/none")) == []


@pytest.mark.parametrize(
    "settings",
    [
        {"s3.access-key-id": "AKIA", "s3.secret-access-key": "hunter22"},
        {"s3.secret-access-key": "hunter22"},
    ],
    ids=["no server", "half of the keys"],
)
def test_a_store_that_does_not_answer_is_not_taken_for_an_empty_one(
    bucket: str, settings: dict[str, str]
) -> None:
    stores.forget()
    stores.use(f"s3://{bucket}", {"s3.endpoint": "http://127.0.0.1:9", **settings})
    file = f"s3://{bucket}/tables/x"
    for ask in (exists, read_document, lambda f: list(files_below(f))):
        with pytest.raises(SqbError) as caught:
            ask(file)
        assert caught.value.code == "L005"
        assert "hunter22" not in f"{caught.value.message}{caught.value.help}"


def test_one_bucket_name_on_two_servers_is_refused(bucket: str, properties: Any) -> None:
    stores.use(f"s3://{bucket}/other", {**properties, "s3.session-token": "renewed"})
    with pytest.raises(SqbError, match=r"another `s3\.endpoint`"):
        stores.use(f"s3://{bucket}/other", {**properties, "s3.endpoint": "http://127.0.0.1:9"})


def test_readers_see_nothing_before_and_all_after(lake: StoreLake) -> None:
    lake.build("t", [1, 2])
    before = lake.head("t")
    staged = stage(lake.catalog, "dev", "t", "r")
    lake.ice.load_table(f"{STAGE}.{staged.name}").append(numbers([3]))
    assert lake.read("t") == [1, 2]
    head = publish(lake, staged)
    assert lake.head("t") == head
    assert lake.catalog.heads([STAGE]) == {}
    assert lake.read("t") == [1, 2, 3]
    facts = read_facts(head.location)
    assert json.loads(facts.stamp or "")["snapshot"] == facts.snapshot_id
    assert before.location in {
        e["metadata-file"] for e in read_document(head.location)["metadata-log"]
    }
    lake.ice.load_table("dev.t").append(numbers([4]))
    assert lake.read("t") == [1, 2, 3, 4]


def test_a_view_is_made_replaced_and_guarded(lake: StoreLake) -> None:
    def build(base: Head | None, run_id: str, sql: str) -> Head:
        return publish_view(
            lake.catalog, namespace="dev", name="v", base=base, run_id=run_id, sql=sql,
            schema=COLUMNS, properties={}, make_stamp=stamp,
        )  # fmt: skip

    first = build(None, "r1", "SELECT 1L AS id")
    second = build(first, "r2", "SELECT 2L AS id")
    assert read_facts(second.location).sql == "SELECT 2L AS id"
    with pytest.raises(Overtaken):
        build(first, "r3", "SELECT 3L AS id")
    assert lake.head("v") == second
    assert lake.objects() == {first.location, second.location}


def test_of_several_builds_one_publishes_and_the_losers_leave_nothing(lake: StoreLake) -> None:
    lake.build("t", [1])
    kept = lake.objects()
    staged = []
    for turn in range(3):
        staged.append(stage(lake.catalog, "dev", "t", f"r{turn}"))
        lake.ice.load_table(f"{STAGE}.{staged[-1].name}").append(numbers([10 + turn]))
    gate = threading.Barrier(len(staged))
    results: list[Head | Overtaken] = []

    def build(mine: Staged) -> None:
        gate.wait()
        try:
            results.append(publish(lake, mine))
        except Overtaken as error:
            results.append(error)
            discard(lake.catalog, lake.head(mine.name, STAGE))

    threads = [threading.Thread(target=build, args=[each]) for each in staged]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r for r in results if isinstance(r, Head)] == [lake.head("t")]
    assert len(results) == 3
    assert len(lake.read("t")) == 2
    # one data file, manifest, manifest list, the metadata of the append, and the published one
    assert len(lake.objects() - kept) == 5


def test_a_dead_builds_files_are_swept_and_no_others(lake: StoreLake) -> None:
    lake.build("t", [1])
    kept = lake.objects()
    stage(lake.catalog, "dev", "t", "dead")
    table = lake.ice.load_table(f"{STAGE}.t__dead")
    table.append(numbers([5]))
    table.overwrite(numbers([6]))
    assert len(lake.objects()) > len(kept)
    assert sweep(lake.catalog, STAGE, time.time()) == [f"{STAGE}.t__dead"]
    assert lake.objects() == kept
    assert lake.read("t") == [1]


def test_expiry_takes_only_what_the_removed_snapshots_alone_reach(lake: StoreLake) -> None:
    made = [lake.build("t", [turn], append=turn == 3, record=False) for turn in range(4)]
    kept = [read_facts(head.location).snapshot_id for head in made[2:] if head is not None]
    before = lake.objects()
    gone = [i for i in lake.snapshots("t") if i not in kept]
    done = expire(lake.catalog, lake.head("t"), gone, [], FactsCache(None))
    assert done is not None
    assert lake.snapshots("t") == kept
    assert [lake.read("t", i) for i in kept] == [[2], [2, 3]]
    assert done.files == len(before - lake.objects()) > 0
    assert done.bytes > 0
    lake.build("t", [9])
    assert lake.read("t") == [9]


def test_the_janitor_finds_orphans_old_snapshots_and_removed_models(
    lake: StoreLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for turn in range(3):
        lake.build("t", [turn])
    lake.build("old", [1])
    place = lake.catalog.default_location("dev", "t")
    lost = [f"{place}/data/lost.parquet", f"{place}/metadata/lost.avro"]
    spared = [
        f"{lake.catalog.default_location('dev', 'stranger')}/data/x",
        f"{place}/notes/x",
        f"{place}2/data/x",
    ]
    for file in (*lost, *spared):
        write_new(file, b"12345")
    assert not any(kind == "orphans" for kind, _ in found(lake, scope("t")))

    later = time.time() + 31 * DAY
    monkeypatch.setattr("sqb.upkeep.census.wall_clock", lambda: later)
    here = scope("t", now=later)
    shown = survey(lake.upkeep(), here)
    orphans = next(f for f in shown.findings if f.kind == "orphans")
    assert (orphans.items, orphans.bytes) == (frozenset(lost), 10)
    before = lake.objects()
    removed = clean(lake.upkeep(), here, shown, "j1")
    kinds = {(f.kind, f.relation) for f in removed.findings}
    assert {("orphans", "dev.t"), ("relation", "dev.old"), ("snapshots", "dev.t")} <= kinds
    assert lake.read("t") == [2]
    assert len(lake.snapshots("t")) == 1
    assert before - lake.objects() >= {*lost}
    assert lake.objects() >= {*spared}
    assert not [f for f in lake.objects() if "/dev/old/" in f]
    assert not any(kind == "orphans" for kind, _ in found(lake, here))


def test_facts_that_are_known_need_no_store(lake: StoreLake, tmp_path: Path) -> None:
    head = lake.build("t", [1])
    assert head is not None
    cache = tmp_path / "facts.mp"
    facts = FactsCache(cache, lake.catalog.warehouse)
    facts.get(head.location)
    facts.save()
    script = (
        "import sys; from pathlib import Path; from sqb.lake.facts import FactsCache\n"
        "from sqb.lake.catalog import SqlCatalog\n"
        "lake = SqlCatalog('lake', sys.argv[1], sys.argv[2])\n"
        "facts = FactsCache(Path(sys.argv[3]), lake.warehouse)\n"
        "assert facts.get(lake.head('dev', 't').location).snapshot_id\n"
        "assert not {'pyarrow', 'pyiceberg', 'boto3'} & sys.modules.keys()"
    )
    arguments = [lake.catalog.uri, lake.catalog.warehouse, str(cache)]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True)


def test_state_tables_that_cannot_be_read_are_told(lake: StoreLake) -> None:
    lake.build("t", [1])
    dead = {**lake.properties, "s3.endpoint": "http://127.0.0.1:9"}
    with closing(StateStore("lake", lake.catalog.uri, "", None, properties=dead)) as store:
        with pytest.raises(SqbError) as caught:
            store.history(["dev"])
        assert caught.value.code == "L005"


def test_a_bucket_that_is_not_there_is_told(bucket: str) -> None:
    stores.reach(f"s3://{bucket}/tables")
    with pytest.raises(SqbError, match="there is no bucket `nowhere`"):
        stores.reach("s3://nowhere/tables")


@pytest.mark.skipif(
    os.environ.get("SQB_TEST_STORE") != "s3", reason="starts a Spark of its own: SQB_TEST_STORE=s3"
)
def test_spark_builds_rebuilds_and_does_nothing(
    tmp_path: Path, bucket: str, properties: dict[str, str]
) -> None:
    names = ("s3.endpoint", "s3.access-key-id", "s3.secret-access-key")
    given = "".join(f'"{name}" = "{properties[name]}"\n' for name in names)
    (tmp_path / "sqlbuild_project.toml").write_text(
        f'[spark]\nmaster = "local[2]"\n'
        f'[catalog]\nwarehouse = "s3a://{bucket}/tables/"\n[catalog.properties]\n{given}'
    )
    models = tmp_path / "models"
    models.mkdir()
    (models / "a.sql").write_text("MODEL (materialized table);\nSELECT id FROM range(5)")
    (models / "v.sql").write_text("MODEL (materialized view);\nSELECT id + 1 AS more FROM a")
    (models / "b.sql").write_text("MODEL (materialized table);\nSELECT sum(more) AS total FROM v")

    def run(*arguments: str, code: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sqb", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        assert properties["s3.secret-access-key"] not in done.stdout + done.stderr
        return done.stdout

    assert "3 built" in run("build")
    (models / "v.sql").write_text("MODEL (materialized view);\nSELECT id + 2 AS more FROM a")
    assert "2 built, 1 current" in run("build")
    assert "20" in run("query", "SELECT total FROM b")
    script = (
        "import sys; from sqb.api import Project\n"
        "plan = Project('.').plan()\n"
        "assert {n.action for n in plan.nodes} == {'skip'}, plan.nodes\n"
        "assert not {'pyarrow', 'pyiceberg', 'pyspark'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert "Nothing to remove" in run("janitor", "--dry-run")
    (models / "b.sql").unlink()
    assert "dev.b" in run("janitor", "--dry-run")
    run("janitor", "--yes")
    assert {f.location.split("/")[5] for f in files_below(f"s3://{bucket}/tables/dev")} == {
        "a",
        "v",
        "_sqlbuild_fingerprints",
    }
    secret = properties["s3.secret-access-key"].encode()
    kept = [p for p in (tmp_path / ".sqb").rglob("*") if p.is_file()]
    assert not [p for p in kept if secret in p.read_bytes()]
