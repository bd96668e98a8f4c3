"""A signed change of a table's own rows, written: staged, counted, hashed, published by one swap.

Whatever kind of table it is and however the change was found, this is the one way in which rows
come into a table that stands, and leave it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.execution import content_hash
from sqb.execution.content_hash import quote
from sqb.execution.events import Rows
from sqb.execution.run import Run
from sqb.execution.statement import full_name
from sqb.execution.steps import Keys, Range, measured
from sqb.execution.table import (
    SNAPSHOT_PROPERTY,
    Layout,
    Outcome,
    adopt,
    identified,
    publish,
    redress,
    refuse_overtaken,
    staged_facts,
    unchanged,
    write_table,
)
from sqb.identity.data_id import InputState
from sqb.lake.failpoints import reached
from sqb.lake.metadata import TableFacts
from sqb.lake.publish import Overtaken
from sqb.lake.shape import Shape, same_layout
from sqb.lake.staging import Staged
from sqb.lake.types import spark_type
from sqb.refresh.reasons import Refused
from sqb.refresh.script import COPIES, WEIGHT
from sqb.refresh.signed import exact
from sqb.state.record import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The temp view that holds a change while it is written.
SIGNED = "sqb_signed"


class Alter(msgspec.Struct, frozen=True):
    """Other columns for a table: the ends of its ALTER TABLE statements, and its columns then."""

    clauses: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]


class Work(msgspec.Struct, frozen=True):
    """One table of a run that stands and is brought up to date."""

    run: Run
    session: SparkSession
    name: str
    states: Mapping[str, InputState]
    layout: Layout
    record: Record
    base: TableFacts

    @property
    def standing(self) -> str:
        """SQL for the table as it stands, at the version that this run found."""
        table = self.run.table(self.name)
        if self.base.snapshot_id is None:
            return f"(SELECT * FROM {table} WHERE false) AS sqb_t"
        return f"{table} VERSION AS OF {self.base.snapshot_id}"

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Names and Spark types of the table's columns."""
        return tuple((c.name, spark_type(c.type)) for c in self.base.columns)


def keep_rows(work: Work) -> Outcome:
    """The rows stay as they are: what they were made from is recorded, properties are written."""
    expected = work.run.expected(work.name)
    head = work.run.heads[(expected.namespace, expected.relation)]
    arguments = (work.run, work.name, work.states, head, work.base, work.record, work.layout)
    return unchanged(*arguments) or redress(*arguments)


def write_change(
    work: Work,
    frame: DataFrame,
    alter: Alter | None = None,
) -> Outcome:
    """Apply a computed change, which is the temp view ``SIGNED`` too; ``alter`` comes first."""
    run, name, record = work.run, work.name, work.record
    change = _measure(frame, frame.drop(WEIGHT, COPIES).schema.jsonValue())
    laid_out = same_layout(work.layout.partitioned_by, work.layout.sorted_by, work.base)
    if not laid_out:
        return _rewrite(work, frame, change, alter)
    if not change.come and not change.gone and alter is None:
        return keep_rows(work)
    expected = run.expected(name)
    shape = Shape(work.columns, work.layout.partitioned_by, work.layout.sorted_by)
    if alter is not None:
        shape = Shape()
    staged = run.catalog.stage(expected.namespace, expected.relation, run.id, shape)
    try:
        refuse_overtaken(run, name, staged.base)
        if staged.in_place:
            # readers would see the table between two statements
            return _rewrite(work, frame, change, alter)
        columns = work.columns
        if alter is not None:
            columns = alter.columns
            for clause in alter.clauses:
                target = full_name(run.catalog.name, *staged.parts)
                work.session.sql(f"ALTER TABLE {target} {clause}")
        if change.come or change.gone:
            _write(work, frame, staged, change, [column for column, _ in columns])
        reached("publish:3")
        facts = staged_facts(run, staged)
        total = None if record.rows is None else record.rows + change.come - change.gone
        if facts.total_records is not None and total not in (None, facts.total_records):
            raise Refused("INTEGRITY", "the table did not hold what the change took away")
        data, schema = None, record.schema
        if alter is not None:
            plain = work.session.table(full_name(run.catalog.name, *staged.parts)).schema
            data, schema, total = identified(run, work.session, plain.jsonValue(), staged, facts)
        elif change.sums is not None:
            data = content_hash.after(record.data, change.sums)
        data = data or f"s:{facts.uuid}:{facts.snapshot_id}"
        done = publish(run, name, work.states, staged, work.layout, data, schema, total)
        return msgspec.structs.replace(done, rows=Rows(change.come, change.gone, total))
    except Overtaken as overtaken:
        return adopt(run, name, work.states, overtaken)
    finally:
        run.catalog.discard(staged, run.facts)


