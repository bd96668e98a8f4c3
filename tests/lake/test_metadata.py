from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from sqb.errors import SqbError
from sqb.lake.catalog import Head
from sqb.lake.facts import FactsCache
from sqb.lake.metadata import (
    DEFINITION,
    STAMP,
    Column,
    canonical_type,
    columns_of,
    parse_facts,
    read_facts,
    schema_hash,
)


def snapshot(
    id_: int, operation: str, parent: int | None = None, schema: int = 1
) -> dict[str, Any]:
    return {
        "snapshot-id": id_,
        "parent-snapshot-id": parent,
        "timestamp-ms": id_ * 1000,
        "schema-id": schema,
        "manifest-list": f"/t/{id_}.avro",
        "summary": {"operation": operation, "total-records": str(id_)},
    }


def field(id_: int, name: str, kind: Any, *, required: bool = False) -> dict[str, Any]:
    return {"id": id_, "name": name, "type": kind, "required": required, "doc": "words"}


POINT = {"type": "struct", "fields": [field(4, "x", "int", required=True), field(5, "y", "int")]}


def document(**changes: Any) -> dict[str, Any]:
    made = {
        "format-version": 2,
        "table-uuid": "u",
        "location": "/t",
        "current-schema-id": 1,
        "schemas": [
            {"schema-id": 0, "type": "struct", "fields": [field(1, "id", "long", required=True)]},
            {
                "schema-id": 1,
                "type": "struct",
                "fields": [
                    field(1, "id", "long", required=True),
                    field(2, "ts", "timestamptz"),
                    field(3, "p", POINT),
                    field(6, "s", "string"),
                ],
            },
        ],
        "default-spec-id": 1,
        "partition-specs": [
            {"spec-id": 0, "fields": []},
            {
                "spec-id": 1,
                "fields": [
                    {"source-id": 2, "field-id": 1000, "transform": "day", "name": "d"},
                    {"source-id": 1, "field-id": 1001, "transform": "bucket[16]", "name": "b"},
                    {"source-id": 6, "field-id": 1002, "transform": "truncate[4]", "name": "u"},
                    {"source-id": 6, "field-id": 1003, "transform": "void", "name": "v"},
                    {"source-id": 5, "field-id": 1004, "transform": "identity", "name": "k"},
                ],
            },
        ],
        "default-sort-order-id": 1,
        "sort-orders": [
            {"order-id": 0, "fields": []},
            {
                "order-id": 1,
                "fields": [
                    {
                        "source-id": 6,
                        "transform": "identity",
                        "direction": "desc",
                        "null-order": "nulls-last",
                    }
                ],
            },
        ],
        "properties": {"a": "b", STAMP: "{}", DEFINITION: "select 1"},
        "snapshots": [snapshot(7, "append")],
        "refs": {"main": {"snapshot-id": 7, "type": "branch"}},
    }
    return {**made, **changes}


def facts_of(**changes: Any) -> Any:
    return parse_facts(msgspec.json.encode(document(**changes)), "/t/m.json")


def test_a_table_says_all_that_planning_asks() -> None:
    facts = facts_of()
    assert (facts.kind, facts.uuid, facts.location) == ("table", "u", "/t")
    assert (facts.snapshot_id, facts.data_snapshot_id, facts.data_timestamp_ms) == (7, 7, 7000)
    assert facts.total_records == 7
    assert facts.partitioning == ("days(ts)", "bucket(16, id)", "truncate(4, s)", "p.y")
    assert facts.sort_order == ("s DESC NULLS LAST",)
    assert facts.properties == {"a": "b"}
    assert facts.stamp == "{}"
    assert facts.columns[0] == Column(1, "id", "long", True)
    assert [c.name for c in facts.columns] == ["id", "ts", "p", "s"]
    assert '"id":5' in facts.columns[2].type
    assert "words" not in facts.columns[2].type
    assert facts.snapshot_columns is None


def test_a_snapshot_of_an_older_schema_keeps_its_own_columns() -> None:
    facts = facts_of(snapshots=[snapshot(7, "append", schema=0)])
    assert facts.snapshot_columns == (Column(1, "id", "long", True),)


