"""Tables: stage the rows under an alias, hash them while they are written, publish by one swap."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from sqb.errors import SqbError
from sqb.execution import content_hash
from sqb.execution.content_hash import quote
from sqb.execution.events import Rows
from sqb.execution.files import check_unchanged
from sqb.execution.outcome import Layout, Outcome
from sqb.execution.overtaking import adopt, refuse_overtaken
from sqb.execution.run import Published, Run
from sqb.execution.statement import full_name, literal
from sqb.hashing import digest
from sqb.identity.data_id import InputState
from sqb.lake.catalog import Head
from sqb.lake.describe import properties as described_by
from sqb.lake.failpoints import reached
from sqb.lake.metadata import DEFINITION, Column, TableFacts
from sqb.lake.publish import FRESH_TABLE_PROPERTIES, Overtaken
from sqb.lake.shape import Shape, not_given
from sqb.lake.staging import Staged
from sqb.lake.types import iceberg_schema, spark_type
from sqb.lake.writers import RUN_ID
from sqb.spark.kinds import forget, keep
from sqb.state.definition import pack
from sqb.state.record import Record, encode, untouched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

#: The write option that puts the run into the snapshot's summary.
WRITTEN_BY = f"snapshot-property.{RUN_ID}"

T = TypeVar("T")

_BRANCH_WRITES = 4
_NUMBER_TAKEN = "Cannot add snapshot with sequence number"


def write_table(
    run: Run,
    session: SparkSession,
    name: str,
    frame: DataFrame,
    states: Mapping[str, InputState],
    layout: Layout,
    files: Sequence[str] = (),
    check: Callable[[DataFrame], None] | None = None,
) -> Outcome:
    """Bring the table of ``name`` to hold exactly the rows of ``frame``, read from ``files``.

    ``check`` looks at the rows before readers see them, and raises where they must not be.
    """
    expected = run.expected(name)
    schema: dict[str, Any] = frame.schema.jsonValue()
    refuse_twice(name, frame.columns)
    # refuses what Iceberg can't hold before anything is staged
    shape = Shape(stored_columns(schema), layout.partitioned_by, layout.sorted_by)
    refuse_layout(name, shape)
    staged = run.catalog.stage(expected.namespace, expected.relation, run.id, shape)
    kept_rows: DataFrame | None = None
    try:
        refuse_overtaken(run, name, staged.base)
        if check is not None and staged.in_place:
            frame = kept_rows = keep(frame)
            check(frame)
        metrics = committed(staged, lambda: _write(run, session, frame, schema, staged, layout))
        reached("publish:3")
        if check is not None and not staged.in_place:
            check(session.table(full_name(run.catalog.name, *staged.parts)))
        check_unchanged(run.sources, files)
        facts = staged_facts(run, staged)
        data, columns, count = identify(run, session, schema, staged, facts, metrics)
        kept = _cut_off(run, name, states, staged, facts, data, layout)
        if kept is not None:
            return kept
        return publish(run, name, states, staged, layout, data, columns, count)
    except Overtaken as overtaken:
        return adopt(run, name, states, overtaken)
    finally:
        if kept_rows is not None:
            forget(kept_rows)
        run.catalog.discard(staged, run.facts)


def columns_id(columns: tuple[Column, ...]) -> str:
    """Ordered names and types, without field ids: what readers of a table see."""
    return digest(*(part for c in columns for part in (c.name, spark_type(c.type))))


def staged_facts(run: Run, staged: Staged) -> TableFacts:
    """The facts of what was written under the alias."""
    facts = run.catalog.staged_facts(staged, run.facts)
    if facts is None:
        raise SqbError(
            "X004",
            f"the staged table {staged.namespace}.{staged.name} is gone",
            help="another process removed it while this build ran; build again",
            exit_code=1,
        )
    return facts


def committed(staged: Staged, write: Callable[[], T]) -> T:
    """Do what ends in one commit; on a branch once more where another branch was written at that
    moment.

    Branches of one table share its sequence numbers, and older REST servers answer to a number
    that was just taken as to a request that makes no sense, which Spark does not repeat.
    """
    for _ in range(_BRANCH_WRITES - 1):
        try:
            return write()
        except Exception as error:  # noqa: PERF203 - next to a write it costs nothing
            if staged.branch is None or _NUMBER_TAKEN not in str(error):
                raise
    return write()


def _write(
    run: Run,
    session: SparkSession,
    frame: DataFrame,
    schema: Mapping[str, Any],
    staged: Staged,
    layout: Layout,
) -> dict[str, int | None] | None:
    """Write the rows under the alias; what the content hash observed, None if it can't be taken."""
    from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows

    frame, observation = watched(frame, schema)
    target = full_name(run.catalog.name, *staged.parts)
    writer = frame.writeTo(target).option(WRITTEN_BY, run.id)
    properties = {**FRESH_TABLE_PROPERTIES, **layout.properties}
    location = staged.location
    if staged.branch is not None:
        writer.overwrite(F.lit(True))
    elif staged.in_place and (layout.partitioned_by or layout.sorted_by):
        # a statement has no options: the session, which is this node's alone, has them
        session.conf.set(f"spark.sql.iceberg.{WRITTEN_BY}", run.id)
        _replace(session, frame, target, layout, properties)
    elif layout.partitioned_by or layout.sorted_by:
        for statement in _ddl(target, schema, layout, properties, location):
            session.sql(statement)
        writer.append()
    else:
        writer = writer.using("iceberg")
        if location is not None:
            properties["location"] = location
        for key, value in properties.items():
            writer = writer.tableProperty(key, value)
        writer.create() if staged.creates else writer.createOrReplace()
    return dict(observation.get) if observation is not None else None


