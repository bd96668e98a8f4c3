"""``append``: a log of the rows that entered the query's result through its driving sources.

What is added is the positive part of the exact change of the result, with this run's constants and
lookups on both sides. Nothing is ever taken away.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sqb.errors import SqbError
from sqb.execution.content_hash import quote
from sqb.execution.kinds.job import Job
from sqb.execution.kinds.whole import aligned, altering, evolution, netted, steps_of
from sqb.execution.outcome import Outcome
from sqb.execution.reading import queries_read, statement, tables_read, volatile
from sqb.execution.rows import RowRefresh, refresh_rows
from sqb.execution.run import Run
from sqb.execution.signed_write import Alter, Change, Work, measured, write_change
from sqb.execution.sizes import sizes_of
from sqb.execution.source_changes import Source, as_it_was, source_of, sources_of, was_view
from sqb.execution.statement import projected
from sqb.execution.steps import Steps, kinds_of
from sqb.execution.table import write_table
from sqb.execution.understanding import at_moment
from sqb.lake.versions import Snapshot
from sqb.planning.plan import PlanWarning, Strategy
from sqb.planning.row_gates import refuse
from sqb.refresh.build import Plan
from sqb.refresh.changes import TableChange, may_have_grown
from sqb.refresh.drivers import lookups
from sqb.refresh.ir import Col, Expr, Node, Project, output
from sqb.refresh.kinds import Lost, kind_of
from sqb.refresh.netting import Signed, Target
from sqb.refresh.netting import netted as netted_steps
from sqb.refresh.reasons import Refused
from sqb.refresh.script import COPIES, WEIGHT, Script, text
from sqb.refresh.strategies import Append, BagMerge, Choice, Option, Situation
from sqb.sql.fragments import Unsupported
from sqb.state.record import Record

#: Values that are another for every row and run: two evaluations have no row in common.
_NEVER_EQUAL = frozenset({"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle"})
_NEVER_EQUAL |= {"monotonically_increasing_id"}


def rebuild(job: Job) -> Outcome:
    """All rows of the query, as a log begins."""
    _refuse_refs(job)
    never = _never_equal(job)
    if never is not None:
        raise SqbError(
            "X007",
            f"`{job.name}` calls {never}(), itself or in a view, which gives every row another "
            "value in every run: no later build could tell which rows are new",
            help="nothing was written; leave it out, or make the value of the row's own columns, "
            "such as with sha2()",
            exit_code=1,
        )
    run, session = job.run, job.session
    return write_table(run, session, job.name, job.rows(), job.states, job.layout, job.files)


def carry(job: Job) -> Outcome:
    """Add the rows that entered the result."""
    _refuse_refs(job)
    done = _carried(job)
    return msgspec.structs.replace(done, warnings=(*done.warnings, *_not_read_before(job)))


def _carried(job: Job) -> Outcome:
    refresh = AppendRefresh(job)
    way = refresh_rows(refresh)
    if isinstance(way, Outcome):
        why = f"{way.strategy.why if way.strategy else ''}; {refresh.told}"
        strategy = way.strategy and msgspec.structs.replace(way.strategy, why=why)
        warnings = (*way.warnings, *refresh.by_chance)
        return msgspec.structs.replace(way, strategy=strategy, warnings=warnings)
    job.run.accounts[job.name].rebuild(way.code or "")
    done, told = _difference(job, way.why)
    why = f"the query on the old and on the new rows, compared in full ({way.why}); {told}"
    strategy = Strategy("difference", why, rejected=way.rejected, code=way.code)
    return msgspec.structs.replace(done, strategy=strategy)


def _never_equal(job: Job) -> str | None:
    """A function of the query whose values are no two times the same; None: there is none."""
    return min(_NEVER_EQUAL & volatile(job.run, job.name), default=None)


def _refuse_refs(job: Job) -> None:
    """Raise if a branch or a tag drives the log: where it stood before is not known."""
    run = job.run
    drivers = drivers_named(job) if job.kind.append_from else None
    for query in queries_read(run, job.name):
        for binding in query.bindings:
            ref = binding.reference.ref
            if ref and (drivers is None or binding.name in drivers):
                raise SqbError(
                    "X007",
                    f"`{job.name}` reads `{binding.name}` at `{ref}`: which rows came in a branch "
                    "or a tag can't be told",
                    help="nothing was written; read the table itself, or name in `append_from` "
                    "what else drives the log",
                    exit_code=1,
                )


def _not_read_before(job: Job) -> tuple[PlanWarning, ...]:
    """Tables that an edited query reads for the first time: what they hold entered unseen."""
    run, record = job.run, job.run.situation.recorded[job.name]
    read = run.inside(tables_read(run, job.name) if job.forward else ())
    tables = [name for name in dict.fromkeys(read) if name not in run.compiled.expressions]
    new = [
        name
        for name in tables
        if as_it_was(run, record, name) is None and not was_view(run, record, name)
    ]
    if not new:
        return ()
    names = ", ".join(f"`{name}`" for name in new)
    message = (
        f"`{job.name}` did not read {names} before: rows that "
        f"{'they hold' if len(new) > 1 else 'it holds'} already are not looked at, "
        "only what changes from now on"
    )
    return (PlanWarning("S315", job.name, message),)


def append_change(
    job: Job, work: Work, steps: Steps, change: Change, alter: Alter | None = None
) -> Outcome:
    """Add what comes of a computed change; what went is told, or refused."""
    gone = change.gone
    if gone and job.kind.retraction == "error":
        raise SqbError(
            "X009",
            f"{gone:,} row{'s' * (gone != 1)} that `{job.name}` had added went or changed in its "
            "sources",
            help="nothing was written, as `on_retraction error` says; `on_retraction append` adds "
            "the new rows and leaves the old ones",
            exit_code=1,
        )
    if gone:
        change = measured(steps, change.frame.where(f"{WEIGHT} > 0"))
    done = write_change(work, change, alter)
    if not gone:
        return done
    message = (
        f"{gone:,} row{'s' * (gone != 1)} that `{job.name}` had added went or changed in its "
        "sources; a log keeps them"
    )
    warning = PlanWarning("S309", job.name, message)
    return msgspec.structs.replace(done, warnings=(*done.warnings, warning))


class AppendRefresh(RowRefresh):
    """The change of a log by rows."""

    plain = False

    def __init__(self, job: Job) -> None:
        super().__init__(job.run, job.session, job.node, job.states, job.layout)
        self.job = job
        self.told = ""
        #: Warnings of lookups whose key nobody declared, and in which rows came.
        self.by_chance: tuple[PlanWarning, ...] = ()

    def gate(self, record: Record | None) -> None:
        mode, now = self.run.catalog.mode, self.run.definitions[self.name]
        refuse("source_changed", record, self.mode, mode, self.states, now, forward=True)

    def plan(self, record: Record) -> Plan:  # noqa: ARG002 - the constants of this run alone
        return at_moment(self.run, self.name, self.job.moment, self._ask)

    def sources(self, record: Record, plan: Plan) -> dict[str, Source]:
        found = sources_of(self.run, record, plan, fresh=self.job.forward)
        if self.job.kind.append_from:
            drivers = drivers_named(self.job)
            left_out = {name for name in _changed(found) if name not in drivers}
        else:
            left_out = self.lookups(plan, found)
        self.told = told(found, left_out)
        return {name: _still(s) if name in left_out else s for name, s in found.items()}

    def lookups(self, plan: Plan, found: Mapping[str, Source]) -> set[str]:
        """Of the tables that changed, those that the query only looks things up in."""
        keys = declared_keys(self.run)
        left_out = set(lookups(plan.root, _changed(found), keys, self._unique, self._kind))
        self.by_chance = tuple(
            self._warning(name)
            for name in sorted(left_out - keys.keys())
            if may_have_grown(self._versions(found[name]), found[name].change)
        )
        return left_out

    def _versions(self, source: Source) -> Mapping[int, Snapshot]:
        return self.run.versions(source.name) if source.facts is not None else {}

    def _warning(self, name: str) -> PlanWarning:
        message = (
            f"rows came in `{name}`, which `{self.name}` only looks things up in, as its key is "
            "unique so far: declare its `unique_key`, or name in `append_from` what drives the log"
        )
        return PlanWarning("S316", self.name, message)

    def _unique(
        self,
        name: str,
        columns: frozenset[str],
        null_safe: frozenset[str],
        where: tuple[Expr, ...],
    ) -> bool:
        table, is_select = self.run.read(name)
        keys = ", ".join(quote(column) for column in sorted(columns))
        there = [f"{quote(column)} IS NOT NULL" for column in sorted(columns - null_safe)]
        there += [f"({text(expr, lambda col: quote(col.name))})" for expr in where]
        sql = (
            f"SELECT 1 FROM {table}{' AS s' * is_select} WHERE {' AND '.join(there) or 'TRUE'}"
            f" GROUP BY {keys} HAVING COUNT(*) > 1 LIMIT 1"
        )
        return self.session.sql(sql).first() is None

    def _kind(self, node: Node, expr: Expr) -> str | None:
        """Spark's type of an expression."""

        def relation(name: str, _version: str) -> str:
            table, is_select = self.run.read(name)
            return f"{table} AS sqb_s" if is_select else table

        script = Script(relation, quote)
        asked = Project(node, ((Col("sqb_x"), expr),))
        frame = Steps(self.session, script).described(script.state(asked, "new"))
        return kinds_of(frame)["sqb_x"]

    def weigh(self, work: Work, plan: Plan, sources: Mapping[str, Source]) -> None:  # noqa: ARG002
        """A log has no rebuild to compare with."""
        self.sizes = sizes_of(work.base, work.record, sources)

    def option(self, choice: Choice, situation: Situation) -> Option:  # noqa: ARG002
        for option in choice.options:
            if isinstance(option, Append | BagMerge):
                self.account.take(option.name, None, None, self.sizes)
                return option
        if not choice.rejected:
            raise Refused("LIMIT_ORDER", "any row may push another out")
        last = choice.rejected[-1]
        raise Refused(last.code, last.why)

    def signed(self, option: Option, script: Script, plan: Plan, target: Target) -> Signed:
        if not isinstance(option, Append | BagMerge):
            raise TypeError("an option that was not offered")
        cols = output(plan.root)
        if isinstance(option, Append):
            # all of them come: nothing cancels, and values need not be comparable
            names = ", ".join(col.name for col in cols)
            sql = f"SELECT {names}, {WEIGHT}, {WEIGHT} AS {COPIES} FROM {option.change}"
            return Signed(script.add("change", sql, (option.change,)))
        return Signed(netted_steps(script, cols, [(option.change, WEIGHT)], target))

    def write(self, work: Work, change: Change) -> Outcome:
        return append_change(self.job, work, self.steps, change)


