from __future__ import annotations

from typing import Any

from sqb.lake.views import MAX_VERSIONS, view_metadata

INT = {"fields": [{"id": 1, "name": "a", "type": "int", "required": False}]}
TEXT = {"fields": [{"id": 1, "name": "a", "type": "string", "required": False}]}


def made(
    sql: str, schema: dict[str, Any], previous: dict[str, Any] | None, **properties: str
) -> dict[str, Any]:
    return view_metadata(
        uuid="new",
        location="/lake/db/v",
        sql=sql,
        schema=schema,
        catalog_name="lake",
        namespace="db",
        properties=properties,
        previous=previous,
        now_ms=1000 if previous is None else 2000,
    )


def test_a_new_view_has_one_version() -> None:
    view = made("SELECT 1 AS a", INT, None, k="v")
    assert (view["view-uuid"], view["format-version"], view["current-version-id"]) == ("new", 1, 1)
    (version,) = view["versions"]
    assert version["representations"] == [
        {"type": "sql", "sql": "SELECT 1 AS a", "dialect": "spark"}
    ]
    assert (version["default-catalog"], version["default-namespace"]) == ("lake", ["db"])
    assert view["version-log"] == [{"version-id": 1, "timestamp-ms": 1000}]
    assert view["properties"] == {"k": "v"}


def test_a_replaced_view_keeps_uuid_location_and_history() -> None:
    first = {**made("SELECT 1 AS a", INT, None), "view-uuid": "old", "location": "/there"}
    second = made("SELECT 'x' AS a", TEXT, first)
    assert (second["view-uuid"], second["location"]) == ("old", "/there")
    assert [v["version-id"] for v in second["versions"]] == [1, 2]
    assert [s["schema-id"] for s in second["schemas"]] == [0, 1]
    third = made("SELECT 2 AS a", INT, second)
    assert third["versions"][-1]["schema-id"] == 0


def test_equal_sql_with_other_properties_is_no_new_version() -> None:
    first = made("SELECT 1 AS a", INT, None, k="1")
    second = made("SELECT 1 AS a", INT, first, k="2")
    assert second["versions"] == first["versions"]
    assert second["properties"] == {"k": "2"}


def test_history_is_bounded_and_drops_schemas_nobody_uses() -> None:
    view = made("SELECT 'x' AS a", TEXT, None)
    for i in range(30):
        view = made(f"SELECT {i} AS a", INT, view)
    assert len(view["versions"]) == len(view["version-log"]) == MAX_VERSIONS
    assert view["versions"][-1]["version-id"] == view["current-version-id"] == 31
    assert [s["schema-id"] for s in view["schemas"]] == [1]
