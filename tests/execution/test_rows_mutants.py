"""Planted mistakes on the Spark side of a refresh: each must be seen by a small case.

A mistake is seen where a table is not what its query gives, where something is published though
nothing changed, or where the refresh itself finds that it did wrong and rebuilds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from proof import differences, maintained, way_of

from sqb.execution import change_sets, content_hash, rows, steps
from sqb.refresh import signed
from sqb.refresh.changes import TableChange, table_change

if TYPE_CHECKING:
    from conftest import Workbench

Patch = pytest.MonkeyPatch


def copies_that_come_are_not_counted(patch: Patch) -> None:
    whole = rows._measure

    def measure(*arguments):  # type: ignore[no-untyped-def]
        return msgspec.structs.replace(whole(*arguments), most=1)

    patch.setattr(rows, "_measure", measure)


def copies_that_stay_are_lost(patch: Patch) -> None:
    whole = rows._Refresh._write

    def write(self, frame, *arguments):  # type: ignore[no-untyped-def]
        patched = frame.withColumn(rows.COPIES, frame[rows.COPIES] * 0)
        patched.createOrReplaceTempView("sqb_signed")
        return whole(self, patched, *arguments)

    patch.setattr(rows._Refresh, "_write", write)


def zeros_are_alike_where_rows_go(patch: Patch) -> None:
    patch.setattr(rows, "exact", lambda _value, _kind: None)


def zeros_are_alike_in_a_change(patch: Patch) -> None:
    patch.setattr(signed, "exact", lambda _value, _kind: None)
    patch.setattr(change_sets, "exact", lambda _value, _kind: None)


def old_images_are_dropped(patch: Patch) -> None:
    whole = change_sets.Bound._raw

    def raw(self, source):  # type: ignore[no-untyped-def]
        return f"SELECT * FROM ({whole(self, source)}) AS sqb_x WHERE {change_sets.WEIGHT} > 0"

    patch.setattr(change_sets.Bound, "_raw", raw)


def null_is_in_no_range(patch: Patch) -> None:
    whole = steps.Range.of

    def of(self: steps.Range, expr: str) -> str:
        return whole(msgspec.structs.replace(self, nulls=False), expr)

    patch.setattr(steps.Range, "of", of)


def ranges_end_too_early(patch: Patch) -> None:
    whole = steps._range

    def narrow(found, place, kind, count):  # type: ignore[no-untyped-def]
        made = whole(found, place, kind, count)
        return made and msgspec.structs.replace(made, high=made.low)

    patch.setattr(steps, "_range", narrow)


def rewritten_rows_are_not_netted(patch: Patch) -> None:
    patch.setattr(change_sets, "groupable", lambda _kind: False)


def a_range_is_read_as_appends(patch: Patch) -> None:
    def change(*arguments):  # type: ignore[no-untyped-def]
        found = table_change(*arguments)
        known = found.way in ("changelog", "versions")
        return msgspec.structs.replace(found, way="append") if known else found

    patch.setattr(change_sets, "table_change", change)


def the_old_version_is_the_new_one(patch: Patch) -> None:
    whole = change_sets.Bound.relation

    def relation(self, name: str, version: str) -> str:  # type: ignore[no-untyped-def]
        return whole(self, name, "new" if version == "old" else version)

    patch.setattr(change_sets.Bound, "relation", relation)


def a_change_is_taken_for_none(patch: Patch) -> None:
    def change(_known: object, _old: object, new: int | None) -> TableChange:
        return TableChange("none", new, new)

    patch.setattr(change_sets, "table_change", change)


def the_hash_of_the_rows_is_not_maintained(patch: Patch) -> None:
    patch.setattr(content_hash, "after", lambda before, _change: before)


ALL_ROWS = "SELECT g, f FROM {raw}.t"
BY_GROUP = "SELECT g, count(*) AS n, sum(v) AS total, count(v) AS c FROM {raw}.t GROUP BY g"
LARGEST = "SELECT g, max(v) AS most FROM {raw}.t GROUP BY g"
#: The mistake, and the query whose refresh shows it.
MUTANTS: list[tuple[Callable[[Patch], None] | None, str]] = [
    (copies_that_come_are_not_counted, "SELECT g, v FROM {raw}.t WHERE g = 9"),
    (copies_that_stay_are_lost, "SELECT g, v FROM {raw}.t WHERE g = 7"),
    (zeros_are_alike_where_rows_go, "SELECT id, f FROM {raw}.t"),
    (zeros_are_alike_in_a_change, "SELECT id, f FROM {raw}.t WHERE id > 0"),
    (old_images_are_dropped, LARGEST),
    (null_is_in_no_range, LARGEST.replace("g,", "g, 1 AS one,")),
    (ranges_end_too_early, LARGEST.replace("g,", "g, 2 AS two,")),
    (rewritten_rows_are_not_netted, "SELECT id, w FROM {raw}.t WHERE id < 100"),
    (a_range_is_read_as_appends, BY_GROUP),
    (the_old_version_is_the_new_one, "SELECT n, count(*) AS m FROM ({by}) x GROUP BY n"),
    (a_change_is_taken_for_none, BY_GROUP.replace("g,", "g, 3 AS three,")),
    (the_hash_of_the_rows_is_not_maintained, BY_GROUP.replace("g,", "g, 4 AS four,")),
]
CHANGES = [
    "DELETE FROM lake.{raw}.t WHERE note = 'second'",
    "UPDATE lake.{raw}.t SET f = -f WHERE id IN (10, 11)",
    "UPDATE lake.{raw}.t SET v = v + 5 WHERE g IS NULL",
    "UPDATE lake.{raw}.t SET v = 0, g = 5 WHERE id = 3",
    "DELETE FROM lake.{raw}.t WHERE g = 4",
    "INSERT INTO lake.{raw}.t VALUES (20, 9, 9, 0.5, 1, ''), (20, 9, 9, 0.5, 1, '')",
]


@pytest.fixture(scope="module")
def changed(shared_bench: Workbench) -> Workbench:
    """A table for each mistake, built without it; then the rows below them change."""
    bench = shared_bench
    bench.sql(
        "CREATE TABLE lake.{raw}.t (id INT, g INT, v INT, f DOUBLE, w INT, note STRING)"
        " USING iceberg"
    )
    bench.sql(
        "INSERT INTO lake.{raw}.t VALUES (1, 1, 1, 0.5, 1, ''), (2, 1, 2, 0.5, 1, ''),"
        " (3, 1, 7, 0.5, 1, ''), (4, NULL, 3, 0.5, 1, ''), (5, 4, 3, 0.5, 1, ''),"
        " (6, 7, 3, 0.5, 1, 'first'), (6, 7, 3, 0.5, 1, 'second'), (6, 7, 3, 0.5, 1, ''),"
        " (10, 2, 1, 0.0, 1, ''), (11, 2, 1, -0.0D, 1, '')"
    )
    for number, (_, sql) in enumerate(MUTANTS):
        bench.model(f"m{number}", sql.replace("{by}", BY_GROUP))
    # nothing of this one changes: what is rewritten must not be published
    bench.build()
    for change in CHANGES:
        bench.sql(change)
    return bench


def problems(bench: Workbench, name: str, sql: str) -> list[str]:
    """Refresh one table, and everything that is not as it must be."""
    result = bench.build(name, refresh="rows")
    (node,) = [n for n in result.nodes if n.name == name]
    way = way_of(node)
    found = [way] if way.startswith(("full", "failed")) else []
    if node.status != "failed":
        found += differences(bench, {name: sql.replace("{raw}", "raw")}).values()
        found += maintained(bench, [name]).values()
    return found


@pytest.mark.parametrize("number", range(len(MUTANTS)), ids=[m.__name__ for m, _ in MUTANTS])
def test_a_planted_mistake_is_seen(
    changed: Workbench, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant, sql = MUTANTS[number]
    monkeypatch.setenv("SQB_ROW_ERRORS", "raise")
    mutant(monkeypatch)
    sql = sql.replace("{by}", BY_GROUP)
    assert problems(changed, f"m{number}", sql) != []
