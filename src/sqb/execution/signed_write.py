"""A change of a table's own rows, written: staged, counted, hashed, published by one swap.

Whatever kind of table it is and however the change was found, this is the one way in which rows
come into a table that stands, and leave it. The content hash is not computed again: what goes is
taken off it, what comes is added.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.execution import content_hash
from sqb.execution.content_hash import quote, unused
from sqb.execution.events import Rows
from sqb.execution.outcome import Layout, Outcome
from sqb.execution.overtaking import adopt, refuse_overtaken
from sqb.execution.run import Run
from sqb.execution.sizes import is_small
from sqb.execution.statement import full_name, pinned
from sqb.execution.steps import BROADCAST_KEYS, Range, Steps, kinds_of, ranges, ranging
from sqb.execution.table import (
    WRITTEN_BY,
    committed,
    identified,
    publish,
    redress,
    staged_facts,
    unchanged,
    watched,
    write_table,
)
from sqb.identity.data_id import InputState
from sqb.lake.failpoints import reached
from sqb.lake.metadata import TableFacts
from sqb.lake.publish import Overtaken
from sqb.lake.shape import Shape, same_layout
from sqb.lake.staging import Staged
from sqb.lake.types import spark_type
from sqb.refresh.netting import Forbidden, exact, net
from sqb.refresh.reasons import Refused
from sqb.refresh.script import COPIES, WEIGHT
from sqb.state.record import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: The temp view that holds a change while it is written.
SIGNED = "sqb_signed"
#: Whether rows are taken away from those files alone that hold any of them.
_FILES_FIRST = "spark.sql.optimizer.runtime.rowLevelOperationGroupFilter.enabled"
#: Up to so many rows are written by one task.
_FEW = 100_000


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
    #: Rows that a run wrote in place and did not stamp stand on top of ``base``.
    unfinished: bool = False
    #: Looks at what is staged before it is published.
    audit: Callable[[Staged], None] = lambda _: None

    @property
    def standing(self) -> str:
        """SQL for the table as it stands, at the version that this run found."""
        text, is_select = pinned(self.run.table(self.name), self.base)
        return f"{text} AS sqb_t" if is_select else text

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Names and Spark types of the table's columns."""
        return tuple((c.name, spark_type(c.type)) for c in self.base.columns)

    def stored(self, values: Sequence[str]) -> list[str]:
        """Select items that give values the names and types of the table's columns."""
        pairs = zip(values, self.columns, strict=True)
        return [f"CAST({value} AS {kind}) AS {quote(name)}" for value, (name, kind) in pairs]


class Change(msgspec.Struct, frozen=True):
    """A signed change as it was measured: rows that come and go, the most copies of one row that
    are written, the sums of its hashes, the ranges of what goes. It is the view ``SIGNED`` too."""

    frame: DataFrame
    come: int
    gone: int
    most: int
    sums: tuple[int, int, int] | None
    ranges: tuple[Range | None, ...]


class Written(msgspec.Struct, frozen=True):
    """What was written: rows that came and went, and the sums of their hashes if they have any.

    ``come`` is None where it was not counted.
    """

    come: int | None
    gone: int
    sums: tuple[int, int, int] | None


def keep_rows(work: Work) -> Outcome:
    """The rows stay as they are: what they were made from is recorded, properties are written.

    Where the table is laid out in another way than its header says, they are written again.
    """
    layout = work.layout
    if work.unfinished or not same_layout(layout.partitioned_by, layout.sorted_by, work.base):
        rows = work.session.sql(f"SELECT * FROM {work.standing}")
        done = write_table(work.run, work.session, work.name, rows, work.states, layout)
        total = done.rows.total if done.rows is not None else None
        return msgspec.structs.replace(done, rows=Rows(0, 0, total))
    expected = work.run.expected(work.name)
    head = work.run.heads[(expected.namespace, expected.relation)]
    arguments = (work.run, work.name, work.states, head, work.base, work.record, work.layout)
    return unchanged(*arguments) or redress(*arguments)


