"""The proof on real tables: cases from files, changes step by step, each table against its query.

A full rebuild is the specification: after every step the table of every case holds exactly the
rows that its query gives, copies counted and floats told apart by their bits.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from conftest import Workbench
    from sqb.execution.events import NodeResult

CASES = Path(__file__).parent / "cases"
Bag = Counter[object]
#: What ``rows`` stands for where a case does not mind which.
BY_ROWS = frozenset({"append", "group_merge", "affected_key", "bag_merge", "top_merge"})


class Case(msgspec.Struct, frozen=True):
    """A query with the ways that are right in each step.

    ``turn`` is the step that it is refreshed in by default; 0: in none.
    """

    name: str
    title: str
    sql: str
    expected: tuple[frozenset[str], ...]
    turn: int

    @property
    def query(self) -> str:
        """The query alone, without the header that some have."""
        return self.sql.partition(");\n")[2] if self.sql.startswith("MODEL") else self.sql

    def ways(self, number: int) -> frozenset[str]:
        """What is right in a step; the first one builds."""
        return (
            frozenset({"full:FIRST_BUILD", "success"}) if number == 0 else self.expected[number - 1]
        )


def read_cases() -> list[Case]:
    """Every case of the files, named by its file and place."""
    out: list[Case] = []
    for path in sorted(CASES.glob("*.sql")):
        if path.stem == "tables":
            continue
        parts = re.split(r"^-- (case|early|more): (.*)$", path.read_text(), flags=re.MULTILINE)[1:]
        triples = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
        for number, (word, title, text) in enumerate(triples, 1):
            told, _, sql = text.strip().partition("\n")
            if not told.startswith("-- by: "):
                raise ValueError(f"{path.name}: `{title}` does not say what is right")
            steps = told.removeprefix("-- by: ").split(",")
            expected = tuple(_ways(step.strip().split(" | ")) for step in steps)
            turn = {"more": 0, "early": 1, "case": 2}[word]
            out.append(Case(f"{path.stem}_{number}", title, sql, expected, turn))
    return out


def _ways(told: list[str]) -> frozenset[str]:
    return frozenset(told) - {"rows"} | (BY_ROWS if "rows" in told else frozenset())


def read_steps() -> dict[str, list[str]]:
    """What happens to the tables: the title of a step and its statements."""
    text = re.sub(r"^-- (?!step: ).*$", "", (CASES / "tables.sql").read_text(), flags=re.MULTILINE)
    parts = re.split(r"^-- step: (.*)$", text, flags=re.MULTILINE)[1:]
    return {
        title: [one.strip() for one in body.split(";\n") if one.strip()]
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    }


def at_home(sql: str) -> str:
    """A query of the files as a model has it."""
    return sql.replace("raw.", "{raw}.")


def on_spark(sql: str) -> str:
    """A statement of the files as Spark is given it; procedures take names as they are."""
    if sql.startswith("CALL"):
        return at_home(sql)
    return re.sub(r"\braw\.", "lake.{raw}.", sql)


def exact(value: object) -> object:
    """A value that equals another only if both are the same to the bit."""
    if isinstance(value, float):
        # Java writes one NaN; its bits are not Python's concern
        return "NaN" if value != value else struct.pack("<d", value)  # noqa: PLR0124
    if isinstance(value, Mapping):
        return frozenset((exact(k), exact(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(exact(item) for item in value)
    return value


def bag(frame: DataFrame) -> Bag:
    """The rows of a frame with their copies."""
    return Counter(exact(tuple(row)) for row in frame.collect())


def differences(bench: Workbench, queries: Mapping[str, str]) -> dict[str, str]:
    """The models whose tables are not what their queries give, with the rows that differ."""

    def compare(item: tuple[str, str]) -> tuple[str, str | None]:
        name, sql = item
        text = on_spark(sql).replace("{raw}", bench.raw)
        one, other = bench.spark.table(f"lake.{bench.schema}.{name}"), bench.spark.sql(text)
        if _columns(one) != _columns(other):
            return name, f"{_columns(one)} is not {_columns(other)}"
        table, rows = bag(one), bag(other)
        if table == rows or (_chooses(sql) and _folded(one, other) == _folded(other, other)):
            return name, None
        return name, f"not in the table: {dict(rows - table)}, only there: {dict(table - rows)}"

    with ThreadPoolExecutor(4) as pool:
        found = dict(pool.map(compare, queries.items()))
    return {name: what for name, what in found.items() if what is not None}


def _chooses(sql: str) -> bool:
    """May a query show any of several strings that compare as equal?"""
    words = ("GROUP BY", "DISTINCT", "UNION", "EXCEPT", "INTERSECT")
    return "COLLATE" in sql and any(word in sql for word in words)


def _folded(frame: DataFrame, like: DataFrame) -> Bag:
    """The rows of a frame, in which strings are as equal as the columns of ``like`` take them."""
    kinds = [field.dataType.simpleString() for field in like.schema.fields]
    return Counter(
        tuple(
            value.lower() if "collate" in kind and isinstance(value, str) else exact(value)
            for value, kind in zip(row, kinds, strict=True)
        )
        for row in frame.collect()
    )


def _columns(frame: DataFrame) -> list[tuple[str, str]]:
    """Names and types, as Iceberg can hold them."""
    kept = {"tinyint": "int", "smallint": "int"}
    kinds = [(f.name, f.dataType.simpleString()) for f in frame.schema.fields]
    return [(name, kept.get(kind, kind.split(" collate")[0])) for name, kind in kinds]


def way_of(node: NodeResult) -> str:
    """How a node went: its strategy, with the reason where that is no refresh by rows."""
    if node.status == "failed":
        return f"failed:{node.error}"
    if node.strategy is None:
        return node.status
    if node.strategy.name in ("full", "skip"):
        assert node.strategy.code, node
        assert node.strategy.why, node
        return f"{node.strategy.name}:{node.strategy.code}"
    return node.strategy.name


class Book:
    """All cases as models of one project, and what became of them in each step."""

    def __init__(self, bench: Workbench, cases: Sequence[Case], *, last: bool = False) -> None:
        self.bench, self.last = bench, last
        self.cases = {case.name: case for case in cases}
        self.ways: dict[str, dict[int, str]] = {case.name: {} for case in cases}
        self.wrong: dict[str, list[str]] = {case.name: [] for case in cases}

    def write(self) -> None:
        """Make the models of all cases."""
        for case in self.cases.values():
            self.bench.model(case.name, at_home(case.sql))

    def happen(self, statements: Iterable[str]) -> None:
        """Change the tables."""
        for statement in statements:
            self.bench.sql(on_spark(statement))

    def build(self, number: int, only: Sequence[str] | None = None) -> None:
        """Refresh cases by rows after a step, and compare their tables with their queries."""
        heads = self._heads()
        result = self.bench.build(*(only or ()), refresh="rows")
        after = self._heads()
        queries: dict[str, str] = {}
        for node in result.nodes:
            way, wrong = way_of(node), self.wrong[node.name]
            self.ways[node.name][number] = way
            if node.status not in ("success", "unchanged", "current"):
                wrong.append(way)
                continue
            if (node.status == "success") != (heads[node.name] != after[node.name]):
                wrong.append(f"step {number}: {node.status}, but the head says otherwise")
            queries[node.name] = self.cases[node.name].query
        for name, what in differences(self.bench, queries).items():
            self.wrong[name].append(f"step {number}: {self.ways[name][number]}: {what}")

    def _heads(self) -> dict[str, str | None]:
        heads = self.bench.project().catalog.heads([self.bench.schema])
        found = {head.name: head.location for head in heads.values()}
        return {name: found.get(name) for name in self.cases}


def maintained(bench: Workbench, names: Iterable[str]) -> dict[str, str]:
    """The tables whose recorded content hash is not that of their rows."""
    from sqb.execution import content_hash

    recorded = bench.project().observe().recorded
    out: dict[str, str] = {}
    for name in names:
        table = bench.spark.table(f"lake.{bench.schema}.{name}")
        hashes = content_hash.row_hashes(table.schema.jsonValue())
        if hashes is None:
            continue
        sums = content_hash.sums(hashes).items()
        row = table.selectExpr(*(f"{sql} AS {key}" for key, sql in sums)).collect()[0]
        columns = recorded[name].data.split(":")[1]
        found = content_hash.data_id(columns, *content_hash.combine(row.asDict()))
        if recorded[name].data != found:
            out[name] = f"recorded as {recorded[name].data}, is {found}"
    return out
