"""The steps of a refresh on Spark: as few queries as possible, some steps computed on the way.

What many steps read, and every set of keys, is computed before it is read: a set of keys then
tells its range, which lets Iceberg leave out files, and its size, which lets the refresh give up.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.execution.content_hash import quote
from sqb.execution.statement import literal
from sqb.refresh.script import Script, Step
from sqb.spark.kinds import forget, is_connect, keep

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Values of these types come back from their text as they were.
_RANGED = ("tinyint", "smallint", "int", "bigint", "decimal", "date", "string")
#: A bound longer than this is no help.
_LONGEST = 200


class Range(msgspec.Struct, frozen=True):
    """What a column of keys ranges over, as literals; whether NULL is among them.

    ``kind`` is the type of the keys.
    """

    low: str | None
    high: str | None
    nulls: bool
    kind: str

    def of(self, expr: str) -> str:
        """The condition that a value of the same type is within."""
        if self.low is None:
            return f"({expr}) IS NULL" if self.nulls else "FALSE"
        within = f"({expr}) BETWEEN {self.low} AND {self.high}"
        return f"({within} OR ({expr}) IS NULL)" if self.nulls else within

    def met_by(self, expr: str) -> str:
        """The condition that a value, perhaps of another type, can equal one of the keys.

        A number equals a string as a number, and '10' comes before '9' among strings alone: a range
        of strings says nothing of numbers and days. Nor is a range of other numbers asked of
        floating point ones: Iceberg leaves out files as if -0.0 were less than 0.0. Spark knows the
        type when it plans, so files are left out as if it had not been asked.
        """
        if self.kind == "string":
            return f"IF(typeof({expr}) = 'string', {self.of(expr)}, TRUE)"
        if self.kind == "date":
            return self.of(expr)
        return f"IF(typeof({expr}) IN ('float', 'double'), TRUE, {self.of(expr)})"


def literal_of(value: str, kind: str) -> str:
    """A value of SQL from its text and type."""
    return f"CAST({literal(value)} AS {kind})"


def ranged(kind: str) -> bool:
    """Do values of this type come back from their text as they were?"""
    return kind.startswith(_RANGED) and "collate" not in kind


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
        self.heard: Callable[[str, Keys], None] = lambda _name, _keys: None
        self._views: list[str] = []
        self._kept: list[DataFrame] = []

    def close(self) -> None:
        """Take everything away again."""
        for view in self._views:
            with contextlib.suppress(Exception):
                self.session.catalog.dropTempView(view)
        for frame in self._kept:
            forget(frame)

    def compute(self, name: str, frame: DataFrame) -> DataFrame:
        """Compute rows once and for all: what they were made from is not read again."""
        made = keep(frame)
        self._kept.append(made)
        self.view(name, made)
        return made

    def computed(
        self, name: str, frame: DataFrame, aggregates: Mapping[str, str]
    ) -> tuple[DataFrame, dict[str, Any]]:
        """The same, with aggregates of the rows that are taken while they are computed."""
        if is_connect(self.session):
            made = self.compute(name, frame)
            return made, answered(made, aggregates)
        from pyspark.sql import Observation
        from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows

        observation = Observation()
        exprs = (F.expr(sql).alias(key) for key, sql in aggregates.items())
        made = self.compute(name, frame.observe(observation, *exprs))
        return made, dict(observation.get)

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
            if step.name in self._views or step.name in self.keys or step.name == name:
                continue
            if step.name in ranged:
                self._measure(step)
            elif read.count(step.name) > 1 and step.name in narrow:
                keys = [k for k in steps if k.name in ranged and k.unique and step.name in k.reads]
                if keys:
                    self._measure(step, keys[0])
                else:
                    self.compute(step.name, self.session.sql(self._text(step.name)))
        return self.session.sql(self._text(name))

    def _measure(self, step: Step, keys: Step | None = None) -> None:
        """Say of keys how many there are and what they range over; compute what is not at hand.

        ``keys``: the step is not the keys itself but has them as columns, in rows of their own.
        """
        frame = self.session.sql(self._text(step.name))
        kinds = kinds_of(frame)
        if keys is not None:
            kinds = {name: kinds[name] for name in keys.unique}
        asked = {"total": "count(*)"} | ranging(kinds)
        if step.reads and all(name in self._views for name in step.reads) and keys is None:
            found = answered(frame, asked)
        else:
            _, found = self.computed(step.name, frame, asked)
        count = int(found.get("total") or 0)
        name = keys.name if keys is not None else step.name
        self.keys[name] = Keys(count, ranges(kinds, found, count))
        self.heard(name, self.keys[name])

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
        # of columns alone: no file is left out by an expression, which may fail for other rows
        pairs = zip(found.ranges, exprs, strict=True)
        limits = [r.met_by(e) for r, e in pairs if r is not None and e.isidentifier()]
        sql = " AND ".join([step.sql, *limits])
        if found.count <= BROADCAST_KEYS:
            sql = sql.replace(
                f"(SELECT 1 FROM {name} ", f"(SELECT /*+ BROADCAST({name}) */ 1 FROM {name} "
            )
        return sql


def keys_of(frame: DataFrame, columns: Sequence[str]) -> Keys:
    """How many rows there are, and what some of their columns range over."""
    every = kinds_of(frame)
    kinds = {column: every[column] for column in columns}
    found = answered(frame, {"total": "count(*)"} | ranging(kinds))
    count = int(found.get("total") or 0)
    return Keys(count, ranges(kinds, found, count))


def answered(frame: DataFrame, aggregates: Mapping[str, str]) -> dict[str, Any]:
    """Aggregates of rows, by name."""
    row = frame.selectExpr(*(f"{sql} AS {key}" for key, sql in aggregates.items())).first()
    return row.asDict() if row is not None else {}


def kinds_of(frame: DataFrame) -> dict[str, str]:
    """Spark's types of the columns, by name."""
    return {field.name: field.dataType.simpleString() for field in frame.schema.fields}


def ranging(kinds: Mapping[str, str], only: str | None = None) -> dict[str, str]:
    """The aggregates that tell what columns of these types range over, of ``only`` these rows.

    Without FILTER, which Spark does not let observe.
    """
    out: dict[str, str] = {}
    for place, (name, kind) in enumerate(kinds.items()):
        if ranged(kind):
            value = f"IF({only}, {quote(name)}, NULL)" if only else quote(name)
            out[f"lo{place}"] = f"CAST(min({value}) AS STRING)"
            out[f"hi{place}"] = f"CAST(max({value}) AS STRING)"
            out[f"has{place}"] = f"count({value})"
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
        return Range(None, None, nulls, kind)
    if max(len(str(low)), len(str(high))) > _LONGEST:
        return None
    return Range(literal_of(str(low), kind), literal_of(str(high), kind), nulls, kind)