def told(sources: Mapping[str, Source], left_out: set[str]) -> str:
    """Which tables drove the change and which were only looked up in, for people."""
    drivers = sorted(name for name in sources if name not in left_out)
    words = f"drivers: {', '.join(drivers) or 'none'}"
    return words + (f"; lookups: {', '.join(sorted(left_out))}" if left_out else "")


def declared_keys(run: Run) -> dict[str, frozenset[str]]:
    """Keys that are unique because someone says so, or because a build checks it."""
    compiled = run.compiled
    keys = {name: source.unique_key for name, source in compiled.sources.items()}
    for name, model in compiled.models.items():
        kind = kind_of(model.settings.materialized, model.settings.options)
        record, expected = run.record(name), run.expected(name)
        built = record is not None and record.materialized == kind.name == "merge"
        # as it was built: an edit of its header proves nothing before that
        same = built and record is not None and record.config == expected.config
        keys[name] = kind.unique_key if same else ()
    return {name: frozenset(c.lower() for c in key) for name, key in keys.items() if key}


def drivers_named(job: Job) -> set[str]:
    """The tables that ``append_from`` means, also behind the views that it names."""
    run, drivers = job.run, set[str]()
    known: dict[str, str] = {}
    for name in (*run.expected(job.name).inputs, *tables_read(run, job.name)):
        source = run.compiled.sources.get(name)
        known[name.lower()] = name
        if source is not None and source.is_table:
            known[f"{source.namespace}.{source.table}".lower()] = name
    for wanted in job.kind.append_from:
        driver = known.get(wanted.lower())
        if driver is None:
            raise SqbError(
                "X007",
                f"`append_from` of `{job.name}` names `{wanted}`, which its query does not read",
                help=f"it reads {', '.join(sorted(set(known.values())))}",
                exit_code=1,
            )
        drivers |= {driver, *tables_read(run, job.name, below=driver)}
    return drivers


