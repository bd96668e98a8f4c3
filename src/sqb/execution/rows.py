"""Tables refreshed by rows: what changed in the inputs flows through the query, the rest stays.

The table ends up exactly as a full rebuild would have left it, or it is rebuilt and the reason is
told. Everything is decided before anything is written; what is written is one signed change of
the table's own rows, staged and published like a rebuild.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from sqb.errors import SqbError
from sqb.execution import content_hash
from sqb.execution.change_sets import Bound, Source, old_versions, sources_of
from sqb.execution.content_hash import quote
from sqb.execution.events import Rows
from sqb.execution.run import Run
from sqb.execution.statement import full_name
from sqb.execution.steps import Keys, Range, Steps, measured
from sqb.execution.table import (
    SNAPSHOT_PROPERTY,
    Layout,
    Outcome,
    adopt,
    publish,
    refuse_overtaken,
    staged_facts,
    unchanged,
)
from sqb.execution.understanding import understand
from sqb.identity.data_id import InputState
from sqb.lake.failpoints import reached
from sqb.lake.metadata import TableFacts
from sqb.lake.publish import Overtaken
from sqb.lake.shape import Shape
from sqb.lake.staging import Staged
from sqb.lake.types import spark_type
from sqb.planning.plan import PlannedNode, Strategy
from sqb.planning.row_gates import refuse
from sqb.refresh.build import Plan
from sqb.refresh.cost import affordable
from sqb.refresh.ir import Aggregate, Col, Node, Window, inputs, output
from sqb.refresh.reasons import Refused, Rejected
from sqb.refresh.script import COPIES, WEIGHT, Script, text
from sqb.refresh.signed import Target, exact, signed_change
from sqb.refresh.strategies import (
    AffectedKey,
    Choice,
    GroupMerge,
    Option,
    Situation,
    choose,
)
from sqb.sql.fragments import Unsupported
from sqb.state.record import Record, untouched

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def refresh_rows(
    run: Run,
    session: SparkSession,
    node: PlannedNode,
    states: Mapping[str, InputState],
    layout: Layout,
) -> Outcome | Strategy:
    """Refresh a table by rows; or the strategy ``full`` with the reason why that can't be."""
    try:
        refresh = _Refresh(run, session, node, states, layout)
        try:
            return refresh.outcome()
        finally:
            refresh.close()
    except Refused as refused:
        rejected = Rejected("rows", refused.code, refused.why)
        return full(refused.code, refused.why, (rejected,))
    except Unsupported as found:
        return full(found.code, str(found), (Rejected("rows", found.code, str(found)),))
    except SqbError:
        raise
    except Exception as error:
        if run.stopping.is_set() or os.environ.get("SQB_ROW_ERRORS") == "raise":
            raise
        why = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        return full("ROW_ERROR", why, (Rejected("rows", "ROW_ERROR", why),))


def full(code: str, why: str, rejected: Sequence[Rejected] = ()) -> Strategy:
    """The strategy of a full rebuild, with its reason."""
    return Strategy(
        "full",
        why,
        rejected=tuple({"name": r.name, "code": r.code, "why": r.why} for r in rejected),
        code=code,
    )


