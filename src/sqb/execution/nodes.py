"""One node of a plan, brought up to date by the module of its materialization."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from sqb.errors import SqbError
from sqb.execution.accounts import Account
from sqb.execution.failures import explain
from sqb.execution.files import bind_files, release_files
from sqb.execution.kinds.build import build_kind, guard_history, kind_in
from sqb.execution.kinds.job import Job
from sqb.execution.outcome import Layout, Outcome
from sqb.execution.reading import definition, files_read, statement, view_statement
from sqb.execution.rows import RowRefresh, refresh_rows
from sqb.execution.run import Published, Run
from sqb.execution.seed import build_seed
from sqb.execution.table import write_table
from sqb.execution.telling import with_numbers
from sqb.execution.view import build_view
from sqb.hashing import digest
from sqb.identity.data_id import InputState, observed_value, view_state
from sqb.planning.inputs import moved_inputs
from sqb.planning.plan import PlannedNode, PlanWarning
from sqb.project.layout import read_files
from sqb.project.seeds import Seed, load_seed_specs, read_seed, seed_identity
from sqb.sql.splice import Spliced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


T = TypeVar("T")


def still_current(run: Run, node: PlannedNode, states: dict[str, InputState]) -> bool:
    """Did everything that a *maybe* node waited for come out as the node consumed it?"""
    record = run.situation.recorded.get(node.name)
    if node.if_changed is None or record is None:
        return False
    return not moved_inputs(
        record,
        run.expected(node.name).inputs,
        run.as_consumed(node.name, states)[0],
        run.situation.sources,
        schema_only=node.materialized == "view",
    )


def amend(run: Run, name: str, states: dict[str, InputState]) -> Outcome:
    """The relation stands although something above moved: record that, touch nothing.

    What it holds was computed from the versions of then: a source whose movement gave no reason to
    run goes on being recorded as it was read.
    """
    expected = run.expected(name)
    before = run.situation.recorded[name]
    states, kept = run.as_consumed(name, states)
    facts = run.situation.relations[name]
    data, schema = before.data, before.schema
    if expected.materialized == "view":
        constants = {key: run.situation.constants[key] for key in before.constants}
        state = view_state(before.local, states, constants, before.version)
        data, schema = state.data, state.schema
    record = run.make_record(
        name, states, facts, data=data, schema=schema, rows=before.rows, keep_local=True
    )
    through = record.through | {n: before.through[n] for n in kept if n in before.through}
    record = msgspec.structs.replace(record, through=through)
    then, now = before.read(), record.read()
    # their values stood still: what became of their rows meanwhile, nobody read
    same = [n for n, data in now.items() if observed_value(data) and then.get(n) == data]
    unread = set(run.inside(same))
    record = msgspec.structs.replace(
        record,
        kept=before.kept,
        texts=before.texts,
        places=before.places,
        clock=before.clock,
        rules=before.rules,
        snapshot=before.snapshot,
        seen=record.seen | {n: before.seen[n] for n in unread if n in before.seen},
        pins=_kept(record.pins, before.pins, unread),
        files=_kept(record.files, before.files, unread),
        empty=tuple(_kept(dict.fromkeys(record.empty), dict.fromkeys(before.empty), unread)),
    )
    head = run.heads[(expected.namespace, expected.relation)]
    return Outcome(Published(head, facts, record), "current", amended=True)


def _kept(now: Mapping[str, T], before: Mapping[str, T], unread: Collection[str]) -> dict[str, T]:
    """What is said of tables now, and of those that were not read what was said before."""
    found = {name: value for name, value in now.items() if name not in unread}
    return found | {name: before[name] for name in unread if name in before}


def build_node(
    run: Run, session: SparkSession, node: PlannedNode, states: dict[str, InputState]
) -> Outcome:
    """Run one node; every error comes out in the user's terms."""
    name = node.name
    model = run.compiled.models.get(name)
    sent: Spliced | None = None
    try:
        guard_history(run, node)
        if model is None:
            return build_seed(run, session, name, _seed(run, name), states)
        kind = kind_in(run, name)
        if node.materialized == "view":
            sent = view_statement(run, name)
            return build_view(run, session, name, states)
        layout = layout_of(run, name)
        run.definitions[name] = definition(run, name)
        sent = statement(run, name)
        files = files_read(run, name)
        bind_files(session, run.sources, files)
        account = run.accounts[name] = Account()
        try:
            if kind.name != "table":
                job = Job(run, session, node, states, layout, kind, sent, files)
                return _warned(name, build_kind(job))
            way = refresh_rows(RowRefresh(run, session, node, states, layout))
            if isinstance(way, Outcome):
                return way
            frame = session.sql(sent.text)
            outcome = write_table(run, session, name, frame, states, layout, files)
            outcome = msgspec.structs.replace(outcome, strategy=with_numbers(way, account))
            return _warned(name, outcome)
        finally:
            release_files(session, files)
    except Exception as error:
        raise explain(error, name, model, sent) from error


def _warned(name: str, outcome: Outcome) -> Outcome:
    """A refresh by rows that failed is said, although the rows are right."""
    way = outcome.strategy
    if way is None or way.code != "ROW_ERROR":
        return outcome
    why = next((r["why"] for r in way.rejected if r["code"] == way.code), way.why)
    text = f"`{name}` could not be refreshed by rows and was brought up to date in full: {why}"
    warning = PlanWarning("S313", name, text)
    return msgspec.structs.replace(outcome, warnings=(*outcome.warnings, warning))


def layout_of(run: Run, name: str) -> Layout:
    """How the table of a node is stored; a seed's has no wishes."""
    model = run.compiled.models.get(name)
    if model is None:
        return Layout()
    settings = model.settings
    return Layout(settings.partitioned_by, settings.sorted_by, settings.table_properties)


def _seed(run: Run, name: str) -> Seed:
    """The seed's rows, which must be the very ones that were planned."""
    compiled = run.compiled.seeds[name]
    files = read_files(Path(run.config.root))
    specs = load_seed_specs(files.seed_yaml, run.environ)
    content = files.seeds.get(compiled.path)
    seed = read_seed(compiled.path, content, specs.get(name)) if content is not None else None
    if seed is None or digest(seed_identity(seed)) != compiled.content_hash:
        raise SqbError(
            "X004",
            f"{compiled.path} was changed while the build ran",
            file=compiled.path,
            help="build again",
            exit_code=1,
        )
    return seed
