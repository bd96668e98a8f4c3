"""Every kind of table through everything that can happen to its sources, against plain Python.

One project has a model of each kind over the same two tables. After each event all are built, and
each must hold what its promise says: the query's rows, the rows kept by key, a log, a history.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import msgspec
import pytest
from kinds import source

if TYPE_CHECKING:
    from conftest import Workbench

pytestmark = pytest.mark.proof

KINDS = {
    "plain": "table",
    "merged": "merge, unique_key k",
    "kept": "merge, unique_key k, deletes keep",
    "logged": "append, append_from [{raw}.t]",
    "history": "scd2, unique_key k",
    "tracked": "tracked, group_key g",
}
QUERY = """SELECT t.k, t.g, t.v, d.name, d.ratio, d.price
FROM {raw}.t AS t JOIN {raw}.d AS d ON d.g = t.g
WHERE t.day BETWEEN current_date() - 30 AND current_date()"""
#: These have one row for each key, and refuse rows that have not.
KEYED = frozenset({"merged", "kept", "history"})

Row = tuple[object, ...]


class Event(msgspec.Struct, frozen=True):
    """What happens to the sources.

    ``quiet``: the query gives the rows it gave, so nothing may be published. ``refused``: who must
    fail, with which code, and stay as they are.
    """

    title: str
    statements: tuple[str, ...] = ()
    quiet: bool = False
    refused: dict[str, str] = {}
    days: int = 0


BAD_KEYS = dict.fromkeys(sorted(KEYED), "X007")
EVENTS = [
    Event("rows come", ("INSERT INTO t VALUES (5, 1, 50, DATE'2026-02-20', 'n')",)),
    Event("a row changes", ("UPDATE t SET v = 11 WHERE k = 1",)),
    Event("a row goes", ("DELETE FROM t WHERE k = 2",)),
    Event("it comes back", ("INSERT INTO t VALUES (2, 2, 20, DATE'2026-02-20', 'n')",)),
    Event("a key moves", ("UPDATE t SET k = 30 WHERE k = 3",)),
    Event("two keys change places", ("UPDATE t SET k = 7 - k WHERE k IN (2, 5)",)),
    Event("a column that is not read changes", ("UPDATE t SET note = 'other'",), quiet=True),
    Event("files are compacted", ("!rewrite_data_files",), quiet=True),
    Event("the same rows are written again", ("INSERT OVERWRITE t SELECT * FROM t",), quiet=True),
    Event("what is looked up changes", ("UPDATE d SET name = 'uno' WHERE g = 1",)),
    Event(
        "both sides of the join change",
        (
            "INSERT INTO d VALUES (3, 'three', 0.3, 3.00)",
            "INSERT INTO t VALUES (6, 3, 60, DATE'2026-02-21', '')",
        ),
    ),
    Event(
        "a row is there twice",
        ("INSERT INTO t VALUES (6, 3, 60, DATE'2026-02-21', '')",),
        refused=BAD_KEYS,
    ),
    Event(
        "and once again",
        ("DELETE FROM t WHERE k = 6", "INSERT INTO t VALUES (6, 3, 61, DATE'2026-02-21', '')"),
    ),
    Event(
        "a key is NULL",
        ("INSERT INTO t VALUES (NULL, 1, 5, DATE'2026-02-21', '')",),
        refused=BAD_KEYS,
    ),
    Event("it is not any more", ("UPDATE t SET k = 8 WHERE k IS NULL",)),
    Event("values are NULL", ("UPDATE t SET v = NULL WHERE k = 1",)),
    Event("days pass", (), days=5),
    Event("a column is added", ("ALTER TABLE t ADD COLUMN extra INT",), quiet=True),
    Event("a column that is not read is dropped", ("ALTER TABLE t DROP COLUMN note",), quiet=True),
    Event(
        "numbers that are read are widened",
        (
            "ALTER TABLE t ALTER COLUMN v TYPE BIGINT",
            "ALTER TABLE d ALTER COLUMN ratio TYPE DOUBLE",
            "ALTER TABLE d ALTER COLUMN price TYPE DECIMAL(12, 2)",
        ),
    ),
    Event(
        "rows with wide numbers come",
        (
            "INSERT INTO t VALUES (7, 1, 5000000000, DATE'2026-02-22', 1)",
            "UPDATE d SET ratio = 0.1, price = 12345678.25 WHERE g = 1",
        ),
    ),
    Event("rows from before change", ("UPDATE t SET v = v + 6000000000 WHERE k = 8",)),
    Event("a source is rolled back to narrow rows", ("!rollback", "!rollback")),
    Event(
        "rows with the new column come", ("INSERT INTO t VALUES (9, 2, 90, DATE'2026-02-22', 1)",)
    ),
    Event("a source is rolled back", ("!rollback",)),
    Event("all rows go", ("DELETE FROM t WHERE true",)),
    Event("nothing is as good as nothing", ("DELETE FROM d WHERE g = 2",), quiet=True),
    Event(
        "rows come to an empty table",
        (
            "INSERT INTO d VALUES (2, 'two', -0.0, NULL)",
            "INSERT INTO t VALUES (1, 2, 1, DATE'2026-02-22', 0)",
        ),
    ),
    Event(
        "the history of a source expires",
        ("UPDATE t SET v = 2", "!expire"),
        refused={"logged": "X008"},
    ),
    Event(
        "a source is made anew",
        (
            "DROP TABLE t PURGE",
            "!create",
            "INSERT INTO t VALUES (1, 1, 2, DATE'2026-02-22', ''), (4, 1, 4, DATE'2026-02-22', '')",
        ),
        refused={"logged": "X008"},
    ),
]


class Promises:
    """What each table must hold, kept up to date in Python."""

    def __init__(self) -> None:
        self.result: Counter[Row] = Counter()
        self.driver: list[Row] = []
        self.kept: dict[object, Row] = {}
        self.log: Counter[Row] = Counter()
        self.versions: Counter[Row] = Counter()
        self.open: dict[object, Row] = {}

    def move(
        self, lines: list[Row], names: dict[object, Row], today: date, failed: set[str]
    ) -> None:
        """The sources are these now; those that failed stay as they are."""
        result = self.query(lines, names, today)
        self.result = result
        if "logged" not in failed:
            before = self.query(self.driver, names, today)
            self.log += result - before
            self.driver = lines
        if "kept" not in failed:
            self.kept |= {row[0]: row for row in result}
        if "history" not in failed:
            now = {row[0]: row for row in result}
            for key in [k for k, row in self.open.items() if now.get(k) != row]:
                self.versions[(*self.open.pop(key), False)] += 1
            self.open |= now

    @staticmethod
    def query(lines: list[Row], names: dict[object, Row], today: date) -> Counter[Row]:
        """``QUERY`` in Python."""
        since = today - timedelta(days=30)
        return Counter(
            (k, g, v, *names[g])
            for k, g, v, day in lines
            if g in names and isinstance(day, date) and since <= day <= today
        )

    def of(self, name: str) -> Counter[Row]:
        """What a table must hold."""
        if name == "kept":
            return Counter(self.kept.values())
        if name == "logged":
            return self.log
        if name == "history":
            return self.versions + Counter((*row, True) for row in self.open.values())
        return self.result


CREATE = "k INT, g INT, v INT, day DATE, note STRING"


def happen(bench: Workbench, statement: str, snapshots: list[object]) -> None:
    """One statement on the sources; ``!`` marks those that need more than SQL."""
    if statement == "!create":
        source(bench, "t", CREATE)
    elif statement == "!rollback":
        snapshots.pop()
        bench.sql(f"CALL lake.system.rollback_to_snapshot('{{raw}}.t', {snapshots[-1]})")
    elif statement == "!expire":
        bench.sql(
            "CALL lake.system.expire_snapshots(table => '{raw}.t', retain_last => 1, "
            "older_than => TIMESTAMP '2099-01-01')"
        )
    elif statement.startswith("!"):
        options = "map('rewrite-all', 'true')"
        bench.sql(f"CALL lake.system.{statement[1:]}(table => '{{raw}}.t', options => {options})")
    else:
        for name in ("t", "d"):
            for word in ("INTO ", "UPDATE ", "FROM ", "TABLE ", "OVERWRITE "):
                statement = statement.replace(f"{word}{name} ", f"{word}lake.{{raw}}.{name} ")
        if statement.endswith("FROM t"):
            statement = statement[:-1] + "lake.{raw}.t"
        bench.sql(statement)


@pytest.mark.parametrize("way", ["rows", "full"])
def test_every_kind_keeps_its_promise_whatever_happens(bench: Workbench, way: str) -> None:
    first = ["(1, 1, 10, DATE'2026-02-01', 'n')", "(2, 2, 20, DATE'2026-02-20', 'n')"]
    first += ["(3, 1, 30, DATE'2026-02-20', 'n')", "(4, 2, 40, DATE'2025-12-01', 'old')"]
    source(bench, "t", CREATE, *first, "(10, 2, 1, DATE'2026-03-03', 'future')")
    second = "g INT, name STRING, ratio FLOAT, price DECIMAL(6, 2)"
    source(bench, "d", second, "(1, 'one', 0.1, 1.50)", "(2, 'two', 0.2, NULL)")
    for name, kind in KINDS.items():
        bench.model(name, f"MODEL (materialized {kind});\n{QUERY}")
    promises = Promises()
    now = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    snapshots: list[object] = []

    def build(refused: dict[str, str]) -> dict[str, str]:
        """Build all; how each ended."""
        bench.environ["SQB_NOW"] = now.isoformat()
        result = bench.build(refresh=way)
        ended = {n.name: n for n in result.nodes}
        codes = {n: str(e.error["code"]) for n, e in ended.items() if e.error is not None}
        assert codes == refused
        for node in ended.values():
            ran = node.status in ("success", "unchanged") and node.reason != "no_change"
            assert not ran or node.strategy is not None, node
        lines = bench.sql("SELECT k, g, v, day FROM lake.{raw}.t")
        names = {
            g: tuple(d) for g, *d in bench.sql("SELECT g, name, ratio, price FROM lake.{raw}.d")
        }
        promises.move(lines, names, now.date(), set(codes))
        found = bench.sql("SELECT snapshot_id FROM lake.{raw}.t.refs WHERE name = 'main'")
        snapshots.extend(row[0] for row in found)
        return {name: node.status for name, node in ended.items()}

    def check(title: str, failed: dict[str, str]) -> None:
        for name in KINDS:
            if name in ("plain", "merged", "tracked") and name in failed:
                continue
            shown = "k, g, v, name, ratio, price" + (
                ", valid_to IS NULL" if name == "history" else ""
            )
            assert Counter(bench.rows(name, shown)) == promises.of(name), (title, name)

    build({})
    check("first", {})
    for event in EVENTS:
        now += timedelta(days=event.days, minutes=1)
        for statement in event.statements:
            happen(bench, statement, snapshots)
        heads = {name: bench.project().catalog.head(bench.schema, name) for name in KINDS}
        ended = build(event.refused)
        check(event.title, event.refused)
        if event.quiet:
            assert "success" not in ended.values(), (event.title, ended)
        for name in event.refused:
            assert bench.project().catalog.head(bench.schema, name) == heads[name]
        if "logged" in event.refused:
            # only its owner may begin it anew
            bench.build("logged", full_refresh=True)
            promises.log, promises.driver = (
                Counter(promises.result),
                bench.sql("SELECT k, g, v, day FROM lake.{raw}.t"),
            )
        again = {node.status for node in bench.build(refresh=way).nodes}
        assert event.refused or again == {"current"}, event.title
