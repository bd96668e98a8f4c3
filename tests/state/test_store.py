"""The state tables: latest rows win, unchanged heads cost no read, rows are only appended."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from pyiceberg.catalog.sql import SqlCatalog as IceCatalog
from pyiceberg.exceptions import ServerError
from records import STAMP, of

from sqb.errors import SqbError
from sqb.lake.catalog import SqlCatalog
from sqb.state.store import StateStore
from sqb.state.tables import Fingerprint, Observation


def fingerprint(name: str, ts: int, run: str = "r", schema: str = "dev") -> Fingerprint:
    return Fingerprint(of(STAMP, node=name, ts=ts, run=run), "lake", schema, name, f"text {ts}")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    SqlCatalog("lake", f"sqlite:///{tmp_path}/catalog.db", str(tmp_path)).ensure_namespace("dev")
    return tmp_path


def store(place: Path, *, cached: bool = True) -> StateStore:
    cache = place / "state.mp" if cached else None
    return StateStore("lake", f"sqlite:///{place}/catalog.db", str(place), cache)


def latest(
    place: Path, *, cached: bool = True, schemas: tuple[str, ...] = ("dev",)
) -> dict[str, int]:
    heads = SqlCatalog("lake", f"sqlite:///{place}/catalog.db", str(place)).heads()
    return {n: r.ts for n, r in store(place, cached=cached).latest(heads, schemas).items()}


@pytest.mark.parametrize("cached", [True, False])
def test_the_latest_row_of_each_node_wins(place: Path, cached: bool) -> None:
    assert latest(place) == {}
    store(place).append([fingerprint("a", 1), fingerprint("b", 1)], [], {})
    store(place).append([fingerprint("a", 3)], [], {})
    store(place).append([fingerprint("a", 2)], [], {})
    assert latest(place, cached=cached) == {"a": 3, "b": 1}


def test_equal_instants_are_settled_by_the_run(place: Path) -> None:
    store(place).append([fingerprint("a", 1, "r2")], [], {})
    store(place).append([fingerprint("a", 1, "r1")], [], {})
    heads = SqlCatalog("lake", f"sqlite:///{place}/catalog.db", str(place)).heads()
    assert store(place, cached=False).latest(heads, ["dev"])["a"].run == "r2"


def test_several_schemas_are_read_together(place: Path) -> None:
    store(place).append([fingerprint("a", 1), fingerprint("b", 2, schema="dev_marts")], [], {})
    assert latest(place, schemas=("dev", "dev_marts")) == {"a": 1, "b": 2}
    assert latest(place, schemas=("dev_marts",)) == {"b": 2}


def test_a_row_may_be_kept_in_another_schema_than_its_relation(place: Path) -> None:
    marts = fingerprint("b", 2, schema="marts")
    store(place).append([msgspec.structs.replace(marts, home="dev"), fingerprint("a", 1)], [], {})
    assert latest(place, cached=False) == {"a": 1, "b": 2}
    assert [row["target_schema"] for row in store(place).history(["dev"])] == ["dev", "marts"]


def test_what_another_process_appended_is_seen(place: Path) -> None:
    store(place).append([fingerprint("a", 1)], [], {})
    assert latest(place) == {"a": 1}
    store(place, cached=False).append([fingerprint("a", 5)], [], {})
    assert latest(place) == {"a": 5}


def test_appends_at_the_same_moment_lose_nothing(place: Path) -> None:
    store(place).append([fingerprint("start", 1)], [], {})
    threads = [
        threading.Thread(
            target=store(place, cached=False).append, args=([fingerprint(f"n{i}", i)], [], {})
        )
        for i in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert latest(place, cached=False) == {"start": 1, "n0": 0, "n1": 1, "n2": 2, "n3": 3}


@pytest.mark.parametrize("made", [True, False])
def test_a_server_that_breaks_when_two_make_a_schema_is_asked_whether_it_is_there(
    place: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    def breaks(catalog: IceCatalog, namespace: str) -> None:
        if made:
            catalog.create_namespace(namespace)
        raise ServerError("UncheckedSQLException")

    monkeypatch.setattr(IceCatalog, "create_namespace_if_not_exists", breaks)
    rows = [fingerprint("a", 1, schema="prod")]
    if made:
        store(place).append(rows, [], {})
        assert latest(place, schemas=("prod",)) == {"a": 1}
    else:
        with pytest.raises(SqbError, match="state tables: UncheckedSQLException") as caught:
            store(place).append(rows, [], {})
        assert caught.value.code == "L001"


def test_observations_go_to_the_schemas_of_their_readers(place: Path) -> None:
    seen = Observation("raw.x", "lake", "raw", "x", "r1", "u:s:1", "hash", 7)
    store(place).append([], [seen], {"raw.x": ["dev", "dev_marts"]})
    heads = SqlCatalog("lake", f"sqlite:///{place}/catalog.db", str(place)).heads()
    assert {ns for ns, name in heads if name == "_sqlbuild_source_freshness"} == {
        "dev",
        "dev_marts",
    }


def test_history_and_definitions_are_kept(place: Path) -> None:
    store(place).append([fingerprint("a", 1)], [], {})
    store(place).append([fingerprint("a", 2)], [], {})
    rows = store(place).history(["dev"])
    assert [row["node_name"] for row in rows] == ["a", "a"]
    assert store(place).definition(["dev"], "a") == "text 2"
    assert store(place).definition(["dev"], "b") is None
