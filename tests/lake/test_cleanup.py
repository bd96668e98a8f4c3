from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqb.lake.catalog import Head, Point, SqlCatalog
from sqb.lake.cleanup import discard, sweep
from sqb.lake.failpoints import POINTS, reached
from sqb.lake.staging import Lease, stage

STAGE = "db__sqb_stage"
Files = Callable[[], set[str]]


def alias_of(lake: SqlCatalog, run_id: str) -> Head:
    head = lake.head(STAGE, f"t__{run_id}")
    assert head is not None
    return head


@pytest.mark.usefixtures("target")
def test_a_discarded_alias_takes_its_own_files_and_no_others(
    lake: SqlCatalog, ice: Any, rows: Any, ids: Any, files: Files
) -> None:
    before = files()
    stage(lake, "db", "t", "mine")
    stage(lake, "db", "t", "other")
    mine, other = ice.load_table(f"{STAGE}.t__mine"), ice.load_table(f"{STAGE}.t__other")
    other.append(rows(20))
    kept = files()
    mine.append(rows(10))
    mine.overwrite(rows(11))
    mine.delete("id = 11")
    own = files() - kept
    assert discard(lake, alias_of(lake, "mine"), []) == len(own)
    assert files() == kept
    assert ids("db.t") == [1, 2]
    assert ids(f"{STAGE}.t__other") == [1, 2, 20]
    discard(lake, alias_of(lake, "other"))
    assert files() == before
    assert lake.heads([STAGE]) == {}


def test_files_of_a_failed_first_build_go_completely(
    lake: SqlCatalog, ice: Any, rows: Any, files: Files
) -> None:
    staged = stage(lake, "db", "t", "r1")
    location = f"file://{lake.default_location('db', 't')}"
    ice.create_table(f"{STAGE}.{staged.name}", rows().schema, location=location).append(rows(1))
    assert len(files()) == 5
    assert discard(lake, alias_of(lake, "r1")) == 5
    assert files() == set()


@pytest.mark.usefixtures("target")
def test_an_alias_that_is_gone_is_nothing_to_do(lake: SqlCatalog) -> None:
    alias = stage(lake, "db", "t", "r1").alias
    assert alias is not None
    assert discard(lake, alias) == 0
    assert discard(lake, alias) == 0


@pytest.mark.usefixtures("target")
def test_files_that_a_kept_head_reaches_stay(
    lake: SqlCatalog, ice: Any, rows: Any, files: Files
) -> None:
    stage(lake, "db", "t", "r1")
    table = ice.load_table(f"{STAGE}.t__r1")
    table.append(rows(5))
    middle = alias_of(lake, "r1")
    kept = files()
    table.append(rows(6))
    discard(lake, alias_of(lake, "r1"), [middle])
    assert files() == kept


@pytest.mark.usefixtures("ice", "rows")
def test_data_outside_the_tables_own_location_is_never_deleted(
    lake: SqlCatalog, target: Head, ids: Any, files: Files
) -> None:
    from sqb.lake.metadata import read_document

    document = read_document(target.location)
    clone = f"{lake.warehouse}/db/clone/metadata/00000-x.metadata.json"
    import msgspec

    from sqb.lake.io import write_new

    document |= {"table-uuid": "b5e4ecf3-0000-4000-8000-000000000000", "metadata-log": []}
    document["location"] = f"{lake.warehouse}/db/clone"
    write_new(clone, msgspec.json.encode(document))
    lake.commit([Point(STAGE, "clone__r1", "table", clone, expected=None)])
    head = lake.head(STAGE, "clone__r1")
    assert head is not None
    before = files()
    assert discard(lake, head) == 1
    assert files() == before - {clone}
    assert ids("db.t") == [1, 2]


def test_where_a_head_cannot_be_read_nothing_is_deleted(
    lake: SqlCatalog, ice: Any, target: Head, rows: Any, files: Files
) -> None:
    stage(lake, "db", "t", "r1")
    ice.load_table(f"{STAGE}.t__r1").append(rows(5))
    root = Path(target.location).parent
    lake.commit([Point("db", "odd", "table", f"{root}/gone.metadata.json", expected=None)])
    before = files()
    assert discard(lake, alias_of(lake, "r1")) == 0
    assert files() == before
    assert lake.heads([STAGE]) == {}


