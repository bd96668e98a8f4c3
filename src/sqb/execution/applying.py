"""A change of a table's rows, written under an alias and published like a rebuild.

The table's content hash is not computed again: what goes is taken off it, what comes is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from sqb.execution import content_hash
from sqb.execution.content_hash import quote
from sqb.execution.events import Rows
from sqb.execution.run import Run
from sqb.execution.statement import full_name
from sqb.execution.steps import Range, Steps, kinds_of, ranges, ranging
from sqb.execution.table import (
    SNAPSHOT_PROPERTY,
    Layout,
    Outcome,
    adopt,
    identify,
    publish,
    refuse_overtaken,
    staged_facts,
    unchanged,
    watched,
)
from sqb.identity.data_id import InputState
from sqb.lake.failpoints import reached
from sqb.lake.metadata import TableFacts
from sqb.lake.publish import Overtaken
from sqb.lake.shape import Shape
from sqb.lake.staging import Staged
from sqb.lake.types import spark_type
from sqb.refresh.reasons import Refused
from sqb.refresh.script import COPIES, WEIGHT
from sqb.refresh.signed import exact
from sqb.state.record import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Standing(msgspec.Struct, frozen=True):
    """A table as a refresh finds it, and what its new record is made of."""

    run: Run
    session: SparkSession
    name: str
    states: Mapping[str, InputState]
    layout: Layout
    record: Record
    base: TableFacts
    #: Looks at what is staged before it is published.
    audit: Callable[[Staged], None] = lambda _: None

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [column.name for column in self.base.columns]

    def stored(self, values: list[str]) -> list[str]:
        """Select items that give values the names and types of the table's columns."""
        pairs = zip(values, self.base.columns, strict=True)
        return [f"CAST({v} AS {spark_type(c.type)}) AS {quote(c.name)}" for v, c in pairs]


class Written(msgspec.Struct, frozen=True):
    """What was written: rows that came and went, and the sums of their hashes if they have any."""

    come: int
    gone: int
    sums: tuple[int, int, int] | None


class Change(msgspec.Struct, frozen=True):
    """A signed change as it was measured: rows that come and go, the most copies of one row that
    are written, the sums of its hashes, the ranges of what goes."""

    frame: DataFrame
    view: str
    come: int
    gone: int
    most: int
    sums: tuple[int, int, int] | None
    ranges: tuple[Range | None, ...]


def nothing(standing: Standing) -> Outcome:
    """The rows stay as they are: only what they were made from is recorded."""
    run, expected = standing.run, standing.run.expected(standing.name)
    head = run.heads[(expected.namespace, expected.relation)]
    kept = unchanged(
        run, standing.name, standing.states, head, standing.base, standing.record, standing.layout
    )
    if kept is None:
        raise Refused("DEFINITION_CHANGED", "the table's properties are to be written")
    return kept


def apply_change(standing: Standing, change: Change) -> Outcome:
    """Publish a measured change; nothing if it is empty."""
    if not change.come and not change.gone:
        return nothing(standing)

    def write(staged: Staged) -> Written:
        _write(standing, change, staged)
        return Written(change.come, change.gone, change.sums)

    return _published(standing, write)


def append_rows(standing: Standing, frame: DataFrame) -> Outcome:
    """Add rows, hashed while they are written; nothing is published if there are none."""

    def write(staged: Staged) -> Written:
        schema = frame.schema.jsonValue()
        rows, observation = watched(frame, schema)
        target = full_name(standing.run.catalog.name, *staged.parts)
        writer = rows.writeTo(target)
        writer.option(f"{SNAPSHOT_PROPERTY}sqb.run-id", standing.run.id).append()
        if observation is None:
            facts = staged_facts(standing.run, staged)
            return Written((facts.total_records or 0) - (standing.record.rows or 0), 0, None)
        metrics = dict(observation.get)
        if not metrics:
            # what a Connect server observes inside a temp view it does not tell
            return Written(-1, 0, None)
        count, first, second = content_hash.combine(metrics)
        return Written(count, 0, (count, first, second))

    return _published(standing, write)


def overwrite_partitions(
    standing: Standing, coming: DataFrame, going: DataFrame, condition: str
) -> Outcome:
    """Replace whole partitions: ``coming`` is all that they hold then, ``going`` what they hold."""
    schema = coming.schema.jsonValue()
    hashes = content_hash.row_hashes(schema)
    if hashes is None:
        raise Refused("TYPE_NOT_COMPARABLE", "the rows can't be hashed")
    aggregates = [f"{sql} AS {key}" for key, sql in content_hash.sums(hashes).items()]
    row = going.selectExpr(*aggregates).first()
    gone = content_hash.combine(row.asDict() if row is not None else {})

    def write(staged: Staged) -> Written:
        from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows

        rows, observation = watched(coming, schema)
        target = full_name(standing.run.catalog.name, *staged.parts)
        writer = rows.writeTo(target).option(f"{SNAPSHOT_PROPERTY}sqb.run-id", standing.run.id)
        writer.overwrite(F.expr(condition))
        metrics = dict(observation.get) if observation is not None else {}
        if not metrics:
            table = standing.session.table(target).where(condition)
            told = table.selectExpr(*aggregates).first()
            metrics = told.asDict() if told is not None else {}
        come = content_hash.combine(metrics)
        if come == gone:
            return Written(0, 0, None)
        sums = (come[0] - gone[0], come[1] - gone[1], come[2] - gone[2])
        return Written(come[0], gone[0], sums)

    return _published(standing, write)


