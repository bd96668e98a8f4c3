"""Descriptions become comments of tables, views and columns, and rebuild nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conftest import Workbench

HEADER = (
    "MODEL ({kind}description \"{about}\", columns (id (type INT, description '{column}')));\n"
    "SELECT id, 1 AS one FROM {{raw}}.t"
)


def describe(bench: Workbench, about: str, column: str) -> None:
    bench.model("a_table", HEADER.format(kind="", about=about, column=column))
    bench.model("a_view", HEADER.format(kind="materialized view, ", about=about, column=column))
    bench.model(
        "parted",
        HEADER.format(kind="partitioned_by [id], ", about=about, column=column),
    )


def comments(bench: Workbench, name: str) -> tuple[str | None, dict[str, str]]:
    """What Spark shows: the comment of a relation and of its columns."""
    told = bench.sql(f"DESCRIBE TABLE EXTENDED lake.{{dev}}.{name}")
    columns = {str(row[0]): str(row[2]) for row in told[:2] if row[2]}
    about = next((str(row[1]) for row in told if row[0] == "Comment"), None) or None
    return about, columns


def test_descriptions_are_comments_and_an_edit_of_one_rebuilds_nothing(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1), (2)")
    describe(bench, "What it is", "Its number")
    names = ("a_table", "parted", "a_view")
    assert bench.told() == dict.fromkeys(names, ("success", "first_run"))
    for name in names:
        assert comments(bench, name) == ("What it is", {"id": "Its number"}), name
    assert bench.plan().redescribe == ()
    before = bench.sql("SELECT snapshot_id FROM lake.{dev}.a_table.snapshots")

    describe(bench, "Something else", "Another")
    plan = bench.plan()
    assert {n.action for n in plan.nodes} == {"skip"}
    assert set(plan.redescribe) == set(names)
    assert bench.told() == {}
    for name in names:
        assert comments(bench, name) == ("Something else", {"id": "Another"}), name
    assert bench.sql("SELECT snapshot_id FROM lake.{dev}.a_table.snapshots") == before
    assert bench.plan().redescribe == ()
    assert bench.told() == {}

    for name, kind in (("a_table", ""), ("a_view", "MODEL (materialized view);\n")):
        bench.model(name, f"{kind}SELECT id, 1 AS one FROM {{raw}}.t")
        bench.told(name)
        assert comments(bench, name) == (None, {}), name
    # comments survive new rows, and the rows are right
    bench.sql("INSERT INTO lake.{raw}.t VALUES (3)")
    assert bench.told("parted") == {"parted": ("success", "source_changed")}
    assert comments(bench, "parted") == ("Something else", {"id": "Another"})
    assert bench.rows("parted") == [(1, 1), (2, 1), (3, 1)]


def test_a_comment_that_someone_else_wrote_stays(bench: Workbench) -> None:
    bench.model("m", "SELECT 1 AS id, 2 AS two")
    bench.told()
    bench.sql("COMMENT ON TABLE lake.{dev}.m IS 'by hand'")
    bench.sql("ALTER TABLE lake.{dev}.m ALTER COLUMN two COMMENT 'mine'")
    assert bench.told() == {}
    bench.model(
        "m", "MODEL (columns (id (type INT, description 'ours')));\nSELECT 1 AS id, 2 AS two"
    )
    assert bench.told() == {}
    assert comments(bench, "m") == ("by hand", {"id": "ours", "two": "mine"})


def test_a_moved_alias_is_told_as_a_move(bench: Workbench, catalog_kind: str) -> None:
    bench.model("m", "SELECT 1 AS id")
    bench.told()
    bench.model("m", "MODEL (alias shop_m);\nSELECT 1 AS id")
    node = bench.plan().nodes[0]
    assert node.reason == "relation_missing"
    # on a REST catalog only what is expected is looked at, so the old place is not seen
    moved = {"kind": "moved", "name": f"{bench.schema}.m"}
    assert node.detail == (None if catalog_kind == "rest" else moved)
    bench.told()
    assert bench.plan().nodes[0].action == "skip"


def test_the_inputs_of_an_explanation_say_what_is_there(bench: Workbench) -> None:
    bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
    bench.model("v", "MODEL (materialized view);\nSELECT id FROM {raw}.t")
    bench.model("m", "SELECT id FROM v")
    bench.model("below", "MODEL (materialized view);\nSELECT id FROM m")
    bench.model("last", "SELECT id FROM below")

    def inputs(name: str) -> list[tuple[str, bool | None, str | None]]:
        found = bench.project().explain(name).inputs
        return [(item.name, item.changed, item.note) for item in found]

    assert inputs("m") == [("v", None, None)]
    assert inputs("last") == [("below", None, "known when m ran")]
    bench.told()
    assert inputs("m") == [("v", False, None)]
    bench.sql("INSERT INTO lake.{raw}.t VALUES (1)")
    assert inputs("m") == [("v", True, None)]
    assert inputs("last") == [("below", None, "known when m ran")]
    bench.model("last", "SELECT 1 AS id")
    assert inputs("last") == [("below", None, "no longer read")]
