"""Tables refreshed by rows: what changed in the inputs flows through the query, the rest stays.

The table ends up exactly as a full rebuild would have left it, or it is rebuilt and the reason is
told. Everything is decided before anything is written; what is written is one signed change of
the table's own rows, staged and published like a rebuild.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec

from sqb.errors import SqbError
from sqb.execution.change_sets import Bound
from sqb.execution.content_hash import quote
from sqb.execution.failures import first_line
from sqb.execution.files import check_unchanged
from sqb.execution.outcome import Layout, Outcome
from sqb.execution.reading import files_read, statement
from sqb.execution.row_audit import audit_rows, due
from sqb.execution.run import Run
from sqb.execution.signed_write import (
    Change,
    Work,
    append_rows,
    keep_rows,
    measured,
    overwrite_partitions,
    write_change,
)
from sqb.execution.sizes import counted, is_small, sizes_of
from sqb.execution.source_changes import Source, old_versions, sources_of
from sqb.execution.steps import Keys, Steps, kinds_of, literal_of, ranged
from sqb.execution.telling import full, is_partition, refusals, told, with_numbers
from sqb.execution.understanding import understand
from sqb.identity.data_id import InputState
from sqb.lake.metadata import TableFacts
from sqb.lake.staging import Staged
from sqb.lake.types import spark_type
from sqb.planning.plan import PlannedNode, Strategy
from sqb.planning.row_gates import refuse
from sqb.refresh.build import Plan
from sqb.refresh.cost import Sizes, affordable, estimate_full, refuse_keys, worth_looking
from sqb.refresh.derive import moves
from sqb.refresh.free import free_choice
from sqb.refresh.ir import (
    Aggregate,
    Col,
    Distinct,
    Join,
    Node,
    SetOperation,
    Single,
    Window,
    inputs,
    output,
)
from sqb.refresh.levels import level
from sqb.refresh.netting import Signed, Target
from sqb.refresh.prune import pruned
from sqb.refresh.reasons import Refused, Rejected
from sqb.refresh.scalars import bound, singles
from sqb.refresh.script import COPIES, WEIGHT, Script
from sqb.refresh.signed import signed_change
from sqb.refresh.strategies import (
    AffectedKey,
    Append,
    Choice,
    Option,
    Situation,
    choose,
)
from sqb.sql.fragments import Unsupported
from sqb.state.record import Record, untouched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def refresh_rows(refresh: RowRefresh) -> Outcome | Strategy:
    """Refresh a table by rows; or the strategy ``full`` with the reason why that can't be."""
    try:
        return attempt(refresh, refresh.outcome)
    finally:
        refresh.close()


def attempt(refresh: RowRefresh, by_rows: Callable[[], T]) -> T | Strategy:
    """What a way by rows gives; or the strategy ``full`` with the reason why it can't be gone."""
    try:
        return by_rows()
    except Refused as refused:
        way = full(refused.code, refused.why, refusals(refresh.choice, refused))
    except Unsupported as found:
        way = full(found.code, found.what, (Rejected("rows", found.code, found.what),))
    except SqbError:
        raise
    except Exception as error:
        if refresh.run.stopping.is_set():
            raise
        why = f"{type(error).__name__}: {first_line(error)}"
        way = full("ROW_ERROR", why, (Rejected("rows", "ROW_ERROR", why),))
    refresh.account.rebuild(way.code or "")
    return way


T = TypeVar("T")
#: Other types whose values come back from their text as they were.
_EXACT_TEXT = ("float", "double", "boolean")
#: More partitions than this are not named one by one.
_MOST_PARTITIONS = 200