def _changed(found: Mapping[str, Source]) -> list[str]:
    return [name for name, source in found.items() if source.change.way != "none"]


def _still(source: Source) -> Source:
    """A source whose change is left out: it is now what it is on both sides."""
    at = source.facts.snapshot_id if source.facts is not None else None
    return msgspec.structs.replace(source, change=TableChange("none", at, at), readable=True)


def _difference(job: Job, not_by_rows: str) -> tuple[Outcome, str]:
    """The query at the new versions minus the query at the old ones, both in full."""
    run, record = job.run, job.run.situation.recorded[job.name]
    never = _never_equal(job)
    if never is not None:
        raise Lost("VOLATILE", f"{never}() gives every row another value in every run")
    tables, were_views = _tables_then(run, record, job.name)
    found = {name: source_of(run, record, name, (), fresh=job.forward) for name in tables}
    refresh, named = AppendRefresh(job), job.kind.append_from
    left_out = set(found) - drivers_named(job) if named else _lookups(refresh, found)
    for name in sorted(set(found) - left_out):
        source = found[name]
        if source.change.way == "unknown" or not (source.readable or source.change.way == "none"):
            why = source.change.reason or f"it has no older version, and by rows: {not_by_rows}"
            raise Lost("HISTORY_GAP", f"what changed in `{name}` can't be told: {why}")

    def then(name: str, travels: bool) -> tuple[str, bool]:
        if name in were_views and not travels:
            return f"(\n{statement(run, name, then).text}\n)", True
        source = found.get(name)
        if source is None or name in left_out or source.change.way == "none" or travels:
            return run.read(name, travels)
        return _before(job, source), True

    steps = steps_of(job)
    try:
        now = job.rows()
        work, evolved = job.work(), evolution(job, now)
        old = statement(run, job.name, then).text
        sql = netted(
            evolved.columns,
            aligned(evolved, f"(\n{job.sent.text}\n) AS sqb_q"),
            aligned(evolved, f"(\n{old}\n) AS sqb_q"),
        )
        change = measured(steps, job.session.sql(sql))
        done = append_change(job, work, steps, change, altering(work, evolved))
        done = msgspec.structs.replace(done, warnings=(*done.warnings, *refresh.by_chance))
        return done, told(found, left_out)
    finally:
        steps.close()