def measured(steps: Steps, frame: DataFrame, unless: Sequence[Forbidden] = ()) -> Change:
    """Compute a signed change as ``SIGNED``, and say what it amounts to, in one pass.

    Raises ``Refused`` if it has rows that it must not have.
    """
    schema = frame.drop(WEIGHT, COPIES).schema.jsonValue()
    hashes = content_hash.row_hashes(schema)
    items = {
        "come": f"coalesce(sum(greatest({WEIGHT}, 0)), 0)",
        "gone": f"coalesce(sum(greatest(-{WEIGHT}, 0)), 0)",
        "most": f"coalesce(max(if({WEIGHT} < 0, {COPIES}, {WEIGHT})), 0)",
        "negative": f"count_if({WEIGHT} < 0)",
    }
    kinds = {k: v for k, v in kinds_of(frame).items() if k not in (WEIGHT, COPIES)}
    items |= {f"not{n}": f"count_if({one.rows})" for n, one in enumerate(unless)}
    items |= ranging(kinds, f"{WEIGHT} < 0")
    if hashes is not None:
        items |= content_hash.sums(hashes, WEIGHT)
    made, found = steps.computed(SIGNED, frame, items)
    come, gone, most, negative = (
        int(found.get(key) or 0) for key in ("come", "gone", "most", "negative")
    )
    for n, one in enumerate(unless):
        if found.get(f"not{n}"):
            raise Refused(one.code, one.why)
    sums = content_hash.combine(found) if hashes is not None and found else None
    return Change(made, come, gone, most, sums, ranges(kinds, found, negative))


def write_change(work: Work, change: Change, alter: Alter | None = None) -> Outcome:
    """Apply a measured change; ``alter`` comes first."""
    same = same_layout(work.layout.partitioned_by, work.layout.sorted_by, work.base)
    if not same or work.unfinished:
        return _rewrite(work, change, alter)
    if not change.come and not change.gone and alter is None:
        return keep_rows(work)

    def write(staged: Staged) -> Written:
        columns = work.columns
        if alter is not None:
            columns = alter.columns
            for clause in alter.clauses:
                target = full_name(work.run.catalog.name, *staged.parts)
                work.session.sql(f"ALTER TABLE {target} {clause}")
        if change.come or change.gone:
            _write(work, change, staged, [column for column, _ in columns])
        # the hash of a table whose columns are others begins anew
        return Written(change.come, change.gone, None if alter is not None else change.sums)

    def in_place() -> Outcome:
        return _rewrite(work, change, alter)

    return _published(work, write, in_place, altered=alter is not None)


def append_rows(work: Work, frame: DataFrame) -> Outcome:
    """Add rows, hashed while they are written; nothing is published if there are none."""

    def add(target: str) -> dict[str, Any]:
        rows, observation = watched(frame, frame.schema.jsonValue())
        rows.writeTo(target).option(WRITTEN_BY, work.run.id).append()
        return dict(observation.get) if observation is not None else {}

    def write(staged: Staged) -> Written:
        target = full_name(work.run.catalog.name, *staged.parts)
        metrics = committed(staged, lambda: add(target))
        grown = _grown(work, staged)
        come = content_hash.combine(metrics) if metrics else None
        if come is None or grown not in (None, come[0]):
            # can't be hashed, a Connect server does not tell what it observed, or it did twice
            return Written(grown, 0, None)
        return Written(come[0], 0, come)

    return _published(work, write)


def _grown(work: Work, staged: Staged) -> int | None:
    """How many rows more there are than before, as the commit counts them; None: it does not."""
    total, before = staged_facts(work.run, staged).total_records, work.record.rows
    return None if total is None or before is None else total - before