class RowRefresh:
    """One table on its way from the inputs of its record to those of this run.

    Kinds of tables with a promise of their own differ in the methods that say so.
    """

    #: A plain table: rows may be added, and partitions replaced, without looking at its keys.
    plain = True

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
        self.mode = run.refresh_of(node.name)
        self.account = run.accounts[node.name]
        self.sizes = Sizes({}, None, None)
        self.choice: Choice | None = None
        self._steps: Steps | None = None

    @property
    def steps(self) -> Steps:
        """What is computed on the way."""
        if self._steps is None:
            raise AssertionError("nothing is computed before the query is understood")
        return self._steps

    def close(self) -> None:
        """Take everything away again that was made on the way."""
        if self._steps is not None:
            self._steps.close()

    def outcome(self) -> Outcome:
        """Bring the table up to date; raises ``Refused`` or ``Unsupported`` where it can't be."""
        run, name = self.run, self.name
        record, base = run.situation.recorded.get(name), run.situation.relations.get(name)
        self.gate(record)
        if record is None or base is None or not untouched(record, base):
            raise Refused("TARGET_MODIFIED_OUTSIDE", "the table was written by someone else")
        if record.rows is not None and base.total_records not in (None, record.rows):
            why = f"the table has {base.total_records:,} rows and not {record.rows:,}"
            raise Refused("INTEGRITY", why)
        work = Work(run, self.session, name, self.states, self.layout, record, base)
        situation = self.situation(work, base)
        plan, types, steps = situation.plan, situation.types, self.steps
        if not situation.moves:
            self.account.take("skip", None, None, self.sizes)
            done = keep_rows(work)
            why = "what changed in the inputs is not read by the query"
            if done.status == "success":
                why = "the same rows are written in another layout"
            strategy = Strategy("skip", why, code="NET_CHANGE_EMPTY")
            return msgspec.structs.replace(done, strategy=strategy)
        self.choice = choice = choose(situation, steps.script)
        if not choice.options:
            last = choice.rejected[-1]
            raise Refused(last.code, last.why)
        option = self.option(choice, situation)
        steps.heard = lambda step, keys: self._hear(option, step, keys)
        strategy = told(option, choice, plan, base, plain=self.plain)
        unique = free_choice(plan.root, types, None) is None
        audited = msgspec.structs.replace(
            work, audit=lambda staged: self._audit(work, staged, strategy, unique)
        )
        outcome = self._take(option, plan, types, audited)
        return msgspec.structs.replace(outcome, strategy=with_numbers(strategy, self.account))

    def situation(self, work: Work, shape: TableFacts) -> Situation:
        """The query as a plan with what its sources did, if it gives the columns of ``shape``."""
        plan, sources = self._settled(self.plan(work.record), work.record)
        self.weigh(work, plan, sources)
        reads = Bound(self.run, self.session, work.record, sources)
        script = Script(reads.relation, quote)
        self._steps = steps = Steps(self.session, script)
        plan = msgspec.structs.replace(plan, root=level(plan.root, kinds_at(script, steps)))
        types = types_of(plan, script, steps)
        _same_shape(shape, plan, types, self._ask_names)
        situation = Situation(plan, reads.bind(steps), types, old_versions(sources), self.run.ansi)
        self.sizes = counted(self.sizes, situation.changes)
        return situation

    # What kinds of tables differ in

    def gate(self, record: Record | None) -> None:
        """Raise ``Refused`` if the table must not be refreshed by rows whatever its query is."""
        now = self.run.definitions[self.name]
        refuse(self.node.reason, record, self.mode, self.run.catalog.mode, self.states, now)

    def plan(self, record: Record) -> Plan:
        """The query, with the constants that it was run with before."""
        return understand(self.run, self.name, record.clock, self._ask)

    def sources(self, record: Record, plan: Plan) -> dict[str, Source]:
        """The tables of the plan with what happened to each."""
        return sources_of(self.run, record, plan)

    def weigh(self, work: Work, plan: Plan, sources: Mapping[str, Source]) -> None:
        """Raise ``Refused`` if a rebuild is sure to be cheaper."""
        limits, record = self.run.config.refresh, work.record
        self.sizes = sizes_of(work.base, record, sources)
        self.account.full = estimate_full(plan.root, self.sizes, record.spent)
        worth_looking(plan.root, self.sizes, record.spent, limits, self.mode)

    def option(self, choice: Choice, situation: Situation) -> Option:
        """Which of the ways that apply is taken."""
        record = self.run.situation.recorded[self.name]
        limits, root = self.run.config.refresh, situation.plan.root
        found = affordable(choice, root, self.sizes, record.spent, limits, self.mode)
        self.account.take(found.option.name, found.way, found.full, self.sizes)
        return found.option

    def signed(self, option: Option, script: Script, plan: Plan, target: Target) -> Signed:
        """The change of the table's rows."""
        return signed_change(option, script, plan.root, target)

    def check(self, work: Work, change: Change) -> None:
        """Raise if the change must not be written."""

    def write(self, work: Work, change: Change) -> Outcome:
        """Write the change and publish it."""
        return write_change(work, change)

    # What all have in common

    def _take(self, option: Option, plan: Plan, types: Mapping[Col, str], work: Work) -> Outcome:
        """Bring the table up to date in one of the ways that apply."""
        steps, items = self.steps, work.stored([col.name for col in output(plan.root)])
        # rows that are put in order are read twice, the first time to see how they are spread
        if self.plain and isinstance(option, Append) and not work.layout.sorted_by:
            return append_rows(work, steps.frame(option.change).selectExpr(*items))
        if self.plain and isinstance(option, AffectedKey) and is_partition(option, plan, work.base):
            condition = _partitions(option, steps, work.base, plan)
            if condition is not None:
                coming = steps.frame(option.rows).selectExpr(*items)
                going = self.session.sql(f"SELECT * FROM {work.standing} WHERE {condition}")
                return overwrite_partitions(work, coming, going, condition)
        names = tuple(quote(column) for column, _ in work.columns)
        kinds = tuple(types[col] for col in output(plan.root))
        target = Target(work.standing, names, kinds, is_small(work.base))
        signed = self.signed(option, steps.script, plan, target)
        frame = steps.frame(signed.change)
        frame = frame.selectExpr(*items, f"CAST({WEIGHT} AS BIGINT) AS {WEIGHT}", COPIES)
        # computed once: what is hashed is what is written, also where a query chooses freely
        change = measured(steps, frame, signed.unless)
        self.check(work, change)
        return self.write(work, change)

    def _hear(self, option: Option, step: str, keys: Keys) -> None:
        """Give up if too many of the table's own keys changed."""
        if isinstance(option, AffectedKey) and step == option.keys:
            self.account.keys = keys.count
            refuse_keys(self.name, keys.count, self.sizes, self.run.config.refresh, self.mode)

    def _settled(self, plan: Plan, record: Record) -> tuple[Plan, dict[str, Source]]:
        """The plan with its sub-queries that have one value replaced by it, and its sources.

        What a sub-query reads may change while its value stays: that is no change. Where the value
        is another, every row may be.
        """
        sources = self._sources(plan, record)
        changed = frozenset(n for n, s in sources.items() if s.change.way != "none")
        found = [single for single in singles(plan.root) if moves(single.child, changed)]
        if not found:
            return plan, sources
        if any(map(_has_floats, sources.values())):
            # a value that is compared as a literal makes Iceberg leave out files with NaN and -0.0
            why = "a sub-query of changed tables beside floating point numbers"
            raise Refused("UNSUPPORTED", why)
        values = self._values(found, Bound(self.run, self.session, record, sources))
        plan = msgspec.structs.replace(plan, root=pruned(bound(plan.root, values)))
        return plan, self._sources(plan, record)

    def _sources(self, plan: Plan, record: Record) -> dict[str, Source]:
        sources = self.sources(record, plan)
        for source in sources.values():
            if source.change.way == "unknown":
                raise Refused("NO_CHANGE_SET", f"{source.name}: {source.change.reason}")
        return sources

    def _values(self, found: Sequence[Single], rows: Bound) -> dict[Col, str]:
        """The values of sub-queries as SQL; raises ``Refused`` if one moved."""
        script = Script(rows.relation, quote)
        steps = Steps(self.session, script)
        values: dict[Col, str] = {}
        for single in found:
            column = output(single.child)[0].name
            sides: list[str | None] = []
            for version in ("old", "new"):
                frame = steps.described(script.state(single.child, version))
                kind = kinds_of(frame)[column]
                answers = frame.selectExpr(f"CAST({column} AS STRING) AS v").limit(2).collect()
                if len(answers) > 1 or not (ranged(kind) or kind in _EXACT_TEXT):
                    raise Refused("SCALAR_SUBQUERY_CHANGED", "a sub-query that can't be compared")
                sides.append(answers[0]["v"] if answers else None)
            if sides[0] != sides[1]:
                why = f"a sub-query gave {sides[0]} and gives {sides[1]} now"
                raise Refused("SCALAR_SUBQUERY_CHANGED", why)
            text = sides[1]
            null = f"CAST(NULL AS {kind})"
            values[single.column] = null if text is None else literal_of(text, kind)
        return values

    def _audit(self, work: Work, staged: Staged, strategy: Strategy, unique: bool) -> None:
        """Compare what is staged with the query, if the header asks for it now.

        Files can't be pinned: those that were read must be there still, as they were.
        """
        check_unchanged(self.run.sources, files_read(self.run, self.name))
        settings = self.run.compiled.models[self.name].settings
        wanted = due(str(settings.options.get("row_audit", "off")), work.record.refreshes)
        if wanted is None or not unique or self.run.kept.get(self.name) or work.record.kept:
            return
        known = {column.name for column in work.base.columns}
        key = strategy.key if strategy.key and known.issuperset(strategy.key) else ()
        columns = work.base.columns
        audit_rows(self.run, self.session, self.name, wanted, staged, columns, key)

    def _ask_names(self) -> list[str]:
        """What Spark calls the columns of the query."""
        return list(self.session.sql(statement(self.run, self.name).text).columns)

    def _ask(self, name: str) -> tuple[str, ...]:
        text, is_select = self.run.read(name)
        return tuple(self.session.sql(f"SELECT * FROM {text}{' AS s' * is_select}").columns)