class _Refresh:
    """One table on its way from the inputs of its record to those of this run."""

    def __init__(
        self,
        run: Run,
        session: SparkSession,
        node: PlannedNode,
        states: Mapping[str, InputState],
        layout: Layout,
    ) -> None:
        self.run, self.session, self.node, self.states = run, session, node, states
        self.layout = layout
        self.name = node.name
        self.steps: Steps | None = None
        self.mode = run.refresh_of(node.name)

    def close(self) -> None:
        if self.steps is not None:
            self.steps.close()

    def outcome(self) -> Outcome:
        run, name = self.run, self.name
        record, base = run.situation.recorded.get(name), run.situation.relations.get(name)
        refuse(self.node.reason, record, self.mode, run.catalog.mode, self.states)
        if record is None or base is None or not untouched(record, base):
            raise Refused("TARGET_MODIFIED_OUTSIDE", "the table was written by someone else")
        plan = understand(run, name, record.clock, self._ask)
        sources = sources_of(run, record, plan.root)
        for source in sources.values():
            if source.change.way == "unknown":
                raise Refused("NO_CHANGE_SET", f"{source.name}: {source.change.reason}")
        option, choice, signed = self._choose(base, plan, sources)
        if option is None or signed is None:
            why = "what changed in the inputs is not read by the query"
            strategy = Strategy("skip", why, code="NET_CHANGE_EMPTY")
            return msgspec.structs.replace(self._nothing(record, base), strategy=strategy)
        strategy = told(option, choice, plan)
        outcome = self._apply(record, base, signed)
        return msgspec.structs.replace(outcome, strategy=strategy)

    def _ask(self, name: str) -> tuple[str, ...]:
        text, is_select = self.run.read(name)
        return tuple(self.session.sql(f"SELECT * FROM {text}{' AS s' * is_select}").columns)

    # What to do

    def _choose(
        self, base: TableFacts, plan: Plan, sources: Mapping[str, Source]
    ) -> tuple[Option | None, Choice, DataFrame | None]:
        bound = Bound(self.run, self.session, sources)
        script = Script(bound.relation, quote)
        self.steps = steps = Steps(self.session, script)
        types = self._types(plan, script, steps)
        self._same_shape(base, plan, types)
        changes = bound.bind(steps)
        situation = Situation(plan, changes, types, old_versions(sources))
        choice = choose(situation, script)
        if not situation.moves:
            return None, choice, None
        if not choice.options:
            last = choice.rejected[-1]
            raise Refused(last.code, last.why)
        option = affordable(choice, situation, self._numbers(sources), self.mode)
        names = tuple(quote(column.name) for column in base.columns)
        kinds = tuple(types[col] for col in output(plan.root))
        target = Target(self._standing(), names, kinds)
        signed = signed_change(option, script, plan.root, target)
        frame = steps.frame(signed.change)
        items = [
            f"CAST({col.name} AS {spark_type(column.type)}) AS {quote(column.name)}"
            for col, column in zip(output(plan.root), base.columns, strict=True)
        ]
        frame = frame.selectExpr(*items, f"CAST({WEIGHT} AS BIGINT) AS {WEIGHT}", COPIES)
        frame = steps.compute("sqb_signed", frame)
        if signed.broken is not None and steps.frame(signed.broken).first() is not None:
            raise Refused("INTEGRITY", "the table does not hold what the change takes away")
        return option, choice, frame

    def _types(self, plan: Plan, script: Script, steps: Steps) -> dict[Col, str]:
        """Spark's types of the plan's results: of the whole and of its groups and windows."""
        found: dict[Col, str] = {}

        def look(node: Node, top: bool) -> None:
            if top or isinstance(node, Aggregate | Window):
                fields = steps.described(script.state(node, "new")).schema.fields
                found.update({Col(f.name): f.dataType.simpleString() for f in fields})
            for child in inputs(node):
                look(child, False)

        look(plan.root, True)
        return found

    def _same_shape(self, base: TableFacts, plan: Plan, types: Mapping[Col, str]) -> None:
        """The plan must give the very columns that the table has."""
        cols = output(plan.root)
        if len(cols) != len(base.columns):
            raise Refused("SCHEMA_CHANGED", "the query gives other columns than the table has")
        reserved = {WEIGHT, COPIES}
        for col, name, column in zip(cols, plan.names, base.columns, strict=True):
            if column.name.lower() in reserved:
                raise Refused("UNSUPPORTED", f"a column named {column.name}")
            if name.isidentifier() and name.lower() != column.name.lower():
                raise Refused("SCHEMA_CHANGED", f"column {column.name} is {name} now")
            if _stored(types[col]) != spark_type(column.type).lower().replace(", ", ","):
                why = f"column {column.name} is {types[col]} now"
                raise Refused("SCHEMA_CHANGED", why)

    def _standing(self) -> str:
        """The table as it stands, at the version that this run found."""
        table = self.run.table(self.name)
        facts = self.run.situation.relations[self.name]
        if facts.snapshot_id is None:
            return f"(SELECT * FROM {table} WHERE false) AS sqb_t"
        return f"{table} VERSION AS OF {facts.snapshot_id}"

    def _numbers(self, sources: Mapping[str, Source]) -> dict[str, int | None]:
        return {
            name: source.facts.total_records if source.facts is not None else None
            for name, source in sources.items()
        }

    # Doing it

    def _nothing(self, record: Record, base: TableFacts) -> Outcome:
        """The rows stay as they are: only what they were made from is recorded."""
        expected = self.run.expected(self.name)
        head = self.run.heads[(expected.namespace, expected.relation)]
        kept = unchanged(self.run, self.name, self.states, head, base, record, self.layout)
        if kept is None:
            raise Refused("DEFINITION_CHANGED", "the table's properties are to be written")
        return kept

    def _apply(self, record: Record, base: TableFacts, frame: DataFrame) -> Outcome:
        run, name = self.run, self.name
        schema = frame.drop(WEIGHT, COPIES).schema.jsonValue()
        change = _measure(frame, schema)
        if not change.come and not change.gone:
            return self._nothing(record, base)
        expected = run.expected(name)
        shape = Shape(
            tuple((c.name, spark_type(c.type)) for c in base.columns),
            self.layout.partitioned_by,
            self.layout.sorted_by,
        )
        staged = run.catalog.stage(expected.namespace, expected.relation, run.id, shape)
        try:
            refuse_overtaken(run, name, staged.base)
            self._write(frame, base, staged, change)
            reached("publish:3")
            facts = staged_facts(run, staged)
            total = None if record.rows is None else record.rows + change.come - change.gone
            if facts.total_records is not None and total not in (None, facts.total_records):
                raise Refused("INTEGRITY", "the table did not hold what the change took away")
            data = content_hash.after(record.data, change.sums) if change.sums else None
            if data is None:
                data = f"s:{facts.uuid}:{facts.snapshot_id}"
            done = publish(run, name, self.states, staged, self.layout, data, record.schema, total)
            return msgspec.structs.replace(done, rows=Rows(change.come, change.gone, total))
        except Overtaken as overtaken:
            return adopt(run, name, self.states, overtaken)
        finally:
            run.catalog.discard(staged, run.facts)

    def _write(self, frame: DataFrame, base: TableFacts, staged: Staged, change: _Change) -> None:
        """Take rows away, then add rows: two commits under the alias, one for everyone else."""
        run = self.run
        target = full_name(run.catalog.name, *staged.parts)
        columns = [column.name for column in base.columns]
        if change.gone:
            kinds = {f.name: f.dataType.simpleString() for f in frame.schema.fields}
            same = [_same(c, kinds[c]) for c in columns]
            limits = [
                found.of(f"t.{quote(c)}")
                for c, found in zip(columns, change.ranges, strict=True)
                if found is not None
            ]
            # a statement has no options: the session, which is this node's alone, has them
            self.session.conf.set(f"spark.sql.iceberg.{SNAPSHOT_PROPERTY}sqb.run-id", run.id)
            self.session.sql(
                f"MERGE INTO {target} AS t USING (SELECT * FROM sqb_signed WHERE {WEIGHT} < 0) AS s"
                f" ON {' AND '.join([*same, *limits])} WHEN MATCHED THEN DELETE"
            )
            reached("rows:1")
        copies = f"IF({WEIGHT} < 0, {COPIES}, {WEIGHT})"
        coming = frame.where(f"{copies} > 0")
        if change.most > 1:
            coming = coming.selectExpr("*", f"explode(sequence(1, CAST({copies} AS INT))) AS sqb_i")
        if change.come or change.most:
            rows = coming.selectExpr(*(quote(column) for column in columns))
            rows.writeTo(target).option(f"{SNAPSHOT_PROPERTY}sqb.run-id", run.id).append()