def overwrite_partitions(
    work: Work, coming: DataFrame, going: DataFrame, condition: str
) -> Outcome:
    """Replace whole partitions: ``coming`` is all that they hold then, ``going`` what they hold."""
    schema = coming.schema.jsonValue()
    hashes = content_hash.row_hashes(schema)
    if hashes is None:
        raise Refused("TYPE_NOT_COMPARABLE", "the rows can't be hashed")
    aggregates = [f"{sql} AS {key}" for key, sql in content_hash.sums(hashes).items()]
    row = going.selectExpr(*aggregates).first()
    gone = content_hash.combine(row.asDict() if row is not None else {})

    def overwrite(target: str) -> dict[str, Any]:
        from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows

        rows, observation = watched(coming, schema)
        writer = rows.writeTo(target).option(WRITTEN_BY, work.run.id)
        writer.overwrite(F.expr(condition))
        return dict(observation.get) if observation is not None else {}

    def write(staged: Staged) -> Written:
        target = full_name(work.run.catalog.name, *staged.parts)
        metrics = committed(staged, lambda: overwrite(target))
        come = content_hash.combine(metrics) if metrics else None
        if come is None or _grown(work, staged) not in (None, come[0] - gone[0]):
            # not observed, or twice: rows that are put in order are read once more before
            told = work.session.table(target).where(condition).selectExpr(*aggregates).first()
            come = content_hash.combine(told.asDict() if told is not None else {})
        if come == gone:
            return Written(0, 0, None)
        sums = (come[0] - gone[0], come[1] - gone[1], come[2] - gone[2])
        return Written(come[0], gone[0], sums)

    return _published(work, write)


def _published(
    work: Work,
    write: Callable[[Staged], Written],
    in_place: Callable[[], Outcome] | None = None,
    *,
    altered: bool = False,
) -> Outcome:
    """Stage, write, count, publish. ``in_place``: what is done where readers would see the table
    between two statements."""
    run, name, layout = work.run, work.name, work.layout
    expected = run.expected(name)
    shape = Shape(work.columns, layout.partitioned_by, layout.sorted_by)
    staged = run.catalog.stage(
        expected.namespace, expected.relation, run.id, Shape() if altered else shape
    )
    try:
        refuse_overtaken(run, name, staged.base)
        if staged.in_place and in_place is not None:
            return in_place()
        written = write(staged)
        reached("publish:3")
        if written.come == 0 and not written.gone and not altered:
            return keep_rows(work)
        facts = staged_facts(run, staged)
        data, schema, total = _identified(work, staged, facts, written, altered=altered)
        work.audit(staged)
        come = written.come
        if come is None:
            come = (total or 0) - (work.record.rows or 0)
        run.accounts[name].written = come + written.gone
        done = publish(run, name, work.states, staged, layout, data, schema, total)
        return msgspec.structs.replace(done, rows=Rows(come, written.gone, total))
    except Overtaken as overtaken:
        return adopt(run, name, work.states, overtaken)
    finally:
        run.catalog.discard(staged, run.facts)


def _identified(
    work: Work, staged: Staged, facts: TableFacts, written: Written, *, altered: bool
) -> tuple[str, str, int | None]:
    """Data id, schema id and row count after the change."""
    record = work.record
    known = record.rows is not None and written.come is not None
    total = (record.rows or 0) + (written.come or 0) - written.gone if known else None
    right = facts.total_records is None or total in (None, facts.total_records)
    if not right and written.gone:
        raise Refused("INTEGRITY", "the table did not hold what the change took away")
    if not altered and right and written.sums is not None:
        data = content_hash.after(record.data, written.sums)
        if data is not None:
            return data, record.schema, total
    # other columns, never hashed, not observed, or observed twice by a retried task
    plain: dict[str, Any] = work.session.table(
        full_name(work.run.catalog.name, *staged.parts)
    ).schema.jsonValue()
    return identified(work.run, work.session, plain, staged, facts)


def _rewrite(work: Work, change: Change, alter: Alter | None) -> Outcome:
    """Write all rows as they shall be, where they can't be changed in place: for another layout,
    or on a catalog that only lets tables be replaced."""
    columns = alter.columns if alter is not None else work.columns
    there, given = {name for name, _ in work.columns}, set(change.frame.columns)
    kept, coming = (
        ", ".join(
            f"CAST({quote(name) if name in known else 'NULL'} AS {kind}) AS {quote(name)}"
            for name, kind in columns
        )
        for known in (there, given)
    )
    names = ", ".join(f"b.{quote(name)}" for name, _ in columns)
    changed = f"SELECT {coming}, {WEIGHT} FROM {SIGNED}"
    if not change.gone:
        changed += f" WHERE {WEIGHT} > 0"
    union = f"SELECT {kept}, 1 AS {WEIGHT} FROM {work.standing} UNION ALL {changed}"
    if change.gone:
        union = net([(quote(name), kind) for name, kind in columns], union, "> 0")
    rows = work.session.sql(
        f"SELECT {names} FROM ({union}) AS b"
        f" LATERAL VIEW explode(sequence(1, CAST({WEIGHT} AS INT))) e AS sqb_i"
    )
    run, session, layout = work.run, work.session, work.layout
    done = write_table(run, session, work.name, rows, work.states, layout)
    total = done.rows.total if done.rows is not None else None
    return msgspec.structs.replace(done, rows=Rows(change.come, change.gone, total))


