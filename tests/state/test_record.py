"""What is true of a relation: stamp, state row, or neither."""

from __future__ import annotations

import msgspec
import pytest
from records import AMENDMENT, FACTS, STAMP, of

from sqb.lake.metadata import TableFacts
from sqb.state.definition import pack, unpack
from sqb.state.record import Record, decode, encode, needs_repair, truth, untouched
from sqb.state.tables import Fingerprint, fingerprint_rows, record_of, text_of

TRUTHS = [
    ("no relation", STAMP, AMENDMENT, None, None),
    ("neither stamp nor row", None, None, FACTS, None),
    ("a stamp alone", STAMP, None, FACTS, STAMP),
    ("a newer row that names the stamped commit", STAMP, AMENDMENT, FACTS, AMENDMENT),
    ("an older row", STAMP, of(AMENDMENT, ts=50), FACTS, STAMP),
    ("a row that names another commit", STAMP, of(AMENDMENT, snapshot=4), FACTS, STAMP),
    ("a row of another table of that name", STAMP, of(AMENDMENT, uuid="w"), FACTS, STAMP),
    ("a stamp copied from another table", of(STAMP, uuid="w"), None, FACTS, None),
    ("no stamp, but a row that names the head", None, AMENDMENT, FACTS, AMENDMENT),
    (
        "no stamp, and a row that names an older commit",
        None,
        of(AMENDMENT, snapshot=4),
        FACTS,
        None,
    ),
]


@pytest.mark.parametrize(
    ("stamp", "row", "facts", "expected"), [t[1:] for t in TRUTHS], ids=[t[0] for t in TRUTHS]
)
def test_the_newest_record_that_names_the_published_commit_is_true(
    stamp: Record | None, row: Record | None, facts: TableFacts | None, expected: Record | None
) -> None:
    assert truth(stamp, row, facts) == expected


TOUCHES = [
    ("nothing", {}, True),
    ("a compaction", {"snapshot_id": 9}, True),
    ("a write", {"snapshot_id": 9, "data_snapshot_id": 9}, False),
    ("an ALTER", {"shape": "other"}, False),
    ("another table", {"uuid": "w"}, False),
]


@pytest.mark.parametrize(("change", "same"), [t[1:] for t in TOUCHES], ids=[t[0] for t in TOUCHES])
def test_what_someone_else_did_is_seen(change: dict[str, object], same: bool) -> None:
    assert untouched(STAMP, msgspec.structs.replace(FACTS, **change)) == same


def test_a_published_relation_without_its_row_is_repaired() -> None:
    assert needs_repair(STAMP, None)
    assert needs_repair(STAMP, of(STAMP, ts=50))
    assert not needs_repair(STAMP, STAMP)
    assert not needs_repair(AMENDMENT, AMENDMENT)


def test_a_record_survives_stamp_and_row() -> None:
    assert decode(encode(STAMP)) == STAMP
    row = fingerprint_rows([Fingerprint(STAMP, "lake", "dev", "m", "SELECT 'ä'")])[0]
    assert record_of(row["metadata_json_b64"]) == STAMP
    assert text_of(row["definition_b64"]) == "SELECT 'ä'"
    assert (row["definition_hash"], row["version_hash"]) == ("q", "v")


def test_a_later_version_may_add_fields_and_foreign_text_is_no_record() -> None:
    assert decode(encode(STAMP)[:-1] + ',"new": 1}') == STAMP
    assert decode("{}") is None
    assert decode("not json") is None
    assert record_of("e30=") is None
    assert record_of("!!") is None


@pytest.mark.parametrize("text", ["", "SELECT 1", "ä" * 5000])
def test_definitions_survive_packing(text: str) -> None:
    assert unpack(pack(text)) == text
    assert unpack("no such thing") is None
