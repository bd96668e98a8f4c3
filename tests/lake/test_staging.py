from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sqb.errors import SqbError
from sqb.lake.catalog import CommitConflict, Head, Point, SqlCatalog
from sqb.lake.cleanup import sweep
from sqb.lake.staging import Lease, alias_name, lapsed, split_alias, stage, stage_schema

STAGE = "db__sqb_stage"


@pytest.mark.usefixtures("ice")
def test_an_alias_is_a_second_name_of_the_same_metadata(lake: SqlCatalog, target: Head) -> None:
    staged = stage(lake, "db", "t", "run1")
    assert staged.base == target
    assert staged.alias == Head(STAGE, "t__run1", "table", target.location)
    assert lake.head(STAGE, "t__run1") == staged.alias
    with pytest.raises(CommitConflict):
        stage(lake, "db", "t", "run1")


@pytest.mark.parametrize("kind", [None, "view"])
def test_without_a_table_to_start_from_no_row_is_made(lake: SqlCatalog, kind: Any) -> None:
    if kind:
        lake.commit([Point("db", "t", kind, "/m/v", expected=None)])
    staged = stage(lake, "db", "t", "run1")
    assert staged.base == lake.head("db", "t")
    assert staged.alias is None
    assert (staged.namespace, staged.name) == (STAGE, "t__run1")
    assert lake.heads([STAGE]) == {}
    assert STAGE in lake.namespaces()


def test_names_of_aliases_can_be_taken_apart() -> None:
    assert stage_schema("db") == STAGE
    assert split_alias(alias_name("a__b", "20260101-x_y")) == ("a__b", "20260101-x_y")
    for bad in ("", "a__b", "_a"):
        with pytest.raises(ValueError, match="run id"):
            alias_name("t", bad)


@pytest.mark.usefixtures("target")
def test_a_table_that_deletes_its_metadata_is_refused(lake: SqlCatalog, ice: Any) -> None:
    key = "write.metadata.delete-after-commit.enabled"
    with ice.load_table("db.t").transaction() as change:
        change.set_properties({key: "true"})
    with pytest.raises(SqbError, match=key) as caught:
        stage(lake, "db", "t", "run1")
    assert caught.value.help
    assert lake.heads([STAGE]) == {}


def register(lake: SqlCatalog, run_id: str) -> Head:
    lake.commit([Point(STAGE, f"t__{run_id}", "table", "/m", expected=None)])
    return Head(STAGE, f"t__{run_id}", "table", "/m")


def test_a_lease_protects_while_it_is_held_and_is_renewed(lake: SqlCatalog) -> None:
    alias = register(lake, "run1")
    with Lease(lake, [STAGE], "run1", ttl=0.3) as lease:
        time.sleep(0.6)
        assert lapsed(lake, STAGE, time.time()) == []
        assert lease.error is None
    assert lapsed(lake, STAGE, time.time()) == [alias]
    assert lake.namespace_properties(STAGE) == {"exists": "true"}


class Moving:
    """A catalog in which a build begins just after it was looked at for the first time."""

    def __init__(self, lake: SqlCatalog) -> None:
        self._lake, self.began = lake, False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._lake, name)
        if name not in {"heads", "namespace_properties"} or self.began:
            return found
        self.began = True

        def look(*arguments: Any) -> Any:
            seen = found(*arguments)
            with Lease(self._lake, STAGE, "model"):
                mine = self._lake.namespace_properties(STAGE)["sqb.lease.model"]
            self._lake.set_namespace_property(STAGE, "sqb.lease.begun", mine)
            register(self._lake, "begun")
            return seen

        return look


@pytest.mark.parametrize("looks", [lapsed, sweep])
def test_a_build_that_begins_during_a_look_is_alive(lake: SqlCatalog, looks: Any) -> None:
    moving = Moving(lake)
    assert looks(moving, STAGE, time.time()) == []
    assert moving.began
    assert lake.head(STAGE, "t__begun") is not None
    assert "sqb.lease.begun" in lake.namespace_properties(STAGE)


def write_lease(lake: SqlCatalog, **changes: Any) -> None:
    with Lease(lake, STAGE, "model"):
        mine = json.loads(lake.namespace_properties(STAGE)["sqb.lease.model"])
    lake.set_namespace_property(STAGE, "sqb.lease.run1", json.dumps({**mine, **changes}))


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@pytest.mark.parametrize(
    ("changes", "live"),
    [
        ({}, True),
        ({"expires": 5}, False),
        ({"pid": "dead"}, False),
        ({"pid": "dead", "host": "elsewhere"}, True),
        ({"started": 1}, False),
        ({"started": None}, True),
    ],
)
def test_a_lease_lapses_with_time_or_with_its_process(
    lake: SqlCatalog, changes: dict[str, Any], live: bool
) -> None:
    if changes.get("started") == 1 and not Path("/proc/self/stat").exists():
        pytest.skip("needs /proc")
    if changes.get("pid") == "dead":
        changes = {**changes, "pid": dead_process()}
    alias = register(lake, "run1")
    write_lease(lake, **changes)
    assert lapsed(lake, STAGE, time.time()) == ([] if live else [alias])


def test_a_lease_nobody_can_read_protects_nothing(lake: SqlCatalog) -> None:
    alias = register(lake, "run1")
    lake.set_namespace_property(STAGE, "sqb.lease.run1", "{")
    assert lapsed(lake, STAGE, time.time()) == [alias]
