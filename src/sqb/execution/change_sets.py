"""The rows of a source as a refresh reads them: as they are, as they were, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from sqb.errors import SqbError
from sqb.execution.content_hash import quote
from sqb.execution.files import read_files
from sqb.execution.run import Run
from sqb.execution.source_changes import FILE, Source, added_files, kept_columns
from sqb.execution.sources import files_view
from sqb.execution.statement import literal, projected
from sqb.execution.steps import Steps, kinds_of, literal_of
from sqb.lake.types import spark_type
from sqb.refresh.changes import TableChange
from sqb.refresh.differing import Part
from sqb.refresh.netting import net
from sqb.refresh.reasons import Refused
from sqb.refresh.script import COPIES, WEIGHT
from sqb.refresh.strategies import groupable
from sqb.state.record import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Columns that Iceberg's changelog adds to a table's own.
_CHANGELOG = ("_change_type", "_change_ordinal", "_commit_snapshot_id")


class Bound:
    """The sources of one refresh in a session: SQL for their rows, views for their changes."""

    def __init__(
        self,
        run: Run,
        session: SparkSession | None,
        record: Record,
        sources: Mapping[str, Source],
    ) -> None:
        self.run = run
        self._session = session
        self.record = record
        self.sources = sources
        self._texts: dict[str, str] = {}

    @property
    def session(self) -> SparkSession:
        """The session that changes are computed in."""
        if self._session is None:
            raise AssertionError("nothing is computed without a session")
        return self._session

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
        source, table = self.sources[name], self.run.table(name)
        if source.change.old is None:
            return f"(SELECT * FROM {table} WHERE false) AS sqb_s"
        version = f"{table} VERSION AS OF {source.change.old}"
        if source.stored is None or source.facts is None:
            return version
        wanted = tuple(c for c in source.facts.columns if c.name in source.columns)
        return f"({projected(version, wanted, source.stored)}) AS sqb_s"

    def written(self) -> dict[str, TableChange]:
        """As ``bind``, for reading the SQL alone: nothing is computed, so what cancels stays."""
        for name, source in self.sources.items():
            if source.change.way == "files":
                self._texts[name] = f"sqb_changes_of_{len(self._texts)}"
            elif source.change.way not in ("none", "unknown"):
                self._texts[name] = f"({self._raw(source)}) AS sqb_s"
        return {name: source.change for name, source in self.sources.items()}

    def bind(self, steps: Steps) -> dict[str, TableChange]:
        """Make the change of every source readable; what is known of it afterwards.

        A change that had to be compared is netted, computed and counted: it may turn out to be
        none, or rows that only came.
        """
        found: dict[str, TableChange] = {}
        for name, source in self.sources.items():
            self._refuse_collated(source)
            change = source.change
            if change.way == "append":
                self._texts[name] = f"({self._raw(source)}) AS sqb_s"
            elif change.way == "files":
                self._texts[name] = self._files(source, steps)
            elif change.way not in ("none", "unknown"):
                change = self._netted(source, steps)
            found[name] = change
        return found

    def _refuse_collated(self, source: Source) -> None:
        """Iceberg keeps no collations; what others keep would make equal strings of other ones."""
        if (source.facts is not None and source.facts.kind == "table") or not source.columns:
            return
        items = ", ".join(quote(column) for column in source.columns)
        frame = self.session.sql(f"SELECT {items} FROM {self.relation(source.name, 'new')}")
        for column, kind in kinds_of(frame).items():
            if "collate" in kind:
                raise Refused("UNSUPPORTED", f"column {column} of {source.name} is {kind}")

    def _files(self, source: Source, steps: Steps) -> str:
        """The rows of the files that came, if all files agree on the columns."""
        spec = self.run.compiled.sources[source.name].files
        parts = added_files(self.run, self.record, source.name)
        if spec is None or parts is None:
            raise AssertionError("a source of files")
        then, came = parts
        whole = self.session.table(files_view(source.name)).schema
        try:
            same = read_files(self.session, source.name, spec, then).schema.fields == whole.fields
            rows = read_files(self.session, source.name, spec, came, whole)
        except SqbError as error:
            raise Refused("SCHEMA_CHANGED", error.message) from error
        if not same or rows.schema.fields != whole.fields:
            raise Refused("SCHEMA_CHANGED", f"the files of {source.name} differ in their columns")
        items = [quote(column) for column in source.columns]
        view = f"sqb_changes_of_{len(self._texts)}"
        steps.view(view, rows.selectExpr(*items, f"1 AS {WEIGHT}"))
        return view

    def _raw(self, source: Source) -> str:
        """The rows that came and went, with their weights; some may cancel."""
        lowered = {column.lower() for column in source.columns}
        for own in (WEIGHT, COPIES):
            if own in lowered:
                raise Refused("UNSUPPORTED", f"a column named {own}")
        if source.change.way == "changelog" and not lowered.isdisjoint(_CHANGELOG):
            raise Refused("UNSUPPORTED", "a column named like one of the changelog")
        return self._change_rows(source, source.columns)

    def _change_rows(self, source: Source, columns: Sequence[str]) -> str:
        change, table = source.change, self.run.table(source.name)
        items = ", ".join(quote(column) for column in columns)
        span = f"WITH ('start-snapshot-id'='{change.old}', 'end-snapshot-id'='{change.new}')"
        if change.way == "append" and change.old is not None:
            return f"SELECT {items}, 1 AS {WEIGHT} FROM {table} {span}"
        if change.way == "changelog":
            weight = f"CASE WHEN _change_type = 'INSERT' THEN 1 ELSE -1 END AS {WEIGHT}"
            return f"SELECT {items}, {weight} FROM {table}.changes {span}"
        old, new = ("TRUE", "TRUE")
        if source.parts is not None:
            old, new = _in_files(source.parts.old), _in_files(source.parts.new)
        if change.way == "lineage":
            stays = f"COALESCE(_last_updated_sequence_number <= {change.sequence}, FALSE)"
            now, then = (f"{table} VERSION AS OF {v}" for v in (change.new, change.old))
            # no NOT EXISTS: Spark 4.1 fails on one whose condition turns out to be false
            return (
                f"SELECT {items}, 1 AS {WEIGHT} FROM {now} WHERE {new} AND NOT {stays}"
                f" UNION ALL SELECT {items}, -1 AS {WEIGHT}"
                f" FROM (SELECT {items}, _row_id FROM {then} WHERE {old}) AS o"
                f" LEFT ANTI JOIN (SELECT _row_id FROM {now} WHERE {new} AND {stays})"
                " AS n ON n._row_id = o._row_id"
            )
        come = f"SELECT {items}, 1 AS {WEIGHT} FROM {self.relation(source.name, 'new')}"
        if change.old is None:
            return come
        gone = f"SELECT {items}, -1 AS {WEIGHT} FROM {self.relation(source.name, 'old')}"
        return f"{come} WHERE {new} UNION ALL {gone} WHERE {old}"

    def _shared(self, source: Source) -> str | None:
        """The change as other models of this run read it too, on all columns; None: alone."""
        change, facts = source.change, source.facts
        if facts is None or source.stored is not None:
            return None
        then = self.run.versions(source.name).get(change.old or -1)
        kept = kept_columns(then.columns, facts) if then is not None else facts.columns
        names = [column.name for column in kept]
        own = {WEIGHT, COPIES, *_CHANGELOG}.isdisjoint(name.lower() for name in names)
        if not own or self.run.readers(source.name, change.old) < 2:
            return None
        raw = self._change_rows(source, names)
        kinds = kinds_of(self.session.sql(raw))
        if not all(groupable(kinds[name]) for name in names):
            return None
        net = _net(raw, names, kinds)
        key = (source.name, change.old, change.new)
        view = self.run.shared.get(key, lambda: self.session.sql(net))
        items = ", ".join(quote(column) for column in source.columns)
        return f"SELECT {items}, {WEIGHT} FROM {view}"

    def _netted(self, source: Source, steps: Steps) -> TableChange:
        raw = self._raw(source)
        raw = self._shared(source) or raw
        kinds = kinds_of(self.session.sql(raw))
        if all(groupable(kinds[column]) for column in source.columns):
            raw = _net(raw, source.columns, kinds)
        view = f"sqb_changes_of_{len(self._texts)}"
        counts = {"come": f"count_if({WEIGHT} > 0)", "gone": f"count_if({WEIGHT} < 0)"}
        _, found = steps.computed(view, self.session.sql(raw), counts)
        self._texts[source.name] = view
        come, gone = int(found.get("come") or 0), int(found.get("gone") or 0)
        way = source.change.way if gone else "append" if come else "none"
        return msgspec.structs.replace(source.change, way=way, added_rows=come, removed_rows=gone)


def _in_files(part: Part) -> str:
    """The condition that a row lies in these files, with what lets Iceberg leave out others."""
    if not part.paths:
        return "FALSE"
    tests = [f"{FILE} IN ({', '.join(map(literal, part.paths))})"]
    if part.within is not None:
        name, kind = quote(part.within.column), spark_type(part.within.type)
        either = [
            f"{name} BETWEEN {literal_of(low, kind)} AND {literal_of(high, kind)}"
            for low, high in part.within.ranges
        ]
        either += [f"{name} IS NULL"] if part.within.nulls else []
        tests.append(f"({' OR '.join(either)})")
    return " AND ".join(tests)


def _net(raw: str, columns: Sequence[str], kinds: Mapping[str, str]) -> str:
    """Changed rows without those that cancel, one for each copy: what reads them may count."""
    items = ", ".join(f"sqb_n.{quote(column)}" for column in columns)
    netted = net([(quote(column), kinds[column]) for column in columns], raw)
    return (
        f"SELECT {items}, CAST(SIGN({WEIGHT}) AS INT) AS {WEIGHT} FROM ({netted}) AS sqb_n"
        f" LATERAL VIEW explode(sequence(1, CAST(ABS({WEIGHT}) AS INT))) sqb_e AS sqb_i"
    )