def watched(frame: DataFrame, schema: Mapping[str, Any]) -> tuple[DataFrame, Observation | None]:
    """The same rows, hashed while they are written; None if they can't be."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows

    hashes = content_hash.row_hashes(schema)
    if hashes is None:
        return frame, None
    observation = Observation()
    aggregates = content_hash.sums(hashes).items()
    exprs = (F.expr(sql).alias(key) for key, sql in aggregates)
    return frame.observe(observation, *exprs), observation


def _replace(
    session: SparkSession,
    frame: DataFrame,
    target: str,
    layout: Layout,
    properties: Mapping[str, str],
) -> None:
    """Replace a table that readers see: one statement, so that they never find it empty."""
    view = f"__sqb_{digest(target)[:16]}"
    frame.createOrReplaceTempView(view)
    try:
        pairs = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in properties.items())
        clauses = [f"CREATE OR REPLACE TABLE {target} USING iceberg"]
        if layout.partitioned_by:
            clauses.append(f"PARTITIONED BY ({', '.join(layout.partitioned_by)})")
        clauses.append(f"TBLPROPERTIES ({pairs}) AS SELECT * FROM {view}")
        if layout.sorted_by:
            clauses.append(f"ORDER BY {', '.join(layout.sorted_by)}")
        session.sql(" ".join(clauses))
    finally:
        session.catalog.dropTempView(view)


def refuse_twice(name: str, columns: Sequence[str]) -> None:
    """Raise if two columns of a query have one name."""
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise SqbError(
            "X001",
            f"the query of `{name}` gives two columns named `{twice}`",
            help="give one of them another name with AS",
            exit_code=1,
        )


def refuse_layout(name: str, shape: Shape) -> None:
    """Raise if rows are to be laid out by a column that they don't have."""
    found = not_given(shape)
    if found is not None:
        key, column = found
        raise SqbError(
            "X007",
            f"`{key}` of `{name}` names `{column}`, which its query does not give",
            help=f"nothing was written; the query gives {', '.join(c for c, _ in shape.columns)}",
            exit_code=1,
        )


