from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from sqb.errors import SqbError
from sqb.lake import facts as module
from sqb.lake.catalog import Head
from sqb.lake.facts import FactsCache
from sqb.lake.metadata import Column, TableFacts, read_facts


def made(number: int) -> TableFacts:
    columns = tuple(Column(i, f"column_{i}", "string", False) for i in range(10))
    return TableFacts(
        kind="table",
        uuid=f"uuid-{number}",
        location=f"/warehouse/db/table_{number}",
        snapshot_id=number,
        data_snapshot_id=number,
        data_timestamp_ms=number,
        schema_id=0,
        columns=columns,
        snapshot_columns=None,
        partitioning=("days(ts)",),
        sort_order=(),
        format_version=2,
        properties={"owner": "me", "write.delete.mode": "copy-on-write"},
        stamp="x" * 1000,
        total_records=5,
    )


def test_what_was_read_once_is_never_read_again(target: Head, tmp_path: Path) -> None:
    path = tmp_path / "cache" / "facts.msgpack"
    cache = FactsCache(path)
    assert cache.get_many([target.location]) == {target.location: read_facts(target.location)}
    assert cache.save()
    assert not cache.save()
    expected = read_facts(target.location)
    Path(target.location).unlink()
    again = FactsCache(path)
    assert again.get(target.location) == expected
    assert not again.save()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    "content", [b"", b"\xc1junk", msgspec.msgpack.encode([0, {}]), msgspec.msgpack.encode([1])]
)
def test_a_cache_that_is_damaged_or_older_is_ignored(
    target: Head, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "facts"
    path.write_bytes(content)
    cache = FactsCache(path)
    assert cache.get(target.location).total_records == 2
    assert cache.save()
    assert FactsCache(path).get(target.location) == cache.get(target.location)


def test_an_unreadable_file_is_not_remembered(tmp_path: Path) -> None:
    cache = FactsCache(tmp_path / "facts", warehouse="/w")
    with pytest.raises(SqbError, match="L002"):
        cache.get("/gone/m.json")
    assert not cache.save()


def test_entries_nobody_asks_for_go_when_they_outgrow_the_live_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PRUNE_FLOOR", 5)
    path = tmp_path / "facts"
    first = FactsCache(path)
    for i in range(20):
        first.add(f"/m/{i}", made(i))
    first.save()
    second = FactsCache(path)
    second.get("/m/0")
    second.add("/m/new", made(99))
    second.save(live=["/m/1"])
    kept = msgspec.msgpack.decode(path.read_bytes())[1]
    assert set(kept) == {"/m/0", "/m/1", "/m/new"}


def test_all_entries_are_loaded_at_once_and_nothing_else_is_read(tmp_path: Path) -> None:
    path = tmp_path / "facts"
    cache = FactsCache(path)
    for i in range(100):
        cache.add(f"/warehouse/db/table_{i}/metadata/00001.metadata.json", made(i))
    cache.save()

    def never(location: str) -> bytes:
        raise AssertionError(f"{location} was read")

    again = FactsCache(path, "", never)
    assert again.get("/warehouse/db/table_7/metadata/00001.metadata.json").snapshot_id == 7
    path.unlink()
    assert again.get("/warehouse/db/table_9/metadata/00001.metadata.json").snapshot_id == 9