class _Change(msgspec.Struct, frozen=True):
    """A signed change as it was measured: rows that come and go, the most copies of one row that
    are written, the sums of its hashes, the ranges of what goes."""

    come: int
    gone: int
    most: int
    sums: tuple[int, int, int] | None
    ranges: tuple[Range | None, ...]


def _measure(frame: DataFrame, schema: Mapping[str, Any]) -> _Change:
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
    return _Change(come, gone, most, sums, ranges)


def _ranges(frame: DataFrame, columns: Sequence[str]) -> Keys:
    return measured(frame.where(f"{WEIGHT} < 0"), columns)


def _same(column: str, kind: str) -> str:
    mine, theirs = f"t.{quote(column)}", f"s.{quote(column)}"
    same = f"{mine} <=> {theirs}"
    told_apart = exact(mine, kind)
    if told_apart is not None:
        same += f" AND {told_apart} <=> {exact(theirs, kind)}"
    return same


def _stored(kind: str) -> str:
    """A type of Spark as Iceberg holds it."""
    kept = {"tinyint": "int", "smallint": "int"}
    return kept.get(kind, kind).replace(", ", ",")


def told(option: Option, choice: Choice, plan: Plan) -> Strategy:
    """The strategy as users read it."""
    names = dict(zip(output(plan.root), plan.names, strict=True))
    key: tuple[str, ...] | None = None
    if isinstance(option, AffectedKey):
        key = tuple(text(expr, lambda col: names.get(col, col.name)) for expr in option.key)
    if isinstance(option, GroupMerge):
        key = tuple(plan.names[place] for place in option.keys)
    rejected = tuple({"name": r.name, "code": r.code, "why": r.why} for r in choice.rejected)
    return Strategy(option.name, _WHY[option.name], key, rejected)


_WHY = {
    "append": "rows only came, and each gives rows of its own",
    "group_merge": "the aggregates of the change are merged into their groups",
    "affected_key": "the rows of the keys that changed are computed again",
    "bag_merge": "the exact change is applied row by row",
}