def stored_columns(schema: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and Spark types of the columns as Iceberg will hold them."""
    fields = iceberg_schema(dict(schema))["fields"]
    return tuple((f["name"], spark_type(_type_text(f["type"]))) for f in fields)


def _ddl(
    target: str,
    schema: Mapping[str, Any],
    layout: Layout,
    properties: Mapping[str, str],
    location: str | None,
) -> list[str]:
    """An empty table with partitions and order, for rows to be written into as it wants them."""
    typed = ", ".join(f"{quote(name)} {kind}" for name, kind in stored_columns(schema))
    clauses = [f"({typed})", "USING iceberg"]
    if layout.partitioned_by:
        clauses.append(f"PARTITIONED BY ({', '.join(layout.partitioned_by)})")
    if location is not None:
        clauses.append(f"LOCATION {literal(location)}")
    pairs = ", ".join(f"{literal(k)} = {literal(v)}" for k, v in properties.items())
    clauses.append(f"TBLPROPERTIES ({pairs})")
    statements = [f"CREATE OR REPLACE TABLE {target} {' '.join(clauses)}"]
    if layout.sorted_by:
        statements.append(f"ALTER TABLE {target} WRITE ORDERED BY {', '.join(layout.sorted_by)}")
    return statements


def _type_text(kind: object) -> str:
    return kind if isinstance(kind, str) else msgspec.json.encode(kind).decode()


def identify(
    run: Run,
    session: SparkSession,
    schema: Mapping[str, Any],
    staged: Staged,
    facts: TableFacts,
    metrics: dict[str, int | None] | None,
) -> tuple[str, str, int | None]:
    """Data id, schema id and row count of what was staged; ``metrics`` is None where rows can't be
    hashed, and empty where nothing was observed."""
    columns = columns_id(facts.columns)
    if metrics is None:
        return f"s:{facts.uuid}:{facts.snapshot_id}", columns, facts.total_records
    if not metrics:
        # what a Connect server observes inside a temp view it does not tell
        metrics = _measure(run, session, schema, staged)
    count, first, second = content_hash.combine(metrics)
    if facts.total_records is not None and count != facts.total_records:
        # a retried task can be observed twice: what was written decides
        metrics = _measure(run, session, schema, staged)
        count, first, second = content_hash.combine(metrics)
    return content_hash.data_id(columns, count, first, second), columns, count


def identified(
    run: Run, session: SparkSession, schema: Mapping[str, Any], staged: Staged, facts: TableFacts
) -> tuple[str, str, int | None]:
    """The same of a staged table that nothing was observed of: its rows are read again."""
    metrics = _measure(run, session, schema, staged) if content_hash.row_hashes(schema) else None
    return identify(run, session, schema, staged, facts, metrics)


def _measure(
    run: Run, session: SparkSession, schema: Mapping[str, Any], staged: Staged
) -> dict[str, int | None]:
    """The content hash of a staged table, read back."""
    hashes = content_hash.row_hashes(schema)
    if hashes is None:
        raise AssertionError("only hashable tables are measured")
    table = session.table(full_name(run.catalog.name, *staged.parts))
    aggregates = content_hash.sums(hashes).items()
    row = table.selectExpr(*(f"{sql} AS {key}" for key, sql in aggregates)).first()
    return dict(row.asDict()) if row is not None else {}


def _cut_off(
    run: Run,
    name: str,
    states: Mapping[str, InputState],
    staged: Staged,
    facts: TableFacts,
    data: str,
    layout: Layout,
) -> Outcome | None:
    """The same rows, columns and layout as before: nothing is published (early cut-off)."""
    if staged.base is None or staged.base.kind != "table" or staged.in_place:
        return None
    base = run.facts.get(staged.base.location)
    before = run.situation.recorded.get(name)
    if before is None or before.data != data or not untouched(before, base):
        return None
    if base.partitioning != facts.partitioning or base.sort_order != facts.sort_order:
        return None
    kept = unchanged(run, name, states, staged.base, base, before, layout)
    if kept is not None:
        return kept
    run.catalog.discard(staged, run.facts)
    return redress(run, name, states, staged.base, base, before, layout)


def unchanged(
    run: Run,
    name: str,
    states: Mapping[str, InputState],
    head: Head,
    base: TableFacts,
    before: Record,
    layout: Layout,
) -> Outcome | None:
    """The table as it stands, recorded with what it was now made from; None if its properties are
    not those that it shall have."""
    wanted = wanted_properties(run, name, layout)
    kept = all(base.properties.get(k) == v for k, v in wanted.items() if k != DEFINITION)
    if not kept or _managed(base) - set(wanted):
        return None
    record = _confirmed(run, name, states, base, before)
    return Outcome(
        Published(head, base, record), "unchanged", Rows(0, 0, before.rows), amended=True
    )


def redress(
    run: Run,
    name: str,
    states: Mapping[str, InputState],
    head: Head,
    base: TableFacts,
    before: Record,
    layout: Layout,
) -> Outcome:
    """The same rows with other properties: a commit of these alone."""
    record = _confirmed(run, name, states, base, before)
    head = run.catalog.publish_properties(
        namespace=head.namespace,
        table=head.name,
        base=head,
        run_id=run.id,
        properties=wanted_properties(run, name, layout),
        make_stamp=lambda _: encode(record),
    )
    facts = run.facts.get(head.location)
    return Outcome(Published(head, facts, record), "unchanged", Rows(0, 0, before.rows))


def _confirmed(
    run: Run, name: str, states: Mapping[str, InputState], base: TableFacts, before: Record
) -> Record:
    """The record of rows that were found to be what the inputs of now give."""
    record = run.make_record(
        name, states, base, data=before.data, schema=before.schema, rows=before.rows
    )
    return msgspec.structs.replace(record, snapshot=before.snapshot)


def _managed(facts: TableFacts) -> set[str]:
    from sqb.lake.metadata import MANAGED

    text = facts.properties.get(MANAGED)
    keys = msgspec.json.decode(text, type=list[str]) if text else []
    return set(keys) - {DEFINITION}


def wanted_properties(run: Run, name: str, layout: Layout) -> dict[str, str]:
    """All properties that a node's table shall have from sqb, its stamp aside."""
    return {
        **{k: v for k, v in FRESH_TABLE_PROPERTIES.items() if k != "format-version"},
        **described_by(run.expected(name).described),
        **layout.properties,
        DEFINITION: pack(run.definition(name)),
    }


def publish(
    run: Run,
    name: str,
    states: Mapping[str, InputState],
    staged: Staged,
    layout: Layout,
    data: str,
    columns: str,
    count: int | None,
) -> Outcome:
    """Make what is staged the table, with its stamp."""
    expected = run.expected(name)
    made: list[Record] = []

    def stamp(facts: TableFacts) -> str:
        made.append(run.make_record(name, states, facts, data=data, schema=columns, rows=count))
        return encode(made[-1])

    head = run.catalog.publish_table(
        namespace=expected.namespace,
        table=expected.relation,
        staged=staged,
        properties=wanted_properties(run, name, layout),
        make_stamp=stamp,
        # a table that was replaced in place by one statement has no order yet
        sort_order=layout.sorted_by if staged.in_place else None,
    )
    facts = run.facts.get(head.location)
    before = run.situation.recorded.get(name)
    deleted = before.rows if before is not None and before.materialized != "view" else None
    rows = Rows(count, deleted or 0, count)
    return Outcome(Published(head, facts, made[-1]), "success", rows)
