"""A process killed at every numbered step of publish: the next build finds and leaves all whole."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sqb.lake.failpoints import POINTS, ROW_POINTS

sys.path.insert(0, str(Path(__file__).parent))
from children import Children
from lakes import files_below, home, leftovers, reachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Workbench
    from sqb.lake.catalog import Head


@pytest.fixture(scope="module")
def children(spark: SparkSession) -> Iterator[Children]:
    server = Children(spark)
    yield server
    server.close()


Change = Callable[["Workbench", int], tuple[str, list[tuple[object, ...]]]]

VALUES = "SELECT id, id * {k} AS v FROM VALUES (1), (2) AS t(id)"


def first_table(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    bench.model(f"m{step}", VALUES.format(k=step))
    return f"m{step}", [(1, step), (2, 2 * step)]


def rebuilt_table(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    bench.model("m", VALUES.format(k=step))
    return "m", [(1, step), (2, 2 * step)]


def view(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    bench.model("m", "MODEL (materialized view);\n" + VALUES.format(k=step))
    return "m", [(1, step), (2, 2 * step)]


def seed(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    bench.write("seeds/m.csv", f"id,v\n1,{step}\n2,{2 * step}\n")
    return "m", [(1, step), (2, 2 * step)]


def view_and_table_by_turns(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    change = view if step % 2 == 0 else rebuilt_table
    return change(bench, step)


def rows_added(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    """A refresh by rows that only appends, each row twice."""
    if step == 0:
        bench.sql("CREATE TABLE lake.{raw}.t (id INT, v INT) USING iceberg")
        bench.model("m", "MODEL (refresh rows);\nSELECT id, v * 2 AS v FROM {raw}.t")
    bench.sql(f"INSERT INTO lake.{{raw}}.t VALUES ({step}, {step}), ({step}, {step})")
    return "m", sorted([(n, 2 * n) for n in range(step + 1)] * 2)


def rows_merged(
    bench: Workbench, step: int, header: str = "refresh rows"
) -> tuple[str, list[tuple[object, ...]]]:
    """A refresh by rows that takes rows away, changes some and adds one."""
    if step == 0:
        bench.sql("CREATE TABLE lake.{raw}.t (g INT, v INT) USING iceberg")
        bench.sql("INSERT INTO lake.{raw}.t VALUES (0, 0), (1, 1), (1, 2), (100, 0)")
        query = "SELECT g, max(v) AS v FROM {raw}.t GROUP BY g"
        bench.model("m", f"MODEL ({header});\n{query}")
        return "m", [(0, 0), (1, 2), (100, 0)]
    bench.sql(
        f"MERGE INTO lake.{{raw}}.t USING (SELECT {step} + 1 AS g) s ON t.g = 100 OR t.g = s.g - 2"
        f" WHEN MATCHED AND t.g = 100 THEN UPDATE SET v = {step} WHEN MATCHED THEN DELETE"
    )
    bench.sql(f"INSERT INTO lake.{{raw}}.t VALUES ({step} + 1, {step})")
    first = [(1, 2)] if step == 1 else [(step, step - 1)]
    return "m", [*first, (step + 1, step), (100, step)]


def rows_merged_by_parts(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    """The same in a table of which only some files are written anew."""
    return rows_merged(bench, step, "refresh rows, partitioned_by [bucket(2, g)]")


def log(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    if step == 0:
        bench.sql("CREATE TABLE lake.{raw}.t (id INT) USING iceberg")
        bench.model("m", "MODEL (materialized append);\nSELECT id, id * 2 AS v FROM {raw}.t")
    bench.sql(f"INSERT INTO lake.{{raw}}.t VALUES ({step})")
    return "m", [(i, 2 * i) for i in range(step + 1)]


def _people(bench: Workbench, step: int, header: str) -> None:
    """In step n, person n comes, person n - 2 goes, and number 100 has another value.

    With partitions, rows go and come in two commits.
    """
    header += ", partitioned_by [bucket(2, id)]"
    if step == 0:
        bench.sql("CREATE TABLE lake.{raw}.t (id INT, v INT) USING iceberg")
        bench.sql("INSERT INTO lake.{raw}.t VALUES (0, 0), (100, 0)")
        bench.model("m", f"MODEL (materialized {header});\nSELECT id, v FROM {{raw}}.t")
    else:
        bench.sql(f"DELETE FROM lake.{{raw}}.t WHERE id = {step} - 2")
        bench.sql(f"UPDATE lake.{{raw}}.t SET v = {step} WHERE id = 100")
        bench.sql(f"INSERT INTO lake.{{raw}}.t VALUES ({step}, {step})")
    bench.environ["SQB_NOW"] = f"2026-03-{step + 1:02d}T00:00:00Z"


def kept_keys(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    """A ``merge`` that keeps what its query gives no longer."""
    _people(bench, step, "merge, unique_key [id], deletes keep")
    return "m", [*((n, n) for n in range(step + 1)), (100, step)]


def versions(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    """A ``scd2``: each person has one version, number 100 one per step."""
    _people(bench, step, "scd2, unique_key [id]")
    first = datetime.fromisoformat("2026-03-01")
    days = [first + timedelta(days=n) for n in range(step + 1)]
    ends = [*days[1:], None]
    people = [(n, n, days[n], (*days, None, None)[n + 2]) for n in range(step + 1)]
    return "m", [*people, *((100, n, days[n], ends[n]) for n in range(step + 1))]


def groups(bench: Workbench, step: int) -> tuple[str, list[tuple[object, ...]]]:
    """A ``tracked`` table."""
    _people(bench, step, "tracked, group_key [id]")
    return "m", [*((n, n) for n in range(max(0, step - 1), step + 1)), (100, step)]


#: kind -> how step n changes the project, whether something is built before, points not on its way
KINDS: dict[str, tuple[Change, bool, frozenset[str]]] = {
    "first build of a table": (first_table, False, frozenset({"publish:2"})),
    "rebuild of a table": (rebuilt_table, True, frozenset()),
    "view": (view, True, frozenset({"publish:1", "publish:2", "publish:3"})),
    "seed": (seed, True, frozenset()),
    "log": (log, True, frozenset()),
    "view to table": (view_and_table_by_turns, True, frozenset({"publish:2"})),
    "rows added to a table": (rows_added, True, frozenset(ROW_POINTS)),
    "rows merged into a table": (rows_merged, True, frozenset(ROW_POINTS)),
    "rows merged into partitions": (rows_merged_by_parts, True, frozenset()),
    "keys merged": (kept_keys, True, frozenset()),
    "versions": (versions, True, frozenset()),
    "groups": (groups, True, frozenset()),
}
#: By default a refresh by rows is killed where it differs from a rebuild, else everywhere.
BY_ROWS = {
    "keys merged": ("rows:1", "publish:4"),
    "versions": ("rows:1", "publish:4"),
    "groups": ("rows:1", "publish:5a"),
    "rows added to a table": ("publish:3", "publish:5b"),
    "rows merged into a table": ("publish:3", "publish:5b"),
    "rows merged into partitions": ("rows:1", "publish:3", "publish:5a", "publish:5b"),
}
if os.environ.get("SQB_TEST_PROOF") == "all":
    BY_ROWS = dict.fromkeys(BY_ROWS, (*ROW_POINTS, *POINTS))
PUBLISHED = frozenset({"publish:5b", "publish:6", "publish:7"})
#: Where a REST server allows nothing better, a table is replaced in place, never refreshed by rows,
#: and stamped afterwards.
IN_PLACE = os.environ.get("SQB_TEST_PUBLISH") == "replace"
REPLACED = frozenset({"publish:3", "publish:4", "publish:5a"})
IN_ANOTHER_PLACE = frozenset({"first build of a table", "view", "view to table"})


#: Their crashes are part of the proof, which has more time.
LATER = frozenset({"keys merged", "versions", "groups"})


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.proof if kind in LATER else ()) for kind in KINDS]
)
def test_killed_at_any_step_the_next_build_repairs_everything(
    bench: Workbench, children: Children, kind: str
) -> None:
    change, built_before, off_the_way = KINDS[kind]
    before: list[tuple[object, ...]] = []
    history: set[str] = set()
    step = 0
    if built_before:
        name, before = change(bench, step)
        bench.told()
        history |= reachable(_head(bench, name))
    for point in BY_ROWS.get(kind, tuple(POINTS)):
        if point in off_the_way or (IN_PLACE and point in ROW_POINTS):
            continue
        step += 1
        if kind == "view to table" and step % 2 == 0:
            name, before = change(bench, step)
            bench.told()
            history |= reachable(_head(bench, name))
            step += 1
        name, after = change(bench, step)
        _killed(bench, children, point)
        # what readers see is the old relation or the new one, whole
        replaced = IN_PLACE and kind not in IN_ANOTHER_PLACE and point in REPLACED
        if point in PUBLISHED or replaced:
            assert bench.rows(name) == after, point
        elif built_before:
            assert bench.rows(name) == before, point
        else:
            assert bench.project().catalog.head(bench.schema, name) is None, point
        told = bench.told()
        assert {n: s for n, (s, _) in told.items()} == (
            {} if point in PUBLISHED else {name: "success"}
        ), point
        history |= _everything_is_whole(bench, name, after, point, history)
        before = after
    if kind in BY_ROWS and not IN_PLACE:
        # a rebuild would have begun a history of its own
        table = f"lake.{bench.schema}.{name}"
        assert bench.sql(f"SELECT count(*) FROM {table}.snapshots WHERE parent_id IS NULL") == [
            (1,)
        ]


@pytest.mark.proof
@pytest.mark.parametrize("change", [kept_keys, versions, groups, rows_merged])
def test_what_a_killed_build_wrote_is_gone_when_its_change_is(
    bench: Workbench, children: Children, change: Change
) -> None:
    """Where tables are replaced in place, readers have seen the rows that must go again."""
    name, before = change(bench, 0)
    bench.told()
    history = reachable(_head(bench, name))
    bench.sql("UPDATE lake.{raw}.t SET v = 7 WHERE v = 0")
    _killed(bench, children, "publish:4")
    assert (bench.rows(name) != before) == IN_PLACE
    bench.sql("UPDATE lake.{raw}.t SET v = 0 WHERE v = 7")
    bench.told()
    _everything_is_whole(bench, name, before, "publish:4", history)


def _killed(bench: Workbench, children: Children, point: str) -> None:
    """Build in a process that is killed at a point."""
    clock = {key: value for key, value in bench.environ.items() if key == "SQB_NOW"}
    ended = children.start(bench.root, env=clock | {"SQB_FAILPOINT": point}).wait()
    assert ended["status"] == -signal.SIGKILL, (point, ended)


def _head(bench: Workbench, name: str) -> Head:
    head = bench.project().catalog.head(bench.schema, name)
    assert head is not None
    return head


def _everything_is_whole(
    bench: Workbench,
    name: str,
    rows: list[tuple[object, ...]],
    point: str,
    history: set[str],
) -> set[str]:
    """Rows, files, stage, state; the files that the head leads to."""
    project = bench.project()
    assert bench.rows(name) == rows, point
    assert leftovers(project) == [], point
    head = _head(bench, name)
    mine = reachable(head)
    stray = files_below(home(project, bench.schema, name)) - mine - history
    if bench.settings.catalog_type == "rest":
        # the older metadata of views, which no file leads to and only the server can know of
        stray = {file for file in stray if not file.endswith(".gz.metadata.json")}
    assert stray == set(), point
    missing = {file for file in mine if not Path(file).exists()}
    assert missing == set(), point
    observed = project.observe()
    assert observed.repairs == {}, point
    assert observed.rows[name].run == observed.recorded[name].run, point
    assert [node.name for node in bench.plan().work] == [], point
    assert bench.build().run_id is None, point
    return mine


def test_killed_between_two_models_the_first_is_kept_and_the_second_is_built(
    shop: Workbench, children: Children
) -> None:
    """Names, stg, totals, top and counted at once: whatever was published is not built again."""
    # one at a time: what a killed child had asked of the shared JVM would go on there
    shop.write("sqlbuild_project.toml", shop.toml("[settings]\nconcurrency = 1\n"))
    ended = children.start(shop.root, env={"SQB_FAILPOINT": "publish:5b"}).wait()
    assert ended["status"] == -signal.SIGKILL
    project = shop.project()
    there = {n for n in project.expected if project.catalog.head(shop.schema, n) is not None}
    assert there
    told = shop.told()
    assert set(told) == set(project.expected) - there
    assert shop.rows("top") == [("Anna", 15), ("Bert", 20)]
    assert set(shop.project().observe().rows) == set(project.expected)
    assert leftovers(shop.project()) == []
    assert shop.build().run_id is None
