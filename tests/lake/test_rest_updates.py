"""The difference of two metadata documents as REST updates, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from sqb.lake.rest_updates import (
    main_of,
    on_branch,
    only_on,
    property_updates,
    requirements,
    table_updates,
    view_updates,
)

SCHEMA = {"type": "struct", "schema-id": 0, "fields": []}
SPEC = {"spec-id": 0, "fields": []}
BASE: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": "u",
    "schemas": [SCHEMA],
    "current-schema-id": 0,
    "partition-specs": [SPEC],
    "default-spec-id": 0,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
    "snapshots": [{"snapshot-id": 1, "sequence-number": 1}],
    "refs": {"main": {"type": "branch", "snapshot-id": 1}, "b": {"snapshot-id": 2}},
}
NEW = {"snapshot-id": 2, "sequence-number": 2}
OTHER = {**SCHEMA, "schema-id": 1}
MAIN = {"type": "branch", "action": "set-snapshot-ref", "ref-name": "main", "snapshot-id": 2}

CASES: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("nothing", {}, []),
    (
        "new rows",
        {"snapshots": [NEW, *BASE["snapshots"]], "refs": {"main": {"snapshot-id": 2}}},
        [{"action": "add-snapshot", "snapshot": NEW}, MAIN],
    ),
    ("no rows", {"refs": {}}, [{"action": "remove-snapshot-ref", "ref-name": "main"}]),
    (
        "another schema",
        {"schemas": [SCHEMA, OTHER], "current-schema-id": 1},
        [
            {"action": "add-schema", "schema": OTHER},
            {"action": "set-current-schema", "schema-id": -1},
        ],
    ),
    (
        "a schema that was there before",
        {"current-schema-id": 7},
        [{"action": "set-current-schema", "schema-id": 7}],
    ),
    (
        "other partitions",
        {"partition-specs": [SPEC, {"spec-id": 1}], "default-spec-id": 1},
        [
            {"action": "add-spec", "spec": {"spec-id": 1}},
            {"action": "set-default-spec", "spec-id": -1},
        ],
    ),
    (
        "another order",
        {"sort-orders": [{"order-id": 3}], "default-sort-order-id": 3},
        [
            {"action": "add-sort-order", "sort-order": {"order-id": 3}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
        ],
    ),
    (
        "a newer format",
        {"format-version": 3},
        [{"action": "upgrade-format-version", "format-version": 3}],
    ),
]


@pytest.mark.parametrize(("title", "change", "updates"), CASES)
def test_what_changed_becomes_updates(
    title: str, change: dict[str, Any], updates: list[dict[str, Any]]
) -> None:
    assert table_updates(BASE, {**BASE, **change}) == updates, title


def test_a_commit_requires_the_data_it_started_from() -> None:
    kinds = {r["type"]: r for r in requirements(BASE)}
    assert kinds["assert-ref-snapshot-id"]["snapshot-id"] == 1
    assert kinds["assert-table-uuid"]["uuid"] == "u"
    assert set(kinds) == {
        "assert-table-uuid",
        "assert-ref-snapshot-id",
        "assert-current-schema-id",
        "assert-default-spec-id",
    }
    empty = requirements({**BASE, "refs": {}, "current-snapshot-id": -1})
    assert empty[1]["snapshot-id"] is None


def test_properties_are_set_and_removed_one_by_one() -> None:
    assert property_updates({"a": "1"}, {"a": "1"}) == []
    assert property_updates({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == [
        {"action": "set-properties", "updates": {"b": "3", "c": "4"}},
        {"action": "remove-properties", "removals": ["a"]},
    ]


def test_a_branch_seen_as_main() -> None:
    seen = on_branch(BASE, "b")
    assert main_of(seen) == 2
    assert "b" not in seen["refs"]
    assert main_of(BASE) == 1


def test_a_view_gets_a_version_only_if_it_changed() -> None:
    version = {"version-id": 1, "schema-id": 0, "representations": []}
    base = {"versions": [version], "schemas": [SCHEMA], "current-version-id": 1}
    assert view_updates(base, base) == []
    newer = {**version, "version-id": 2, "representations": [2]}
    after = {**base, "versions": [version, newer], "current-version-id": 2}
    actions = [update["action"] for update in view_updates(base, after)]
    assert actions == ["add-view-version", "set-current-view-version"]
    changed = {**version, "version-id": 3, "representations": [1]}
    back = {**base, "versions": [version, changed], "current-version-id": 3}
    again = {**version, "version-id": 4}
    wanted = {**back, "versions": [version, changed, again], "current-version-id": 4}
    assert view_updates(back, wanted) == [
        {"action": "set-current-view-version", "view-version-id": 1}
    ]
    newer["schema-id"] = 1
    after["schemas"] = [SCHEMA, OTHER]
    actions = [update["action"] for update in view_updates(base, after)]
    assert actions == ["add-schema", "add-view-version", "set-current-view-version"]


def test_snapshots_that_only_a_branch_has() -> None:
    chain = [
        {"snapshot-id": 1},
        {"snapshot-id": 2, "parent-snapshot-id": 1},
        {"snapshot-id": 3, "parent-snapshot-id": 2},
        {"snapshot-id": 4, "parent-snapshot-id": 3},
    ]
    refs = {"main": {"snapshot-id": 2}, "b": {"snapshot-id": 4}}
    document = {"snapshots": chain, "refs": refs}
    assert only_on(document, "b") == {3, 4}
    assert only_on({**document, "refs": {**refs, "tag": {"snapshot-id": 3}}}, "b") == {4}
    assert only_on({**document, "refs": {**refs, "b": {"snapshot-id": 1}}}, "b") == set()
    # main was there once and was rolled back
    assert only_on({**document, "snapshot-log": [{"snapshot-id": 3}]}, "b") == {4}