def _partitions(option: AffectedKey, steps: Steps, base: TableFacts, plan: Plan) -> str | None:
    """The condition for the partitions to replace; None if they are too many to be named."""
    frame = steps.frame(option.keys)
    kinds = list(kinds_of(frame).values())
    if not all(ranged(kind) for kind in kinds):
        return None
    texts = [f"CAST(k{i} AS STRING) AS k{i}" for i in range(len(kinds))]
    rows = frame.selectExpr(*texts).limit(_MOST_PARTITIONS + 1).collect()
    if len(rows) > _MOST_PARTITIONS:
        return None
    cols = output(plan.root)
    names = [quote(base.columns[cols.index(e.column)].name) for e in option.key if e.column]
    tests = []
    for row in rows:
        parts = [
            f"{name} IS NULL" if value is None else f"{name} = {literal_of(value, kind)}"
            for name, kind, value in zip(names, kinds, row, strict=True)
        ]
        tests.append("(" + " AND ".join(parts) + ")")
    return " OR ".join(tests) or "FALSE"


def _has_floats(source: Source) -> bool:
    """Is a floating point number among the columns that are read, as far as is known?"""
    if source.facts is None:
        return True
    kinds = [spark_type(c.type) for c in source.facts.columns if c.name in source.columns]
    return any(word in kind.lower() for kind in kinds for word in ("float", "double"))