def _rewrite(work: Work, frame: DataFrame, change: Change, alter: Alter | None) -> Outcome:
    """Write all rows as they shall be, where they can't be changed in place: for another layout,
    or on a catalog that only lets tables be replaced."""
    columns = alter.columns if alter is not None else work.columns
    there, given = {name for name, _ in work.columns}, set(frame.columns)
    kept, coming = (
        ", ".join(
            f"CAST({quote(name) if name in known else 'NULL'} AS {kind}) AS {quote(name)}"
            for name, kind in columns
        )
        for known in (there, given)
    )
    names = ", ".join(quote(name) for name, _ in columns)
    changed = f"SELECT {coming}, {WEIGHT} FROM {SIGNED}"
    if not change.gone:
        changed += f" WHERE {WEIGHT} > 0"
    union = f"SELECT {kept}, 1 AS {WEIGHT} FROM {work.standing} UNION ALL {changed}"
    if change.gone:
        shadows = [exact(quote(name), kind) for name, kind in columns]
        grouped = ", ".join([names, *(shadow for shadow in shadows if shadow)])
        union = (
            f"SELECT {names}, SUM({WEIGHT}) AS {WEIGHT} FROM ({union}) AS a GROUP BY {grouped}"
            f" HAVING SUM({WEIGHT}) > 0"
        )
    rows = work.session.sql(
        f"SELECT {names} FROM ({union}) AS b"
        f" LATERAL VIEW explode(sequence(1, CAST({WEIGHT} AS INT))) e AS sqb_i"
    )
    run, session, layout = work.run, work.session, work.layout
    done = write_table(run, session, work.name, rows, work.states, layout)
    total = done.rows.total if done.rows is not None else None
    return msgspec.structs.replace(done, rows=Rows(change.come, change.gone, total))


def _write(
    work: Work, frame: DataFrame, staged: Staged, change: Change, columns: Sequence[str]
) -> None:
    """Take rows away, then add rows: two commits under the alias, one for everyone else."""
    run = work.run
    target = full_name(run.catalog.name, *staged.parts)
    if change.gone:
        kinds = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
        same = [_same(c, kinds[c]) for c in frame.columns if c not in (WEIGHT, COPIES)]
        limits = [
            found.of(f"t.{quote(c)}")
            for c, found in zip(frame.columns, change.ranges, strict=False)
            if found is not None
        ]
        # a statement has no options: the session, which is this node's alone, has them
        work.session.conf.set(f"spark.sql.iceberg.{SNAPSHOT_PROPERTY}sqb.run-id", run.id)
        work.session.sql(
            f"MERGE INTO {target} AS t USING (SELECT * FROM {SIGNED} WHERE {WEIGHT} < 0) AS s"
            f" ON {' AND '.join([*same, *limits])} WHEN MATCHED THEN DELETE"
        )
    copies = f"IF({WEIGHT} < 0, {COPIES}, {WEIGHT})"
    coming = frame.where(f"{copies} > 0")
    if change.most > 1:
        coming = coming.selectExpr("*", f"explode(sequence(1, CAST({copies} AS INT))) AS sqb_i")
    if change.come or change.most:
        rows = coming.selectExpr(*(quote(column) for column in columns))
        rows.writeTo(target).option(f"{SNAPSHOT_PROPERTY}sqb.run-id", run.id).append()


class Change(msgspec.Struct, frozen=True):
    """A signed change as it was measured: rows that come and go, the most copies of one row that
    are written, the sums of its hashes, the ranges of what goes."""

    come: int
    gone: int
    most: int
    sums: tuple[int, int, int] | None
    ranges: tuple[Range | None, ...]


def _measure(frame: DataFrame, schema: Mapping[str, Any]) -> Change:
    hashes = content_hash.row_hashes(schema)
    items = {
        "come": f"coalesce(sum(greatest({WEIGHT}, 0)), 0)",
        "gone": f"coalesce(sum(greatest(-{WEIGHT}, 0)), 0)",
        "most": f"coalesce(max(if({WEIGHT} < 0, {COPIES}, {WEIGHT})), 0)",
    }
    if hashes is not None:
        items |= content_hash.sums(hashes, WEIGHT)
    row = frame.selectExpr(*(f"{sql} AS {key}" for key, sql in items.items())).first()
    found: dict[str, int | None] = row.asDict() if row is not None else {}
    come, gone, most = (int(found.get(key) or 0) for key in ("come", "gone", "most"))
    sums = content_hash.combine(found) if hashes is not None and found else None
    columns = [field["name"] for field in schema["fields"]]
    ranges: tuple[Range | None, ...] = (None,) * len(columns)
    if gone:
        ranges = _ranges(frame, columns).ranges
    return Change(come, gone, most, sums, ranges)


def _ranges(frame: DataFrame, columns: Sequence[str]) -> Keys:
    return measured(frame.where(f"{WEIGHT} < 0"), columns)


def _same(column: str, kind: str) -> str:
    mine, theirs = f"t.{quote(column)}", f"s.{quote(column)}"
    same = f"{mine} <=> {theirs}"
    told_apart = exact(mine, kind)
    if told_apart is not None:
        same += f" AND {told_apart} <=> {exact(theirs, kind)}"
    return same