@pytest.mark.usefixtures("target")
def test_a_sweep_spares_live_runs_and_removes_dead_leases(
    lake: SqlCatalog, ice: Any, rows: Any
) -> None:
    stage(lake, "db", "t", "dead")
    ice.load_table(f"{STAGE}.t__dead").append(rows(5))
    lake.set_namespace_property(STAGE, "sqb.lease.dead", "{}")
    with Lease(lake, [STAGE], "alive"):
        stage(lake, "db", "t", "alive")
        assert sweep(lake, STAGE, time.time()) == [f"{STAGE}.t__dead"]
        assert set(lake.namespace_properties(STAGE)) == {"exists", "sqb.lease.alive"}
        assert [h.name for h in lake.heads([STAGE]).values()] == ["t__alive"]


@pytest.mark.usefixtures("target")
def test_reading_manifests_does_not_import_pyarrow(lake: SqlCatalog, ice: Any, rows: Any) -> None:
    stage(lake, "db", "t", "r1")
    ice.load_table(f"{STAGE}.t__r1").append(rows(5))
    script = (
        "import sys; from sqb.lake.catalog import SqlCatalog; from sqb.lake.cleanup import sweep\n"
        "lake = SqlCatalog('lake', sys.argv[1], sys.argv[2])\n"
        "assert sweep(lake, 'db__sqb_stage', 0)\n"
        "assert 'pyarrow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script, lake.uri, lake.warehouse], check=True)


BUILD = """
import sys
from pyiceberg.catalog.sql import SqlCatalog as Ice
import pyarrow as pa
from sqb.lake.catalog import SqlCatalog
from sqb.lake.failpoints import reached
from sqb.lake.publish import publish_table, publish_view
from sqb.lake.staging import Lease, stage
uri, warehouse, what = sys.argv[1:]
lake = SqlCatalog("lake", uri, warehouse)
ice = Ice("lake", uri=uri, warehouse=warehouse)
rows = pa.table({"id": pa.array([3], pa.int64()), "s": ["s3"]})
with Lease(lake, ["db__sqb_stage"], "dead"):
    if what == "view":
        schema = {"fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
        publish_view(lake, namespace="db", name="v", base=None, run_id="dead", properties={},
                     sql="SELECT 1L AS id", schema=schema, make_stamp=lambda facts: "stamp")
    else:
        staged = stage(lake, "db", "t", "dead")
        name = f"db__sqb_stage.{staged.name}"
        if staged.base is None:
            ice.create_table(name, rows.schema, location=lake.default_location("db", "t"))
        ice.load_table(name).append(rows)
        reached("publish:3")
        publish_table(lake, namespace="db", table="t", staged=staged, properties={},
                      make_stamp=lambda facts: "stamp")
"""


def killed_at(point: str, lake: SqlCatalog, what: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", BUILD, lake.uri, lake.warehouse, what],
        env={**os.environ, "SQB_FAILPOINT": point},
        check=False,
    )
    assert run.returncode == -signal.SIGKILL


@pytest.mark.parametrize("point", [p for p in POINTS if p != "publish:7"])
@pytest.mark.usefixtures("ice")
def test_a_build_killed_anywhere_leaves_old_or_new_and_no_litter(
    lake: SqlCatalog, target: Head, ids: Any, files: Files, point: str
) -> None:
    before = files()
    killed_at(point, lake, "table")
    published = point in {"publish:5b", "publish:6"}
    assert ids("db.t") == ([1, 2, 3] if published else [1, 2])
    sweep(lake, STAGE, time.time())
    assert lake.heads([STAGE]) == {}
    assert lake.namespace_properties(STAGE).keys() <= {"exists"}
    assert ids("db.t") == ([1, 2, 3] if published else [1, 2])
    if not published:
        assert lake.head("db", "t") == target
        assert files() == before


@pytest.mark.parametrize("what", ["first", "view"])
@pytest.mark.usefixtures("ice")
def test_a_first_build_killed_before_the_commit_leaves_nothing(
    lake: SqlCatalog, files: Files, what: str
) -> None:
    killed_at("publish:5a", lake, what)
    assert len(files()) == (1 if what == "view" else 6)
    assert lake.heads(["db"]) == {}
    sweep(lake, STAGE, time.time())
    assert files() == set()
    assert lake.heads() == {}


def test_a_failpoint_not_asked_for_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SQB_FAILPOINT", raising=False)
    for point in POINTS:
        reached(point)
    monkeypatch.setenv("SQB_FAILPOINT", "publish:1")
    reached("publish:2")