def kinds_at(script: Script, steps: Steps) -> Callable[[Node], list[str]]:
    """Asks Spark for the types of a node's columns."""
    return lambda node: list(kinds_of(steps.described(script.state(node, "new"))).values())


def types_of(plan: Plan, script: Script, steps: Steps) -> dict[Col, str]:
    """Spark's types of the plan's results: of the whole, and wherever equal values meet."""
    found: dict[Col, str] = {}

    def look(node: Node, asked: bool) -> None:
        if asked or isinstance(node, Aggregate | Window | Distinct | SetOperation):
            kinds = kinds_of(steps.described(script.state(node, "new")))
            found.update({Col(name): kind for name, kind in kinds.items()})
        for child in inputs(node):
            look(child, isinstance(node, Join))

    look(plan.root, True)
    return found


def _same_shape(
    base: TableFacts, plan: Plan, types: Mapping[Col, str], ask: Callable[[], list[str]]
) -> None:
    """The plan must give the very columns that the table has.

    Only Spark knows what it calls an expression without a name, so it is asked.
    """
    cols = output(plan.root)
    if len(cols) != len(base.columns):
        raise Refused("SCHEMA_CHANGED", "the query gives other columns than the table has")
    names, there = list(plan.names), [column.name for column in base.columns]
    if names != there:
        pairs = [(m.lower(), name.lower()) for m, name in zip(names, there, strict=True)]
        if {mine for mine, name in pairs if mine != name} & {name for _, name in pairs}:
            raise Refused("SCHEMA_CHANGED", "the columns of the query stand in another order")
        names = ask()
    for col, name, column in zip(cols, names, base.columns, strict=True):
        if column.name.lower() in (WEIGHT, COPIES):
            raise Refused("UNSUPPORTED", f"a column named {column.name}")
        if name != column.name:
            raise Refused("SCHEMA_CHANGED", f"column {column.name} is {name} now")
        if _stored(types[col]) != _stored(spark_type(column.type)):
            raise Refused("SCHEMA_CHANGED", f"column {column.name} is {types[col]} now")


def _stored(kind: str) -> str:
    """A type of Spark as Iceberg holds it, in one spelling.

    >>> _stored("struct<a: TINYINT, b: varchar(3)>")
    'struct<a:int,b:string>'
    """
    plain = re.sub(r"[`\s]", "", kind.lower())
    plain = re.sub(r"\b(tinyint|smallint)\b", "int", plain)
    return re.sub(r"\b(varchar|char)\(\d+\)", "string", plain)
