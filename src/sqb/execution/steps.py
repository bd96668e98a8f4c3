"""The steps of a refresh on Spark: as few queries as possible, some steps computed on the way.

What many steps read, and every set of keys, is computed before it is read: a set of keys then
tells its range, which lets Iceberg leave out files, and its size, which lets the refresh give up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from sqb.execution.content_hash import quote
from sqb.execution.statement import literal
from sqb.refresh.script import Script, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Values of these types come back from their text as they were.
_RANGED = ("tinyint", "smallint", "int", "bigint", "decimal", "date", "string")
#: A bound longer than this is no help.
_LONGEST = 200


class Range(msgspec.Struct, frozen=True):
    """What a column of keys ranges over, as literals; whether NULL is among them."""

    low: str | None
    high: str | None
    nulls: bool

    def of(self, expr: str) -> str:
        """The condition that a value is within."""
        if self.low is None:
            return f"({expr}) IS NULL" if self.nulls else "FALSE"
        within = f"({expr}) BETWEEN {self.low} AND {self.high}"
        return f"({within} OR ({expr}) IS NULL)" if self.nulls else within


class Keys(msgspec.Struct, frozen=True):
    """How many keys a step holds and what each column ranges over (None: not told)."""

    count: int
    ranges: tuple[Range | None, ...]


#: Sets of keys up to this size are sent to every task instead of shuffling what they restrict.
BROADCAST_KEYS = 200_000


class Steps:
    """The steps of a script in a session, until they are closed.

    A step that is computed becomes a temp view of its rows; the others are written into the
    queries that read them.
    """

    def __init__(self, session: SparkSession, script: Script) -> None:
        self.session = session
        self.script = script
        self.keys: dict[str, Keys] = {}
        self._views: list[str] = []

    def close(self) -> None:
        """Take everything away again."""
        for view in self._views:
            with contextlib.suppress(Exception):
                self.session.catalog.dropTempView(view)

    def compute(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute rows once and for all: what they were made from is not read again."""
        made = frame.localCheckpoint()
        self.view(name, made)
        return made

    def view(self, name: str, frame: DataFrame) -> None:
        """Give rows a name in this session."""
        frame.createOrReplaceTempView(name)
        self._views.append(name)

    def described(self, name: str) -> DataFrame:
        """A step for its columns alone: nothing is computed."""
        return self.session.sql(self._text(name))

    def frame(self, name: str) -> DataFrame:
        """The rows of a step, after computing what is computed on the way to them."""
        steps = self.script.needed(name)
        read = [other for step in steps for other in step.reads]
        ranged = {step.within[0] for step in steps if step.within is not None}
        narrow: set[str] = set()
        for step in steps:
            if step.kind != "rows" or step.within or not narrow.isdisjoint(step.reads):
                narrow.add(step.name)
            if step.name in self._views or step.name == name:
                continue
            if step.name in ranged or (read.count(step.name) > 1 and step.name in narrow):
                made = self.compute(step.name, self.session.sql(self._text(step.name)))
                if step.name in ranged:
                    self.keys[step.name] = measured(made)
        return self.session.sql(self._text(name))

    def _text(self, name: str) -> str:
        """One query for a step: the steps that were not computed stand in front of it."""
        queue, inside = [name], set()
        while queue:
            step = self.script.steps[queue.pop()]
            if step.name not in inside and step.name not in self._views:
                inside.add(step.name)
                queue += step.reads
        order = [step for step in self.script.steps.values() if step.name in inside]
        if not order:
            return f"SELECT * FROM {name}"
        *before, last = order
        if not before:
            return self._limited(last)
        ctes = ",\n".join(f"{step.name} AS ({self._limited(step)})" for step in before)
        return f"WITH {ctes}\n{self._limited(last)}"

    def _limited(self, step: Step) -> str:
        """A step's own query, with what is known of the keys that it is restricted to."""
        if step.within is None or step.within[0] not in self.keys:
            return step.sql
        name, exprs = step.within
        found = self.keys[name]
        limits = [r.of(e) for r, e in zip(found.ranges, exprs, strict=True) if r is not None]
        sql = " AND ".join([step.sql, *limits])
        if found.count <= BROADCAST_KEYS:
            sql = sql.replace(
                f"(SELECT 1 FROM {name} ", f"(SELECT /*+ BROADCAST({name}) */ 1 FROM {name} "
            )
        return sql


def measured(frame: DataFrame) -> Keys:
    """How many keys there are and what they range over."""
    kinds = kinds_of(frame)
    items = {"total": "count(*)"} | ranging(kinds)
    row = frame.selectExpr(*(f"{sql} AS {key}" for key, sql in items.items())).first()
    found = row.asDict() if row is not None else {}
    count = int(found.get("total") or 0)
    return Keys(count, ranges(kinds, found, count))


def kinds_of(frame: DataFrame) -> dict[str, str]:
    """Spark's types of the columns, by name."""
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def ranging(kinds: Mapping[str, str], only: str = "TRUE") -> dict[str, str]:
    """The aggregates that tell what columns of these types range over, of ``only`` these rows."""
    out: dict[str, str] = {}
    for place, (name, kind) in enumerate(kinds.items()):
        if kind.startswith(_RANGED) and "collate" not in kind:
            value = quote(name)
            out[f"lo{place}"] = f"CAST(min({value}) FILTER (WHERE {only}) AS STRING)"
            out[f"hi{place}"] = f"CAST(max({value}) FILTER (WHERE {only}) AS STRING)"
            out[f"has{place}"] = f"count({value}) FILTER (WHERE {only})"
    return out


def ranges(
    kinds: Mapping[str, str], found: Mapping[str, object], count: int
) -> tuple[Range | None, ...]:
    """The ranges that ``ranging`` asked for; ``count`` is the number of rows."""
    return tuple(_range(found, place, kind, count) for place, kind in enumerate(kinds.values()))


def _range(found: Mapping[str, object], place: int, kind: str, count: int) -> Range | None:
    if f"lo{place}" not in found:
        return None
    low, high = found[f"lo{place}"], found[f"hi{place}"]
    nulls = found[f"has{place}"] != count
    if low is None or high is None:
        return Range(None, None, nulls)
    if max(len(str(low)), len(str(high))) > _LONGEST:
        return None
    ends = [f"CAST({literal(str(value))} AS {kind})" for value in (low, high)]
    return Range(ends[0], ends[1], nulls)