def test_a_column_says_what_rows_from_before_it_have_in_it() -> None:
    fields = [
        {"id": 1, "name": "a", "required": False, "type": "int", "initial-default": 5},
        {"id": 2, "name": "b", "required": False, "type": "string", "initial-default": "x"},
        {"id": 3, "name": "c", "required": False, "type": "int", "write-default": 5},
    ]
    assert [column.default for column in columns_of(fields)] == ["5", '"x"', ""]


@pytest.mark.parametrize(
    ("snapshots", "main", "data"),
    [
        ([], None, None),
        ([snapshot(1, "append"), snapshot(2, "overwrite", 1)], 2, 2),
        ([snapshot(1, "append"), snapshot(2, "replace", 1), snapshot(3, "replace", 2)], 3, 1),
        ([snapshot(2, "replace", 1), snapshot(3, "replace", 2)], 3, 2),
        ([snapshot(1, "append"), snapshot(2, "replace", 1), snapshot(3, "delete", 2)], 3, 3),
    ],
)
def test_snapshots_that_only_compact_count_as_none(
    snapshots: list[dict[str, Any]], main: int | None, data: int | None
) -> None:
    refs = {"main": {"snapshot-id": main, "type": "branch"}} if main else {}
    facts = facts_of(snapshots=snapshots, refs=refs)
    assert (facts.snapshot_id, facts.data_snapshot_id) == (main, data)


def test_a_table_of_format_one_is_read() -> None:
    old = {
        "format-version": 1,
        "location": "/t",
        "schema": {"type": "struct", "fields": [field(1, "id", "long")]},
        "partition-spec": [
            {"source-id": 1, "field-id": 1000, "transform": "identity", "name": "i"}
        ],
        "current-snapshot-id": -1,
    }
    facts = parse_facts(msgspec.json.encode(old), "/t/m.json")
    assert (facts.columns[0].name, facts.partitioning, facts.snapshot_id) == ("id", ("id",), None)


def test_a_real_table_is_read(target: Head, ice: Any) -> None:
    facts = read_facts(target.location)
    table = ice.load_table("db.t")
    assert facts.uuid == str(table.metadata.table_uuid)
    assert facts.snapshot_id == table.current_snapshot().snapshot_id
    assert facts.total_records == 2
    assert facts.columns == (Column(1, "id", "long", False), Column(2, "s", "string", False))
    assert FactsCache(None).definition(target.location) is None


@pytest.mark.parametrize(
    "change",
    [
        {"id": 2},
        {"name": "b"},
        {"type": "long"},
        {"required": True},
    ],
)
def test_the_schema_hash_sees_every_part_and_the_order(change: dict[str, Any]) -> None:
    column = Column(1, "a", "int", False)
    other = msgspec.structs.replace(column, **change)
    assert schema_hash([column]) != schema_hash([other])
    assert schema_hash([column, other]) != schema_hash([other, column])
    assert len(schema_hash([column])) == 32


def test_who_wrote_a_type_does_not_matter() -> None:
    assert canonical_type("decimal(9,2)") == canonical_type("decimal(9, 2)")
    written = {"value-required": False, "value": POINT, "value-id": 9, "key": "string"}
    one = canonical_type({"type": "map", "key-id": 8, **written})
    two = canonical_type({**written, "key-id": 8, "type": "map", "doc": "x"})
    assert one == two


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b'{"format-version": 2, "location": "/t"}',
        b'{"format-version": 1, "location": "/t", "view-uuid": "u"}',
        msgspec.json.encode(document(schemas=[{"schema-id": 1, "fields": [{"id": 1}]}])),
        msgspec.json.encode(document(schemas=[{"schema-id": 1, "fields": [field(1, "a", 5)]}])),
    ],
)
def test_a_damaged_file_is_an_error_with_help(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.json").write_bytes(data)
    with pytest.raises(SqbError) as caught:
        read_facts(f"{tmp_path}/m.json")
    assert (caught.value.code, caught.value.file) == ("L004", f"{tmp_path}/m.json")
    assert caught.value.help


@pytest.mark.parametrize(("folder", "code"), [("/elsewhere/lake", "L002"), ("/here/lake", "L004")])
def test_a_missing_file_outside_the_warehouse_tells_that_the_project_moved(
    folder: str, code: str
) -> None:
    with pytest.raises(SqbError) as caught:
        read_facts(f"{folder}/db/t/m.json", warehouse="/here/lake")
    assert caught.value.code == code
    assert caught.value.help
