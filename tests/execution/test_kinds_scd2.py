"""``scd2``: versions of the query's rows by key, each with the time it was valid."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pytest
from kinds import built, counts, how, insert, refused, source

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof

VERSIONS = "id, name, date_format(valid_from, 'd'), date_format(valid_to, 'd')"


def at(bench: Workbench, day: int) -> None:
    bench.environ["SQB_NOW"] = f"2026-03-{day:02d}T00:00:00Z"


def history(bench: Workbench, header: str = "", sql: str = "SELECT id, name FROM {raw}.t") -> None:
    source(bench, "t", "id INT, name STRING, note STRING, u TIMESTAMP")
    for row in ("1, 'a'", "2, 'b'", "3, 'c'"):
        insert(bench, "t", f"({row}, NULL, TIMESTAMP'2026-01-0{row[0]} 00:00:00')")
    bench.model("m", f"MODEL (materialized scd2, unique_key [id]{header});\n{sql}")
    at(bench, 1)


def versions(bench: Workbench) -> list[tuple[object, ...]]:
    """Id, name, day it began, day it ended."""
    return bench.rows("m", VERSIONS)


@pytest.mark.parametrize(("way", "strategy"), [("rows", "affected_key"), ("full", "compare")])
def test_rows_that_change_vanish_and_come_back_make_versions(
    bench: Workbench, way: str, strategy: str
) -> None:
    history(bench)
    assert counts(built(bench)) == (3, 0, 3)
    at(bench, 2)
    bench.sql("UPDATE lake.{raw}.t SET name = 'B' WHERE id = 2")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 3")
    insert(bench, "t", "(4, NULL, NULL, NULL)")
    node = built(bench, refresh=way)
    assert (how(node), counts(node)) == (strategy, (4, 2, 5))
    then = [
        (1, "a", "1", None),
        (2, "B", "2", None),
        (2, "b", "1", "2"),
        (3, "c", "1", "2"),
        (4, None, "2", None),
    ]
    assert versions(bench) == then
    at(bench, 3)
    assert bench.told() == {}
    assert counts(built(bench, force=True)) == (0, 0, 5)
    insert(bench, "t", "(3, 'c', NULL, NULL)")
    bench.sql("UPDATE lake.{raw}.t SET name = 'd' WHERE id = 4")
    built(bench, refresh=way)
    assert versions(bench)[3:] == [
        (3, "c", "1", "2"),
        (3, "c", "3", None),
        (4, None, "2", "3"),
        (4, "d", "3", None),
    ]
    at(bench, 4)
    bench.sql("DELETE FROM lake.{raw}.t WHERE true")
    built(bench, refresh=way)
    assert bench.sql("SELECT count(*) FROM lake.{dev}.m WHERE valid_to IS NULL") == [(0,)]


def test_only_checked_columns_make_versions_and_deletes_may_be_ignored(bench: Workbench) -> None:
    history(
        bench,
        ", check_columns [name], invalidate_hard_deletes false",
        "SELECT id, name, note, current_date() AS seen FROM {raw}.t",
    )
    built(bench)
    at(bench, 2)
    bench.sql("UPDATE lake.{raw}.t SET note = 'x'")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 1")
    node = built(bench)
    assert (node.status, counts(node)) == ("unchanged", (0, 0, 3))
    assert bench.sql("SELECT count(note) FROM lake.{dev}.m") == [(0,)]


def test_the_time_of_the_run_makes_no_version(bench: Workbench) -> None:
    history(
        bench,
        sql="SELECT id, name, d AS seen, now() AS t FROM (SELECT *, current_date() AS d "
        "FROM {raw}.t) AS s",
    )
    built(bench)
    at(bench, 2)
    assert built(bench).status == "unchanged"
    bench.sql("UPDATE lake.{raw}.t SET name = 'A' WHERE id = 1")
    assert counts(built(bench)) == (2, 1, 4)


def test_a_time_in_the_row_tells_versions(bench: Workbench) -> None:
    history(
        bench,
        ", snapshot_strategy timestamp, updated_at u, valid_from_column since, "
        "valid_to_column until",
        "SELECT id, name, u FROM {raw}.t",
    )
    built(bench)
    at(bench, 20)
    stamp = "TIMESTAMP'2026-03-{:02d} 00:00:00'"
    bench.sql(f"UPDATE lake.{{raw}}.t SET name = 'A', u = {stamp.format(9)} WHERE id = 1")
    # not later than what is there: no version
    bench.sql("UPDATE lake.{raw}.t SET name = 'B' WHERE id = 2")
    bench.sql("DELETE FROM lake.{raw}.t WHERE id = 3")
    built(bench)
    columns = "id, name, date_format(since, 'd.M'), date_format(until, 'd.M')"
    assert bench.rows("m", columns) == [
        (1, "A", "9.3", None),
        (1, "a", "1.1", "9.3"),
        (2, "b", "2.1", None),
        (3, "c", "3.1", "20.3"),
    ]
    # back with its old time: versions of a key never overlap
    insert(bench, "t", "(3, 'c', NULL, TIMESTAMP'2026-01-03 00:00:00')")
    at(bench, 21)
    built(bench)
    assert bench.rows("m", columns)[-1] == (3, "c", "3.1", "20.3")
    assert (3, "c", "20.3", None) in bench.rows("m", columns)
    insert(bench, "t", "(5, 'e', NULL, NULL)")
    error = refused(bench)
    assert (error["code"], "id = 5" in str(error["message"])) == ("X007", True)


def test_bad_keys_and_columns_are_refused(bench: Workbench) -> None:
    history(bench)
    built(bench)
    before = versions(bench)
    for row in ("(1, 'z', NULL, NULL)", "(NULL, 'z', NULL, NULL)"):
        insert(bench, "t", row)
        assert refused(bench)["code"] == "X007"
        bench.sql("DELETE FROM lake.{raw}.t WHERE name = 'z'")
    assert versions(bench) == before
    bench.model(
        "m",
        "MODEL (materialized scd2, unique_key [id]);\nSELECT id, u AS valid_from FROM {raw}.t",
    )
    assert "valid_from_column" in str(refused(bench)["help"])


def test_history_stays_when_the_definition_changes(bench: Workbench) -> None:
    history(bench)
    built(bench)
    at(bench, 2)
    bench.model(
        "m", "MODEL (materialized scd2, unique_key [id]);\nSELECT id, name, note FROM {raw}.t"
    )
    bench.sql("UPDATE lake.{raw}.t SET note = 'new' WHERE id = 2")
    node = built(bench)
    assert counts(node) == (2, 1, 4)
    assert bench.rows("m", "id, note, date_format(valid_from, 'd')") == [
        (1, None, "1"),
        (2, None, "1"),
        (2, "new", "2"),
        (3, None, "1"),
    ]
    for header in ("materialized append", "materialized view"):
        bench.model("m", f"MODEL ({header});\nSELECT id, name FROM {{raw}}.t")
        assert refused(bench)["code"] == "X008"
    assert len(bench.rows("m")) == 4
    assert isinstance(bench.rows("m", "valid_from")[0][0], datetime)


@pytest.mark.parametrize("kind", ["scd2", "merge, deletes keep"])
def test_a_column_that_came_without_rows_does_not_stop_history(bench: Workbench, kind: str) -> None:
    source(bench, "t", "id INT, v INT", "(1, 1)", "(2, 2)")
    bench.model("m", f"MODEL (materialized {kind}, unique_key [id]);\nSELECT * FROM {{raw}}.t")
    built(bench)
    bench.sql("ALTER TABLE lake.{raw}.t ADD COLUMN w INT")
    assert counts(built(bench)) == (0, 0, 2)
    bench.sql("UPDATE lake.{raw}.t SET w = 9 WHERE id = 1")
    insert(bench, "t", "(3, 3, 3)")
    built(bench)
    rows = [(1, 1, 9), (2, 2, None), (3, 3, 3)]
    assert bench.rows("m", "id, v, w") == [(1, 1, None)] * (kind == "scd2") + rows


def test_a_header_that_was_edited_must_fit_the_history(bench: Workbench) -> None:
    source(bench, "t", "count INT, v INT, w INT", "(1, 1, 1)", "(2, 1, 2)")
    header, query = "MODEL (materialized scd2, unique_key [{}]);\n", "SELECT count, v FROM {raw}.t"
    bench.model("m", header.format("count") + query)
    built(bench)
    bench.model("m", header.format("v") + query)
    assert refused(bench)["code"] == "X008"
    checked = header.format("count], check_columns [v")
    bench.model("m", checked + query.replace("v", "w"))
    error = refused(bench)
    assert (error["code"], "`v`" in str(error["message"])) == ("X007", True)
    bench.model("m", checked + query.replace("v", "v, w"))
    assert counts(built(bench)) == (0, 0, 2)


@pytest.mark.parametrize("header", ["materialized scd2", "materialized merge, deletes keep"])
@pytest.mark.parametrize("widened", ["source", "query"])
def test_a_float_may_be_widened_while_rows_change(
    bench: Workbench, header: str, widened: str
) -> None:
    source(bench, "t", "id INT, f FLOAT", "(1, 0.1)", "(2, 0.2)")
    model = f"MODEL ({header}, unique_key [id]);\nSELECT id, {{}} AS f FROM {{{{raw}}}}.t"
    bench.model("m", model.format("f"))
    built(bench)
    if widened == "source":
        bench.sql("ALTER TABLE lake.{raw}.t ALTER COLUMN f TYPE DOUBLE")
    else:
        bench.model("m", model.format("CAST(f AS DOUBLE)"))
    bench.sql("UPDATE lake.{raw}.t SET f = 0.5 WHERE id = 2")
    built(bench)
    still = 0.10000000149011612
    assert [row for row in bench.rows("m", "id, f") if row != (2, 0.20000000298023224)] == [
        (1, still),
        (2, 0.5),
    ]


@pytest.mark.parametrize("behind", ["view", "expression"])
def test_the_time_of_the_run_behind_a_view_makes_no_version(bench: Workbench, behind: str) -> None:
    history(bench, sql="SELECT id, dd FROM x")
    sql = "SELECT id, current_date() AS dd FROM {raw}.t"
    if behind == "view":
        bench.model("x", f"MODEL (materialized view);\n{sql}")
    else:
        bench.write("sources/x.yml", f"sources:\n  - {{name: x, expression: '{sql}'}}\n")
    built(bench)
    at(bench, 2)
    insert(bench, "t", "(4, 'd', NULL, NULL)")
    assert counts(built(bench)) == (1, 0, 4)


def test_the_times_of_versions_stay_where_they_are(bench: Workbench) -> None:
    history(bench)
    built(bench)
    sql = "SELECT id, name FROM {raw}.t"
    swapped = "valid_from_column valid_to, valid_to_column valid_from"
    bench.model("m", f"MODEL (materialized scd2, unique_key [id], {swapped});\n{sql}")
    bench.sql("UPDATE lake.{raw}.t SET name = 'B' WHERE id = 2")
    assert refused(bench)["code"] == "X008"
    assert len(versions(bench)) == 3


@pytest.mark.parametrize("name", ["sqb_end", "n", "o", "c"])
def test_a_key_of_versions_may_be_named_as_anything(bench: Workbench, name: str) -> None:
    source(bench, "t", f"{name} INT, v INT", "(1, 1)", "(2, 2)")
    bench.model("m", f"MODEL (materialized scd2, unique_key [{name}]);\nSELECT * FROM {{raw}}.t")
    built(bench)
    bench.sql("UPDATE lake.{raw}.t SET v = 3 WHERE v = 1")
    assert counts(built(bench)) == (2, 1, 3)


def test_a_version_whose_time_is_missing_is_told_whatever_its_key(bench: Workbench) -> None:
    source(bench, "t", "id TIMESTAMP, at TIMESTAMP", "(TIMESTAMP'0001-01-01 00:00:00', NULL)")
    bench.model(
        "m",
        "MODEL (materialized scd2, unique_key [id], snapshot_strategy timestamp, updated_at at);"
        "\nSELECT * FROM {raw}.t",
    )
    error = refused(bench)
    assert (error["code"], "id = 0001-01-01" in str(error["message"])) == ("X007", True)
