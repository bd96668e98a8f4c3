"""``sqb verify``: do tables hold what their records say, and what their queries give?

The first question reads each table once. The second one runs the model's own query on the very
versions that the table says it was made from, and compares the rows.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from sqb.execution import content_hash
from sqb.execution.comparing import as_stored, comparable, content_of, difference
from sqb.execution.failures import explain
from sqb.execution.files import bind_files, release_files
from sqb.execution.kinds.build import kind_in
from sqb.execution.reading import definition, files_read, statement
from sqb.execution.run import Run
from sqb.execution.source_changes import unmoved
from sqb.execution.statement import pinned
from sqb.execution.table import columns_id
from sqb.lake.metadata import TableFacts
from sqb.refresh.reasons import RULES
from sqb.state.record import Record

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Verified(msgspec.Struct, frozen=True):
    """One table. ``equal`` is None where nothing can be compared; ``note`` then says why.

    ``expected`` and ``actual`` are data ids. ``against`` is what the table was compared with: its
    ``record``, or its ``query`` too; ``missing`` and ``extra`` count rows of the latter.
    """

    name: str
    equal: bool | None
    expected: str | None = None
    actual: str | None = None
    against: str = "record"
    missing: int | None = None
    extra: int | None = None
    note: str = ""


class _NotComparableError(Exception):
    """Why a table can't be compared."""


def comparable_tables(run: Run, names: frozenset[str]) -> list[str]:
    """The nodes among ``names`` that hold rows, in the project's order."""
    return [n for n, e in run.situation.expected.items() if n in names and e.materialized != "view"]


def verify(run: Run, session: SparkSession, name: str, *, full: bool) -> Verified:
    """Look at one table."""
    record, facts = run.situation.recorded.get(name), run.situation.relations.get(name)
    if facts is None or facts.kind != "table":
        return Verified(name, None, note="it is not built")
    if record is None:
        return Verified(name, None, note="it was written by someone else")
    text, is_select = pinned(run.place(name), facts)
    table = session.sql(f"SELECT * FROM {text}{' AS t' * is_select}")
    found = _by_hash(record, facts, table)
    if not full or found.equal is False or name not in run.compiled.models:
        return found
    try:
        return _by_query(run, session, name, record, facts, table, found)
    except _NotComparableError as error:
        return msgspec.structs.replace(found, note=f"not compared with its query: {error}")


def _by_hash(record: Record, facts: TableFacts, table: DataFrame) -> Verified:
    """The hash of the rows against the recorded one."""
    content = content_of(table) if record.data.startswith("t:") else None
    if content is None:
        note = "its columns have types whose values can't be hashed"
        return Verified(record.node, None, record.data, note=note)
    actual = content_hash.data_id(columns_id(facts.columns), *content)
    return Verified(record.node, actual == record.data, record.data, actual)


def _by_query(
    run: Run,
    session: SparkSession,
    name: str,
    record: Record,
    facts: TableFacts,
    table: DataFrame,
    found: Verified,
) -> Verified:
    """The rows against those of the query on the recorded inputs."""
    if record.kept or kind_in(run, name).holds_history:
        raise _NotComparableError("it holds rows that its query does not give back")
    then = _then(run, name, record)
    files = files_read(then, name)
    sent = statement(then, name)
    bind_files(session, then.sources, files)
    try:
        query = session.sql(sent.text)
        if len(query.columns) != len(facts.columns):
            raise _NotComparableError("the query gives other columns than the table has")
        query = as_stored(query, facts.columns)
        wanted = content_of(query)
        missing = extra = None
        if comparable(query):
            missing, extra = (frame.count() for frame in difference(query, table))
    except _NotComparableError:
        raise
    except Exception as error:
        told = explain(error, name, run.compiled.models[name], sent)
        raise _NotComparableError(f"the query fails: {told.message}") from error
    finally:
        release_files(session, files)
    if wanted is None and missing is None:
        raise _NotComparableError("its columns have types whose values can't be compared")
    equal, expected = not missing and not extra, found.expected
    if wanted is not None:
        # tells values apart that compare as equal
        expected = content_hash.data_id(columns_id(facts.columns), *wanted)
        equal = equal and expected == found.actual
    return Verified(name, equal, expected, found.actual, "query", missing, extra)


def _then(run: Run, name: str, record: Record) -> Run:
    """The run as it was when the table was made: its inputs at the recorded versions."""
    expected = run.expected(name)
    if record.query != expected.query:
        raise _NotComparableError("its query was edited since it was built")
    if record.rules != RULES:
        raise _NotComparableError("it was built by another version of sqb")
    for source, pin in record.pins.items():
        if run.relation(source) is None:
            raise _NotComparableError(f"{source} is gone")
        if pin not in run.versions(source):
            raise _NotComparableError(f"the version of {source} that it was made from has expired")
    for item in record.inputs:
        if item.name in run.situation.expected and run.relation(item.name) is None:
            raise _NotComparableError(f"{item.name} is gone")
        state = run.state(item.name)
        defined = {"v:": (state.version, item.version), "e:": (state.schema, item.schema)}
        now, before = defined.get(item.data[:2], ("", ""))
        if now != before:
            raise _NotComparableError(f"{item.name} is defined in another way now")
    if (record.texts, record.places) != definition(run, name):
        raise _NotComparableError("what it reads is defined in another way now")
    for source, data in record.read().items():
        facts = run.relation(source)
        versioned = facts is not None and facts.kind == "table"
        if versioned or data.startswith(("v:", "e:")):
            continue
        if not unmoved(run, record, source):
            raise _NotComparableError(f"{source} has no versions and may be another one now")
    return _AsRecorded(run, record)


class _AsRecorded(Run):
    """A run that finds every table at the version that a record names."""

    def __init__(self, run: Run, record: Record) -> None:
        look = copy.copy(run.sources)
        self._at = record.pins
        look.facts = {name: self._as_it_was(name, facts) for name, facts in look.facts.items()}
        constants = {**run.situation.constants, **record.clock}
        super().__init__(
            run.id,
            run.now_us,
            run.config,
            run.compiled,
            msgspec.structs.replace(run.situation, constants=constants),
            run.verdicts,
            run.heads,
            look,
            run.catalog,
            run.facts,
            run.environ,
        )

    def relation(self, name: str) -> TableFacts | None:
        """The facts of a relation, at its recorded version."""
        facts = super().relation(name)
        if facts is None or name not in self.situation.expected:
            return facts
        return self._as_it_was(name, facts)

    def _as_it_was(self, name: str, facts: TableFacts) -> TableFacts:
        if facts.kind != "table":
            return facts
        pin: Mapping[str, int] = self._at
        return msgspec.structs.replace(facts, snapshot_id=pin.get(name), snapshot_columns=None)