def _write(work: Work, change: Change, staged: Staged, columns: Sequence[str]) -> None:
    """Put a change into what is staged: other rows for all of a small table, else by parts."""
    target = full_name(work.run.catalog.name, *staged.parts)
    copies = f"IF({WEIGHT} < 0, {COPIES}, {WEIGHT})"
    coming = change.frame.where(f"{copies} > 0")
    if change.most > 1:
        other = unused(columns)
        coming = coming.selectExpr("*", f"explode(sequence(1, CAST({copies} AS INT))) AS {other}")
    coming = coming.selectExpr(*(quote(column) for column in columns))
    plain = not work.base.partitioning and list(columns) == [name for name, _ in work.columns]
    if change.gone and plain and is_small(work.base) and change.come <= _FEW:
        _overwrite(work, change, staged, target, coming)
        return
    if change.gone:
        _take(work, change, staged, target)
        reached("rows:1")
    if change.most:
        writer = coming.writeTo(target).option(WRITTEN_BY, work.run.id)
        committed(staged, writer.append)


def _overwrite(work: Work, change: Change, staged: Staged, target: str, coming: DataFrame) -> None:
    """All rows of a table without partitions as they shall be, in one commit and one file."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows

    kinds = _kinds(change)
    same = " AND ".join(_same(column, kind) for column, kind in kinds.items())
    hint = "/*+ BROADCAST(s) */ " if change.gone <= BROADCAST_KEYS else ""
    # a column that was just widened has other texts: 0.1 is not what it was
    items = ", ".join(
        f"CAST({quote(name)} AS {kinds[name]}) AS {quote(name)}" for name, _ in work.columns
    )
    staying = work.session.sql(
        f"SELECT {hint}t.* FROM (SELECT {items} FROM {work.standing}) AS t"
        f" ANTI JOIN (SELECT * FROM {SIGNED} WHERE {WEIGHT} < 0) AS s ON {same}"
    )
    rows = staying.unionAll(coming).coalesce(1)
    writer = rows.writeTo(target).option(WRITTEN_BY, work.run.id)
    committed(staged, lambda: writer.overwrite(F.lit(True)))


def _take(work: Work, change: Change, staged: Staged, target: str) -> None:
    """Take rows away from the files that hold them."""
    kinds = _kinds(change)
    same = [_same(column, kind) for column, kind in kinds.items()]
    limits = [
        found.of(f"t.{quote(column)}")
        for column, found in zip(kinds, change.ranges, strict=True)
        if found is not None
    ]
    # a statement has no options: the session, which is this node's alone, has them
    work.session.conf.set(f"spark.sql.iceberg.{WRITTEN_BY}", work.run.id)
    # looking first which files hold such rows costs a query, small files less than that
    work.session.conf.set(_FILES_FIRST, "false" if is_small(work.base) else "true")
    merge = (
        f"MERGE INTO {target} AS t USING (SELECT * FROM {SIGNED} WHERE {WEIGHT} < 0) AS s"
        f" ON {' AND '.join([*same, *limits])} WHEN MATCHED THEN DELETE"
    )
    committed(staged, lambda: work.session.sql(merge))


def _kinds(change: Change) -> dict[str, str]:
    """Spark's types of the table's columns in a change."""
    return {k: v for k, v in kinds_of(change.frame).items() if k not in (WEIGHT, COPIES)}


def _same(column: str, kind: str) -> str:
    mine, theirs = f"t.{quote(column)}", f"s.{quote(column)}"
    same = f"{mine} <=> {theirs}"
    told_apart = exact(mine, kind)
    if told_apart is not None:
        same += f" AND {told_apart} <=> {exact(theirs, kind)}"
    return same