def _tables_then(run: Run, record: Record, name: str) -> tuple[list[str], set[str]]:
    """The tables behind a model as it was built, and the models above it that were views then.

    A view that has become a table since had no rows of its own: its query tells what they were.
    """
    tables: dict[str, None] = {}
    were_views: set[str] = set()
    for table in tables_read(run, name):
        if was_view(run, record, table):
            if run.compiled.models[table].settings.materialized == "scd2":
                raise Lost("HISTORY_GAP", f"`{table}` was a view, and is a history of rows by now")
            inner, others = _tables_then(run, record, table)
            tables |= dict.fromkeys(inner)
            were_views |= {table, *others}
        else:
            tables[table] = None
    return list(tables), were_views


def _lookups(refresh: AppendRefresh, found: Mapping[str, Source]) -> set[str]:
    """What is only looked up in, where the query is understood; else every table drives."""
    job = refresh.job
    try:
        plan = at_moment(job.run, job.name, job.moment, refresh._ask)
    except Unsupported:
        return set()
    return refresh.lookups(plan, found)


def _before(job: Job, source: Source) -> str:
    """A table as it was, with the columns that it has now."""
    table, old = job.run.table(source.name), source.change.old
    if old is None or source.facts is None:
        return f"(SELECT * FROM {table} WHERE false)"
    columns = job.run.versions(source.name)[old].columns
    return f"({projected(f'{table} VERSION AS OF {old}', source.facts.columns, columns)})"