def measured(steps: Steps, view: str, frame: DataFrame) -> Change:
    """Compute a signed change, and say what it amounts to, in one pass."""
    schema = frame.drop(WEIGHT, COPIES).schema.jsonValue()
    hashes = content_hash.row_hashes(schema)
    items = {
        "come": f"coalesce(sum(greatest({WEIGHT}, 0)), 0)",
        "gone": f"coalesce(sum(greatest(-{WEIGHT}, 0)), 0)",
        "most": f"coalesce(max(if({WEIGHT} < 0, {COPIES}, {WEIGHT})), 0)",
        "negative": f"count_if({WEIGHT} < 0)",
    }
    kinds = {k: v for k, v in kinds_of(frame).items() if k not in (WEIGHT, COPIES)}
    items |= ranging(kinds, f"{WEIGHT} < 0")
    if hashes is not None:
        items |= content_hash.sums(hashes, WEIGHT)
    made, found = steps.computed(view, frame, items)
    come, gone, most, negative = (
        int(found.get(key) or 0) for key in ("come", "gone", "most", "negative")
    )
    sums = content_hash.combine(found) if hashes is not None and found else None
    return Change(made, view, come, gone, most, sums, ranges(kinds, found, negative))


def _published(standing: Standing, write: Callable[[Staged], Written]) -> Outcome:
    run, name, record, base = standing.run, standing.name, standing.record, standing.base
    expected, layout = run.expected(name), standing.layout
    shape = Shape(
        tuple((c.name, spark_type(c.type)) for c in base.columns),
        layout.partitioned_by,
        layout.sorted_by,
    )
    staged = run.catalog.stage(expected.namespace, expected.relation, run.id, shape)
    try:
        refuse_overtaken(run, name, staged.base)
        written = write(staged)
        reached("publish:3")
        if not written.come and not written.gone:
            return nothing(standing)
        facts = staged_facts(run, staged)
        data, total = _identified(standing, staged, facts, written)
        standing.audit(staged)
        come = written.come if written.come >= 0 else (total or 0) - (record.rows or 0)
        if name in run.accounts:
            run.accounts[name].written = come + written.gone
        done = publish(run, name, standing.states, staged, layout, data, record.schema, total)
        return msgspec.structs.replace(done, rows=Rows(come, written.gone, total))
    except Overtaken as overtaken:
        return adopt(run, name, standing.states, overtaken)
    finally:
        run.catalog.discard(staged, run.facts)


def _identified(
    standing: Standing, staged: Staged, facts: TableFacts, written: Written
) -> tuple[str, int | None]:
    """The data id and the row count after the change."""
    record = standing.record
    total = None if record.rows is None else record.rows + written.come - written.gone
    right = facts.total_records is None or total in (None, facts.total_records)
    if not right and written.gone:
        raise Refused("INTEGRITY", "the table did not hold what the change took away")
    data = content_hash.after(record.data, written.sums) if written.sums and right else None
    if data is not None:
        return data, total
    # never hashed, not observed, or observed twice by a retried task: what was written decides
    frame = standing.session.table(full_name(standing.run.catalog.name, *staged.parts))
    schema = frame.schema.jsonValue()
    metrics: dict[str, int | None] | None = {} if content_hash.row_hashes(schema) else None
    data, _, count = identify(standing.run, standing.session, schema, staged, facts, metrics)
    return data, count


def _write(standing: Standing, change: Change, staged: Staged) -> None:
    """Take rows away, then add rows: two commits under the alias, one for everyone else."""
    run, session, columns = standing.run, standing.session, standing.columns
    target = full_name(run.catalog.name, *staged.parts)
    if change.gone:
        kinds = kinds_of(change.frame)
        same = [_same(c, kinds[c]) for c in columns]
        limits = [
            found.of(f"t.{quote(c)}")
            for c, found in zip(columns, change.ranges, strict=True)
            if found is not None
        ]
        # a statement has no options: the session, which is this node's alone, has them
        session.conf.set(f"spark.sql.iceberg.{SNAPSHOT_PROPERTY}sqb.run-id", run.id)
        session.sql(
            f"MERGE INTO {target} AS t"
            f" USING (SELECT * FROM {change.view} WHERE {WEIGHT} < 0) AS s"
            f" ON {' AND '.join([*same, *limits])} WHEN MATCHED THEN DELETE"
        )
        reached("rows:1")
    copies = f"IF({WEIGHT} < 0, {COPIES}, {WEIGHT})"
    coming = change.frame.where(f"{copies} > 0")
    if change.most > 1:
        coming = coming.selectExpr("*", f"explode(sequence(1, CAST({copies} AS INT))) AS sqb_i")
    if change.most:
        rows = coming.selectExpr(*(quote(column) for column in columns))
        rows.writeTo(target).option(f"{SNAPSHOT_PROPERTY}sqb.run-id", run.id).append()


def _same(column: str, kind: str) -> str:
    mine, theirs = f"t.{quote(column)}", f"s.{quote(column)}"
    same = f"{mine} <=> {theirs}"
    told_apart = exact(mine, kind)
    if told_apart is not None:
        same += f" AND {told_apart} <=> {exact(theirs, kind)}"
    return same
