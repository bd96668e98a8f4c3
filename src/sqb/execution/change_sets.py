"""The rows of a source as a refresh reads them: as they are, as they were, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from sqb.execution.content_hash import quote
from sqb.execution.run import Run
from sqb.execution.steps import Steps
from sqb.identity.data_id import UNKNOWN
from sqb.lake.metadata import Column, TableFacts
from sqb.refresh.changes import TableChange, table_change
from sqb.refresh.ir import Node, scans
from sqb.refresh.reasons import Refused
from sqb.refresh.script import WEIGHT
from sqb.refresh.signed import exact
from sqb.refresh.strategies import groupable
from sqb.state.record import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Columns that Iceberg's changelog adds to a table's own.
_CHANGELOG = ("_change_type", "_change_ordinal", "_commit_snapshot_id")


class Source(msgspec.Struct, frozen=True):
    """A table that a plan reads: which of its columns, and what happened to it."""

    name: str
    columns: tuple[str, ...]
    change: TableChange
    facts: TableFacts | None = None
    readable: bool = False


def sources_of(run: Run, record: Record, root: Node) -> dict[str, Source]:
    """The tables of a plan with what happened to each since ``record``, from metadata alone."""
    columns: dict[str, dict[str, None]] = {}
    for scan in scans(root):
        columns.setdefault(scan.source, {}).update(dict.fromkeys(n for _, n in scan.columns))
    return {name: source_of(run, record, name, tuple(cols)) for name, cols in columns.items()}


def source_of(
    run: Run, record: Record, name: str, columns: tuple[str, ...], *, same_columns: bool = True
) -> Source:
    """One table with what happened to it; ``same_columns``: those read must be what they were."""
    facts, state = run.relation(name), run.state(name)
    if facts is None or facts.kind != "table":
        if record.read().get(name) == state.data != UNKNOWN:
            return Source(name, columns, TableChange("none", None, None))
        why = "it has no versions that can be compared"
        return Source(name, columns, TableChange("unknown", None, None, why))
    known = run.versions(name)
    old = record.pins.get(name)
    change = table_change(known, old, facts.snapshot_id)
    readable = old is None or old in known
    if same_columns and change.way not in ("none", "unknown"):
        then = known[old].columns if old is not None and old in known else facts.columns
        _same_columns(name, columns, then, facts)
    return Source(name, columns, change, facts, readable)


def _same_columns(
    name: str, columns: Sequence[str], then: Sequence[Column], facts: TableFacts
) -> None:
    now = {column.name: column for column in facts.columns}
    before = {column.id: column for column in then}
    for wanted in columns:
        column = now[wanted]
        old = before.get(column.id)
        if old is None or (old.name, old.type) != (column.name, column.type):
            raise Refused("SCHEMA_CHANGED", f"column {wanted} of {name} is not what it was")


class Bound:
    """The sources of one refresh in a session: SQL for their rows, views for their changes."""

    def __init__(self, run: Run, session: SparkSession, sources: Mapping[str, Source]) -> None:
        self.run = run
        self.session = session
        self.sources = sources
        self._texts: dict[str, str] = {}

    def relation(self, name: str, version: str) -> str:
        """What a step reads: a source as it is, as it was, or its change."""
        if version == "changes":
            return self._texts[name]
        still = self.sources[name].change.way == "none"
        if version == "new" or still:
            text, is_select = self.run.read(name)
        else:
            text, is_select = self._then(name), False
        return f"{text} AS sqb_s" if is_select else text

    def _then(self, name: str) -> str:
        old = self.sources[name].change.old
        if old is None:
            return f"(SELECT * FROM {self.run.table(name)} WHERE false) AS sqb_s"
        return f"{self.run.table(name)} VERSION AS OF {old}"

    def bind(self, steps: Steps) -> dict[str, TableChange]:
        """Make the change of every source readable; what is known of it afterwards.

        A change that had to be compared is netted, computed and counted: it may turn out to be
        none, or rows that only came.
        """
        found: dict[str, TableChange] = {}
        for name, source in self.sources.items():
            change = source.change
            if change.way == "append":
                self._texts[name] = f"({self._raw(source)}) AS sqb_s"
            elif change.way not in ("none", "unknown"):
                change = self._netted(source, steps)
            found[name] = change
        return found

    def _raw(self, source: Source) -> str:
        """The rows that came and went, with their weights; some may cancel."""
        change, table = source.change, self.run.table(source.name)
        lowered = {column.lower() for column in source.columns}
        if WEIGHT in lowered:
            raise Refused("UNSUPPORTED", f"a column named {WEIGHT}")
        items = ", ".join(quote(column) for column in source.columns)
        span = f"WITH ('start-snapshot-id'='{change.old}', 'end-snapshot-id'='{change.new}')"
        if change.way == "append" and change.old is not None:
            return f"SELECT {items}, 1 AS {WEIGHT} FROM {table} {span}"
        if change.way == "changelog":
            if not lowered.isdisjoint(_CHANGELOG):
                raise Refused("UNSUPPORTED", "a column named like one of the changelog")
            weight = f"CASE WHEN _change_type = 'INSERT' THEN 1 ELSE -1 END AS {WEIGHT}"
            return f"SELECT {items}, {weight} FROM {table}.changes {span}"
        new = f"SELECT {items}, 1 AS {WEIGHT} FROM {self.relation(source.name, 'new')}"
        if change.old is None:
            return new
        old = f"SELECT {items}, -1 AS {WEIGHT} FROM {self.relation(source.name, 'old')}"
        return f"{new} UNION ALL {old}"

    def _netted(self, source: Source, steps: Steps) -> TableChange:
        raw = self._raw(source)
        kinds = {
            field.name: field.dataType.simpleString()
            for field in self.session.sql(raw).schema.fields
        }
        if all(groupable(kinds[column]) for column in source.columns):
            items = ", ".join(quote(column) for column in source.columns)
            shadows = [exact(quote(c), kinds[c]) for c in source.columns]
            grouped = ", ".join([items, *(shadow for shadow in shadows if shadow)])
            # one row for each copy: what reads it may count rows
            raw = (
                f"SELECT {items}, CAST(SIGN(sqb_w) AS INT) AS {WEIGHT} FROM"
                f" (SELECT {items}, SUM({WEIGHT}) AS sqb_w FROM ({raw}) AS sqb_s"
                f" GROUP BY {grouped} HAVING SUM({WEIGHT}) <> 0) AS sqb_n"
                " LATERAL VIEW explode(sequence(1, CAST(ABS(sqb_w) AS INT))) sqb_e AS sqb_i"
            )
        view = f"sqb_changes_of_{len(self._texts)}"
        frame = steps.compute(view, self.session.sql(raw))
        self._texts[source.name] = view
        counts = (f"count_if({WEIGHT} > 0) AS come", f"count_if({WEIGHT} < 0) AS gone")
        row = frame.selectExpr(*counts).first()
        come, gone = (int(row["come"]), int(row["gone"])) if row is not None else (0, 0)
        way = source.change.way if gone else "append" if come else "none"
        return msgspec.structs.replace(source.change, way=way, added_rows=come, removed_rows=gone)


def old_versions(sources: Mapping[str, Source]) -> frozenset[str]:
    """The sources whose version before the change can be read."""
    return frozenset(name for name, source in sources.items() if source.readable)


__all__ = ["Bound", "Source", "old_versions", "sources_of"]
