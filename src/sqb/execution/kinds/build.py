"""A model of any kind of table: which way it goes, and the module that goes it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from sqb.errors import SqbError
from sqb.execution.comparing import content_of
from sqb.execution.content_hash import data_id
from sqb.execution.kinds import append, merge, scd2, tracked
from sqb.execution.kinds.job import Job, lost
from sqb.execution.outcome import Outcome
from sqb.execution.run import Run
from sqb.execution.statement import pinned
from sqb.execution.table import columns_id
from sqb.execution.telling import full
from sqb.execution.unfinished import as_recorded
from sqb.planning.own_change import definition_change
from sqb.planning.plan import PlannedNode, PlanWarning, Strategy
from sqb.planning.row_gates import at_once
from sqb.refresh.kinds import HISTORY, Kind, Lost, Standing, kept_by, kind_of, way_of
from sqb.refresh.reasons import Refused
from sqb.state.record import decode, untouched

#: For each kind: how its rows are written anew, and how they are brought up to date.
_WAYS: dict[str, tuple[Callable[[Job], Outcome], Callable[[Job], Outcome]]] = {
    "append": (append.rebuild, append.carry),
    "merge": (merge.rebuild, merge.carry),
    "scd2": (scd2.rebuild, scd2.carry),
    "tracked": (tracked.rebuild, tracked.carry),
}


def kind_in(run: Run, name: str) -> Kind:
    """The kind of a model's relation."""
    settings = run.compiled.models[name].settings
    return kind_of(settings.materialized, settings.options)


def standing_of(run: Run, name: str) -> Standing:
    """What is known of a model's table before the run."""
    record, facts = run.situation.recorded.get(name), run.situation.relations.get(name)
    if facts is None or facts.kind == "view":
        return Standing()
    if record is None:
        return Standing(there=True)
    change = definition_change(run.expected(name), record)
    return Standing(
        there=True,
        known=True,
        untouched=untouched(record, facts) or as_recorded(run, name) is not None,
        was=record.materialized,
        kept=record.kept,
        same=change is None,
        same_query=change in (None, "config_changed"),
    )


def build_kind(job: Job) -> Outcome:
    """Bring the table of a model up to date as its kind promises."""
    run, name, standing = job.run, job.name, standing_of(job.run, job.name)
    rebuild, carry = _WAYS[job.kind.name]
    if standing.kept == HISTORY and not standing.untouched and _same_rows(job):
        standing = msgspec.structs.replace(standing, untouched=True)
    if not standing.there and job.kind.holds_history:
        _refuse_moved(job)
    try:
        way = way_of(job.kind, job.node.reason, standing)
        run.kept[name] = kept_by(job.kind, way, standing)
        if way != "carry":
            done = rebuild(job)
            warnings = (*done.warnings, *_missing(job))
            return msgspec.structs.replace(done, warnings=warnings, strategy=_whole(job))
        forward = not standing.same or (job.kind.holds_history and _views_moved(job))
        return carry(msgspec.structs.replace(job, forward=forward))
    except Lost as found:
        raise lost(run, name, found) from None
    except Refused as found:
        if not job.kind.holds_history:
            raise
        raise lost(run, name, Lost(found.code, found.why)) from None


def _whole(job: Job) -> Strategy:
    """All rows are written: why."""
    return full(*(at_once(job.node.reason) or ("FORCED", "full_refresh true")))


def _views_moved(job: Job) -> bool:
    """Is a view or an expression that it reads another than the one it was built from?"""
    before, now = job.run.situation.recorded[job.name], job.run.definitions[job.name]
    return before.texts != now.texts


def _same_rows(job: Job) -> bool:
    """Did others write nothing but the same rows, say compact it and expire what it was before?"""
    situation = job.run.situation
    record, facts = situation.recorded.get(job.name), situation.relations.get(job.name)
    if record is None or facts is None or facts.total_records not in (None, record.rows):
        return False
    if (record.uuid, record.table) != (facts.uuid, facts.shape):
        return False
    text, is_select = pinned(job.run.table(job.name), facts)
    content = content_of(job.session.sql(f"SELECT * FROM {text}{' AS t' * is_select}"))
    return content is not None and record.data == data_id(columns_id(facts.columns), *content)


def _refuse_moved(job: Job) -> None:
    """Raise if the table stands elsewhere, since an `alias` or `schema` was edited."""
    run, detail = job.run, job.node.detail
    if job.node.reason != "relation_missing" or not detail or detail.get("kind") != "moved":
        return
    place = str(detail["name"])
    namespace, _, relation = place.partition(".")
    head = run.heads.get((namespace, relation))
    record = decode(run.facts.get(head.location).stamp) if head is not None else None
    if record is None or record.kept != HISTORY:
        return
    expected = run.expected(job.name)
    raise SqbError(
        "X008",
        f"`{job.name}` holds history, and its table is `{place}`: under another name it would "
        "begin anew",
        help=f"`ALTER TABLE {run.catalog.name}.{place} RENAME TO "
        f"{expected.namespace}.{expected.relation}` in Spark takes it along; `sqb build --select "
        f"{job.name} --full-refresh` begins anew from what its query gives now",
        exit_code=1,
    )


def _missing(job: Job) -> tuple[PlanWarning, ...]:
    """A table that held history and is gone: what it held is lost, which must be said."""
    if job.node.reason != "relation_missing" or not job.kind.holds_history:
        return ()
    message = f"`{job.name}` was gone, and its history with it: it begins anew"
    return (PlanWarning("S310", job.name, message),)


def guard_history(run: Run, node: PlannedNode) -> None:
    """Raise if a table that holds history would become something else: a view, a plain table, a
    seed, or the table of another model."""
    name, facts = node.name, run.situation.relations.get(node.name)
    record = run.situation.recorded.get(name) or decode(facts.stamp if facts is not None else None)
    if facts is None or record is None or record.kept != HISTORY or node.reason == "full_refresh":
        return
    model = run.compiled.models.get(name)
    if model is None or record.node != name:
        found = Lost("DEFINITION_CHANGED", f"it is the table of the model `{record.node}`")
        raise lost(run, name, found)
    kind = kind_in(run, name)
    if kind.name in ("view", "table"):
        try:
            way_of(kind, node.reason, standing_of(run, name))
        except Lost as found:
            raise lost(run, name, found) from None
