"""Tables refreshed by rows: what changed in the inputs flows through the query, the rest stays.

The table ends up exactly as a full rebuild would have left it, or it is rebuilt and the reason is
told. Everything is decided before anything is written; what is written is one signed change of
the table's own rows, staged and published like a rebuild.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from sqb.errors import SqbError
from sqb.execution.change_sets import Bound, Source, old_versions, sources_of
from sqb.execution.content_hash import quote
from sqb.execution.run import Run
from sqb.execution.signed_write import SIGNED, Work, keep_rows, write_change
from sqb.execution.steps import Steps
from sqb.execution.table import Layout, Outcome
from sqb.execution.understanding import understand
from sqb.identity.data_id import InputState
from sqb.lake.metadata import TableFacts
from sqb.lake.types import spark_type
from sqb.planning.plan import PlannedNode, Strategy
from sqb.planning.row_gates import refuse
from sqb.refresh.build import Plan
from sqb.refresh.cost import affordable
from sqb.refresh.ir import Aggregate, Col, Node, Window, inputs, output
from sqb.refresh.reasons import Refused, Rejected
from sqb.refresh.script import COPIES, WEIGHT, Script, text
from sqb.refresh.signed import Signed, Target, signed_change
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


T = TypeVar("T")


def refresh_rows(refresh: RowRefresh) -> Outcome | Strategy:
    """Refresh a table by rows; or the strategy ``full`` with the reason why that can't be."""
    try:
        return attempt(refresh.run, refresh.outcome)
    finally:
        refresh.close()


def attempt(run: Run, by_rows: Callable[[], T]) -> T | Strategy:
    """What a way by rows gives; or the strategy ``full`` with the reason why it can't be gone."""
    try:
        return by_rows()
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


class RowRefresh:
    """One table on its way from the inputs of its record to those of this run.

    Kinds of tables with a promise of their own differ in the methods that say so.
    """

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
        """Take everything away again that was made on the way."""
        if self.steps is not None:
            self.steps.close()

    def outcome(self) -> Outcome:
        """Bring the table up to date; raises ``Refused`` or ``Unsupported`` where it can't be."""
        run, name = self.run, self.name
        record, base = run.situation.recorded.get(name), run.situation.relations.get(name)
        self.gate(record)
        if record is None or base is None or not untouched(record, base):
            raise Refused("TARGET_MODIFIED_OUTSIDE", "the table was written by someone else")
        work = Work(run, self.session, name, self.states, self.layout, record, base)
        plan = self.plan(record)
        sources = self.sources(record, plan)
        for source in sources.values():
            if source.change.way == "unknown":
                raise Refused("NO_CHANGE_SET", f"{source.name}: {source.change.reason}")
        option, choice, signed = self._choose(work, plan, sources)
        if option is None or signed is None:
            why = "what changed in the inputs is not read by the query"
            strategy = Strategy("skip", why, code="NET_CHANGE_EMPTY")
            return msgspec.structs.replace(keep_rows(work), strategy=strategy)
        strategy = told(option, choice, plan)
        return msgspec.structs.replace(self.write(work, signed), strategy=strategy)

    def _ask(self, name: str) -> tuple[str, ...]:
        text, is_select = self.run.read(name)
        return tuple(self.session.sql(f"SELECT * FROM {text}{' AS s' * is_select}").columns)

    # What kinds of tables differ in

    def gate(self, record: Record | None) -> None:
        """Raise ``Refused`` if the table must not be refreshed by rows whatever its query is."""
        refuse(self.node.reason, record, self.mode, self.run.catalog.mode, self.states)

    def plan(self, record: Record) -> Plan:
        """The query, with the constants that it was run with before."""
        return understand(self.run, self.name, record.clock, self._ask)

    def sources(self, record: Record, plan: Plan) -> dict[str, Source]:
        """The tables of the plan with what happened to each."""
        return sources_of(self.run, record, plan.root)

    def option(
        self, choice: Choice, situation: Situation, rows: Mapping[str, int | None]
    ) -> Option:
        """Which of the ways that apply is taken."""
        return affordable(choice, situation, rows, self.mode)

    def signed(self, option: Option, script: Script, plan: Plan, target: Target) -> Signed:
        """The change of the table's rows."""
        return signed_change(option, script, plan.root, target)

    def check(self, work: Work, frame: DataFrame) -> None:
        """Raise if the change must not be written."""

    def write(self, work: Work, frame: DataFrame) -> Outcome:
        """Write the change and publish it."""
        return write_change(work, frame)

    # What to do

    def _choose(
        self, work: Work, plan: Plan, sources: Mapping[str, Source]
    ) -> tuple[Option | None, Choice, DataFrame | None]:
        bound = Bound(self.run, self.session, sources)
        script = Script(bound.relation, quote)
        self.steps = steps = Steps(self.session, script)
        types = self._types(plan, script, steps)
        self._same_shape(work.base, plan, types)
        changes = bound.bind(steps)
        situation = Situation(plan, changes, types, old_versions(sources))
        choice = choose(situation, script)
        if not situation.moves:
            return None, choice, None
        if not choice.options:
            last = choice.rejected[-1]
            raise Refused(last.code, last.why)
        option = self.option(choice, situation, self._numbers(sources))
        names = tuple(quote(column) for column, _ in work.columns)
        kinds = tuple(types[col] for col in output(plan.root))
        signed = self.signed(option, script, plan, Target(work.standing, names, kinds))
        frame = steps.frame(signed.change)
        items = [
            f"CAST({col.name} AS {kind}) AS {quote(column)}"
            for col, (column, kind) in zip(output(plan.root), work.columns, strict=True)
        ]
        frame = frame.selectExpr(*items, f"CAST({WEIGHT} AS BIGINT) AS {WEIGHT}", COPIES)
        frame = steps.compute(SIGNED, frame)
        if signed.broken is not None and steps.frame(signed.broken).first() is not None:
            raise Refused("INTEGRITY", "the table does not hold what the change takes away")
        self.check(work, frame)
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

    def _numbers(self, sources: Mapping[str, Source]) -> dict[str, int | None]:
        return {
            name: source.facts.total_records if source.facts is not None else None
            for name, source in sources.items()
        }


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
