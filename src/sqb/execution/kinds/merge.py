"""``merge``: the rows of the query by a key that is unique, checked before anything is written.

With ``deletes keep`` the rows of keys that vanished from the query stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from sqb.execution.content_hash import quote
from sqb.execution.kinds.job import (
    Job,
    check_key,
    key_error,
    named,
    refuse_other_key,
    shown,
)
from sqb.execution.kinds.whole import (
    NEW,
    aligned,
    among,
    columns_of,
    evolution,
    netted,
    refuse_types,
    standing,
    steps_of,
    write,
)
from sqb.execution.outcome import Outcome
from sqb.execution.rows import RowRefresh, refresh_rows
from sqb.execution.signed_write import Change, Work
from sqb.execution.source_changes import Source
from sqb.execution.steps import keys_of
from sqb.execution.table import write_table
from sqb.planning.plan import Strategy
from sqb.planning.row_gates import refuse
from sqb.refresh.build import Plan
from sqb.refresh.evolution import Evolution
from sqb.refresh.ir import columns, output
from sqb.refresh.kinds import FORWARD
from sqb.refresh.netting import Signed, Target
from sqb.refresh.netting import netted as netted_steps
from sqb.refresh.reasons import Refused, Rejected
from sqb.refresh.script import WEIGHT, Script
from sqb.refresh.signed import signed_change
from sqb.refresh.strategies import (
    AffectedKey,
    Choice,
    Option,
    Situation,
    affected_by,
)
from sqb.state.record import Record


def rebuild(job: Job) -> Outcome:
    """The rows of the query replace what is there."""
    frame = job.rows()
    if job.kind.keeps:
        refuse_types(job, columns_of(frame))
    return write_table(
        job.run,
        job.session,
        job.name,
        frame,
        job.states,
        job.layout,
        job.files,
        lambda rows: check_key(job, rows),
    )


def carry(job: Job) -> Outcome:
    """What changed in the inputs, by rows where that can be told; else all of the query."""
    if job.kind.keeps:
        refuse_other_key(job, job.work())
    way = refresh_rows(MergeRefresh(job))
    if isinstance(way, Outcome):
        return way
    job.run.accounts[job.name].rebuild(way.code or "")
    if not job.kind.keeps:
        job.run.kept[job.name] = ""
        return msgspec.structs.replace(rebuild(job), strategy=way)
    done = _upsert(job)
    why = f"every row of the query is written by its key ({way.why})"
    return msgspec.structs.replace(
        done, strategy=Strategy("upsert", why, job.kind.unique_key, way.rejected, way.code)
    )


def _upsert(job: Job) -> Outcome:
    """All rows of the query take the place of those with their keys; the others stay."""
    steps = steps_of(job)
    try:
        frame = steps.compute(NEW, job.rows())
        check_key(job, frame)
        work, found = job.work(), evolution(job, frame)
        refuse_types(job, found.columns)
        keys = named(job, job.kind.unique_key, [name for name, _ in found.columns], "unique_key")
        table, coming = standing(work, found), aligned(found)
        going = among(table, keys, f"({coming})")
        coming = _completed(found, keys, coming, table)
        return write(work, steps, netted(found.columns, coming, going), found)
    finally:
        steps.close()


def _completed(found: Evolution, keys: Sequence[str], coming: str, table: str) -> str:
    """Columns that the query does not give stay what they are in the row of the same key."""
    if None not in found.given:
        return coming
    pairs = zip(found.columns, found.given, strict=True)
    items = ", ".join(f"{'o' if g is None else 'n'}.{quote(name)}" for (name, _), g in pairs)
    same = " AND ".join(f"n.{quote(key)} <=> o.{quote(key)}" for key in keys)
    return f"SELECT {items} FROM ({coming}) AS n LEFT JOIN ({table}) AS o ON {same}"


class MergeRefresh(RowRefresh):
    """A merge by rows: as a table, but its key is checked, and what vanished may stay."""

    plain = False

    def __init__(self, job: Job) -> None:
        super().__init__(job.run, job.session, job.node, job.states, job.layout)
        self.job = job
        record = job.run.situation.recorded[job.name]
        self.forwarded = not job.kind.keeps and (job.forward or record.kept == FORWARD)
        if self.forwarded and self.mode == "auto":
            # a rebuild is cheaper at times, but not what was asked for
            self.mode = "rows"

    def gate(self, record: Record | None) -> None:
        forced = self.job.kind.keeps and self.node.reason == "forced"
        reason = "source_changed" if self.job.forward and not forced else self.node.reason
        mode, now = self.run.catalog.mode, self.run.definitions[self.name]
        refuse(reason, record, self.mode, mode, self.states, now, forward=self.job.forward)

    def weigh(self, work: Work, plan: Plan, sources: Mapping[str, Source]) -> None:
        if not self.job.kind.keeps:
            super().weigh(work, plan, sources)

    def option(self, choice: Choice, situation: Situation) -> Option:
        if not self.job.kind.keeps and not self.forwarded:
            return super().option(choice, situation)
        # the rows that stand need not be what the query gave: only their key tells them, and all
        # rows that the query gives for a key tell whether it is unique
        cols = output(situation.plan.root)
        key = columns(cols[at] for at in self._places(situation.plan))
        found = affected_by(situation, choice.script, key)
        if isinstance(found, Rejected):
            raise Refused(found.code, found.why)
        self.account.take(found.name, None, None, self.sizes)
        return found

    def _places(self, plan: Plan) -> list[int]:
        """Where the unique key stands among the query's columns."""
        keys = named(self.job, self.job.kind.unique_key, plan.names, "unique_key")
        return [plan.names.index(key) for key in keys]

    def signed(self, option: Option, script: Script, plan: Plan, target: Target) -> Signed:
        if not self.job.kind.keeps:
            return signed_change(option, script, plan.root, target)
        if not isinstance(option, AffectedKey):
            raise TypeError("an option that was not offered")
        root, cols, coming = plan.root, output(plan.root), option.rows
        places = self._places(plan)
        items = ", ".join(f"{cols[at].name} AS k{i}" for i, at in enumerate(places))
        markers = script.add("keys", f"SELECT DISTINCT {items} FROM {coming}", (coming,))
        pairs = zip(target.names, cols, strict=True)
        named_rows = ", ".join(f"{name} AS {col.name}" for name, col in pairs)
        there = script.add("rows", f"SELECT {named_rows} FROM {target.relation}")
        going = script.among(root, there, columns(cols[at] for at in places), markers)
        return Signed(netted_steps(script, cols, [(coming, "1"), (going, "-1")], target))

    def check(self, work: Work, change: Change) -> None:
        """The key stays unique: among the rows that come, and against those that stand."""
        frame = change.frame
        keys = named(self.job, self.job.kind.unique_key, frame.columns, "unique_key")
        quoted, total = ", ".join(quote(key) for key in keys), f"SUM({WEIGHT})"
        nulls = " OR ".join(f"{quote(key)} IS NULL" for key in keys)
        come = f"(SELECT DISTINCT {quoted} FROM sqb_signed WHERE {WEIGHT} > 0)"
        found = keys_of(frame.where(f"{WEIGHT} > 0"), keys)
        if not found.count:
            return
        limits = [
            limit.of(f"t.{quote(key)}")
            for key, limit in zip(keys, found.ranges, strict=True)
            if limit is not None
        ]
        same = [f"t.{quote(key)} <=> k.{quote(key)}" for key in keys]
        listed = ", ".join(f"t.{quote(key)}" for key in keys)
        there = (
            f"SELECT {listed}, 1 AS {WEIGHT} FROM (SELECT * FROM {work.standing}) AS t"
            f" LEFT SEMI JOIN {come} AS k ON {' AND '.join([*same, *limits])}"
        )
        texts = ", ".join(map(shown, keys))
        bad = self.session.sql(
            f"SELECT {texts}, {total} FROM ({there} UNION ALL"
            f" SELECT {quoted}, {WEIGHT} FROM sqb_signed) AS a GROUP BY {quoted}"
            f" HAVING {total} > 1 OR (({total} > 0) AND ({nulls})) LIMIT 3"
        ).collect()
        if bad:
            raise key_error(self.job, keys, [tuple(row) for row in bad])
