"""Planted mistakes on the Spark side of a refresh: each must be seen by a small case.

A mistake is seen where a table is not what its query gives, where something is published though
nothing changed, or where the refresh itself finds that it did wrong and rebuilds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from proof import differences, maintained, way_of

from sqb.execution import (
    change_sets,
    content_hash,
    rows,
    signed_write,
    sizes,
    source_changes,
    steps,
)
from sqb.execution.signed_write import measured
from sqb.refresh import netting, signed
from sqb.refresh.changes import TableChange, table_change
from sqb.refresh.script import COPIES, WEIGHT

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof

Patch = pytest.MonkeyPatch


def copies_that_come_are_not_counted(patch: Patch) -> None:
    patch.setattr(rows, "measured", lambda *a: msgspec.structs.replace(measured(*a), most=1))


def copies_that_stay_are_lost(patch: Patch) -> None:
    whole = signed_write._write

    def write(work, change, staged, columns):  # type: ignore[no-untyped-def]
        frame = change.frame.withColumn(COPIES, change.frame[COPIES] * 0)
        whole(work, msgspec.structs.replace(change, frame=frame), staged, columns)

    patch.setattr(signed_write, "_write", write)


def rows_that_go_stay(patch: Patch) -> None:
    whole = signed_write._write

    def write(work, change, staged, columns):  # type: ignore[no-untyped-def]
        whole(work, msgspec.structs.replace(change, gone=0), staged, columns)

    patch.setattr(signed_write, "_write", write)


def all_rows_go(patch: Patch) -> None:
    patch.setattr(signed_write, "_same", lambda _column, _kind: "TRUE")


def zeros_are_alike_where_rows_go(patch: Patch) -> None:
    patch.setattr(signed_write, "exact", lambda _value, _kind: None)


def zeros_are_alike_in_a_change(patch: Patch) -> None:
    for module in (netting, signed):
        patch.setattr(module, "exact", lambda _value, _kind: None)


def negative_zeros_are_lost_in_groups(patch: Patch) -> None:
    patch.setattr(netting, "kept", lambda value, _kind: value)


def old_images_are_dropped(patch: Patch) -> None:
    whole = change_sets.Bound._change_rows

    def rows_of(self, *arguments):  # type: ignore[no-untyped-def]
        return f"SELECT * FROM ({whole(self, *arguments)}) AS sqb_x WHERE {WEIGHT} > 0"

    patch.setattr(change_sets.Bound, "_change_rows", rows_of)


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


def numbers_are_ranged_as_strings(patch: Patch) -> None:
    patch.setattr(steps.Range, "met_by", steps.Range.of)


def rewritten_rows_are_not_netted(patch: Patch) -> None:
    patch.setattr(change_sets, "groupable", lambda _kind: False)


def a_range_is_read_as_appends(patch: Patch) -> None:
    def change(*arguments):  # type: ignore[no-untyped-def]
        found = table_change(*arguments)
        known = found.way in ("changelog", "versions")
        return msgspec.structs.replace(found, way="append") if known else found

    patch.setattr(source_changes, "table_change", change)


def the_old_version_is_the_new_one(patch: Patch) -> None:
    whole = change_sets.Bound.relation

    def relation(self, name: str, version: str) -> str:  # type: ignore[no-untyped-def]
        return whole(self, name, "new" if version == "old" else version)

    patch.setattr(change_sets.Bound, "relation", relation)


def a_change_is_taken_for_none(patch: Patch) -> None:
    def change(_known: object, _old: object, new: int | None) -> TableChange:
        return TableChange("none", new, new)

    patch.setattr(source_changes, "table_change", change)


def columns_of_a_source_are_known_by_name(patch: Patch) -> None:
    patch.setattr(source_changes, "_same_columns", lambda *_: None)


def names_mean_what_they_did(patch: Patch) -> None:
    patch.setattr(source_changes, "_same_meaning", lambda *_: None)


def columns_of_the_table_are_known_by_place(patch: Patch) -> None:
    names_mean_what_they_did(patch)
    patch.setattr(rows, "_same_shape", lambda *_: None)


def the_hash_of_the_rows_is_not_maintained(patch: Patch) -> None:
    patch.setattr(content_hash, "after", lambda before, _change: before)


def searched(mutant: Callable[[Patch], None]) -> Callable[[Patch], None]:
    """The same mistake in a table that is not small."""

    def plant(patch: Patch) -> None:
        patch.setattr(sizes, "_SMALL", 0)
        mutant(patch)

    plant.__name__ = f"{mutant.__name__}_searched"
    return plant


BY_GROUP = "SELECT g, count(*) AS n, sum(v) AS total, count(v) AS c FROM {raw}.t GROUP BY g"
LARGEST = "SELECT g, max(v) AS most FROM {raw}.t GROUP BY g"
#: The mistake, the query whose refresh shows it, and the way that it is refreshed without it.
MUTANTS: list[tuple[Callable[[Patch], None], str, str]] = [
    (copies_that_come_are_not_counted, "SELECT g, v FROM {raw}.t", "affected_key"),
    (copies_that_stay_are_lost, "SELECT g, v FROM {raw}.t WHERE g = 7", "affected_key"),
    (rows_that_go_stay, LARGEST, "affected_key"),
    (all_rows_go, "SELECT g, v FROM {raw}.t WHERE g < 9", "affected_key"),
    (zeros_are_alike_where_rows_go, "SELECT w, f FROM {raw}.t WHERE g = 2", "affected_key"),
    (zeros_are_alike_in_a_change, "SELECT id, f FROM {raw}.t WHERE g = 2", "affected_key"),
    (negative_zeros_are_lost_in_groups, "SELECT id, f FROM {raw}.t WHERE g = 2", "affected_key"),
    (old_images_are_dropped, LARGEST, "affected_key"),
    (null_is_in_no_range, LARGEST, "affected_key"),
    (ranges_end_too_early, LARGEST, "affected_key"),
    (
        numbers_are_ranged_as_strings,
        "SELECT a.id, a.g, b.v FROM {raw}.t a LEFT JOIN {raw}.u b ON CAST(a.id AS STRING) = b.id",
        "affected_key",
    ),
    (rewritten_rows_are_not_netted, "SELECT id, w FROM {raw}.u", "skip:NET_CHANGE_EMPTY"),
    (a_range_is_read_as_appends, BY_GROUP, "group_merge"),
    (
        the_old_version_is_the_new_one,
        f"SELECT n, count(*) AS m FROM ({BY_GROUP}) x GROUP BY n",
        "affected_key",
    ),
    (a_change_is_taken_for_none, BY_GROUP, "group_merge"),
    (the_hash_of_the_rows_is_not_maintained, BY_GROUP, "group_merge"),
    (columns_of_a_source_are_known_by_name, "SELECT id, note FROM {raw}.x", "full:SCHEMA_CHANGED"),
    (
        names_mean_what_they_did,
        "SELECT p, q FROM (SELECT * FROM {raw}.y) AS s(p, q)",
        "full:SCHEMA_CHANGED",
    ),
    (columns_of_the_table_are_known_by_place, "SELECT * FROM {raw}.y", "full:SCHEMA_CHANGED"),
]
#: Mistakes in what is written to a small table, in one that is searched, too.
WRITTEN = (copies_that_stay_are_lost, rows_that_go_stay, zeros_are_alike_where_rows_go)
MUTANTS += [(searched(mutant), sql, way) for mutant, sql, way in MUTANTS if mutant in WRITTEN]
#: Each query once, refreshed without a mistake.
CONTROLS = {f"c{n}": told for n, told in enumerate({(sql, way): 0 for _, sql, way in MUTANTS})}
CHANGES = [
    "DELETE FROM lake.{raw}.t WHERE note = 'second'",
    "UPDATE lake.{raw}.t SET f = -f WHERE id = 10",
    "UPDATE lake.{raw}.t SET v = v + 5 WHERE g IS NULL",
    "UPDATE lake.{raw}.t SET v = 0, g = 5 WHERE id = 3",
    "DELETE FROM lake.{raw}.t WHERE g = 4",
    "INSERT INTO lake.{raw}.t VALUES (20, 9, 9, 0.5, 1, ''), (20, 9, 9, 0.5, 1, '')",
    "ALTER TABLE lake.{raw}.x DROP COLUMN note",
    "ALTER TABLE lake.{raw}.x ADD COLUMN note STRING",
    "INSERT INTO lake.{raw}.x (id, note) VALUES (30, 'thirty')",
    "ALTER TABLE lake.{raw}.y ALTER COLUMN `c d` FIRST",
    "INSERT INTO lake.{raw}.y VALUES (3, 4)",
    "UPDATE lake.{raw}.u SET note = 'written' WHERE id < 3",
]
COLUMNS = "(id INT, g INT, v INT, f DOUBLE, w INT, note STRING)"


@pytest.fixture(scope="module")
def changed(shared_bench: Workbench) -> Workbench:
    """A table for each mistake, built without it; then the rows below them change."""
    bench = shared_bench
    bench.sql("CREATE TABLE lake.{raw}.y (`a b` INT, `c d` INT) USING iceberg")
    bench.sql("INSERT INTO lake.{raw}.y VALUES (1, 2)")
    for table in ("t", "u", "x"):
        bench.sql(f"CREATE TABLE lake.{{raw}}.{table} {COLUMNS} USING iceberg")
        bench.sql(
            f"INSERT INTO lake.{{raw}}.{table} VALUES (1, 1, 1, 0.5, 1, ''),"
            " (2, 1, 2, 0.5, 1, ''), (3, 1, 7, 0.5, 1, ''), (4, NULL, 3, 0.5, 1, ''),"
            " (5, 4, 3, 0.5, 1, ''), (6, 7, 3, 0.5, 1, 'first'), (6, 7, 3, 0.5, 1, 'second'),"
            " (6, 7, 3, 0.5, 1, ''), (10, 2, 1, 0.0, 1, ''), (11, 2, 1, -0.0D, 1, '')"
        )
    for number, (_, sql, _) in enumerate(MUTANTS):
        bench.model(f"m{number}", sql)
    for name, (sql, _) in CONTROLS.items():
        bench.model(name, sql)
    bench.build()
    for change in CHANGES:
        bench.sql(change)
    return bench


@pytest.mark.parametrize("number", range(len(MUTANTS)), ids=[m.__name__ for m, _, _ in MUTANTS])
def test_a_planted_mistake_is_seen(
    changed: Workbench, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant, sql, way = MUTANTS[number]
    mutant(monkeypatch)
    assert problems(changed, {f"m{number}": (sql, way)}) != {}


def test_nothing_is_seen_where_no_mistake_is(changed: Workbench) -> None:
    """Tables that no mistake was made on are refreshed as they should be."""
    assert problems(changed, CONTROLS) == {}


def problems(bench: Workbench, models: Mapping[str, tuple[str, str]]) -> dict[str, list[str]]:
    """Refresh tables, and say of each everything that is not as it must be."""
    # an error inside a refresh is told as a rebuild, which is another way than is expected
    result = bench.project().build(tuple(models), refresh="rows")
    found: dict[str, list[str]] = {}
    nodes = {node.name: node for node in result.nodes if node.name in models}
    for name, node in nodes.items():
        if way_of(node) != models[name][1]:
            found.setdefault(name, []).append(way_of(node))
    done = [name for name, node in nodes.items() if node.status != "failed"]
    queries = {name: models[name][0].replace("{raw}", "raw") for name in done}
    for name, what in (*differences(bench, queries).items(), *maintained(bench, done).items()):
        found.setdefault(name, []).append(what)
    return found
