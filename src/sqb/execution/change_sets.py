"""The rows of a source as a refresh reads them: as they are, as they were, and what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from sqb.execution.content_hash import quote
from sqb.execution.files import read_files
from sqb.execution.reading import is_view
from sqb.execution.run import Run
from sqb.execution.sources import files_view
from sqb.execution.statement import literal, projected
from sqb.execution.steps import Steps, kinds_of, literal_of
from sqb.freshness.files import Listing
from sqb.identity.data_id import UNKNOWN, source_schema
from sqb.lake.metadata import Column, TableFacts, schema_hash
from sqb.lake.types import spark_type
from sqb.lake.versions import Snapshot
from sqb.refresh.build import Plan
from sqb.refresh.changes import TableChange, table_change
from sqb.refresh.differing import Part, Parts, differing, limited
from sqb.refresh.ir import scans
from sqb.refresh.netting import net
from sqb.refresh.reasons import Refused
from sqb.refresh.script import COPIES, WEIGHT
from sqb.refresh.strategies import groupable
from sqb.refresh.types import ColumnType, mistied
from sqb.state.record import Record

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Columns that Iceberg's changelog adds to a table's own.
_CHANGELOG = ("_change_type", "_change_ordinal", "_commit_snapshot_id")
#: The column in which Iceberg tells the file of a row.
_FILE = "_file"


class Source(msgspec.Struct, frozen=True):
    """A table that a plan reads: which of its columns, and what happened to it."""

    name: str
    columns: tuple[str, ...]
    change: TableChange
    facts: TableFacts | None = None
    readable: bool = False
    #: Where two versions are compared: the files that differ; None: all of them are read.
    parts: Parts | None = None
    #: The columns of the version before, where those that are read were others in it.
    stored: tuple[Column, ...] | None = None


def sources_of(run: Run, record: Record, plan: Plan, *, fresh: bool = False) -> dict[str, Source]:
    """The tables of a plan with what happened to each since ``record``, from metadata alone.

    ``fresh``: one that was not read before is taken as it is, without a change.
    """
    columns: dict[str, dict[str, None]] = {}
    for scan in scans(plan.root):
        columns.setdefault(scan.source, {}).update(dict.fromkeys(n for _, n in scan.columns))
    found = {
        name: source_of(run, record, name, tuple(cols), read_by=plan, fresh=fresh)
        for name, cols in columns.items()
    }
    why = mistied(plan.root, column_types(found))
    if why is not None:
        raise Refused("UNSUPPORTED", why)
    return found


def column_types(sources: Mapping[str, Source]) -> ColumnType:
    """Spark's types of the columns of tables, as far as metadata tells them."""

    def of(source: str, column: str) -> str | None:
        facts = sources[source].facts
        found = next((c for c in facts.columns if c.name == column), None) if facts else None
        return spark_type(found.type).lower() if found is not None else None

    return of


def source_of(
    run: Run,
    record: Record,
    name: str,
    columns: tuple[str, ...],
    *,
    read_by: Plan | None = None,
    fresh: bool = False,
) -> Source:
    """One table with what happened to it; what a plan reads of it must be what it was."""
    facts, state = run.relation(name), run.state(name)
    then = as_it_was(run, record, name)
    if fresh and then is None:
        at = facts.snapshot_id if facts is not None else None
        return Source(name, columns, TableChange("none", at, at), facts, readable=True)
    if facts is None or facts.kind != "table":
        if record.read().get(name) == state.data != UNKNOWN:
            return Source(name, columns, TableChange("none", None, None))
        if _added_files(run, record, name) is not None:
            return Source(name, columns, TableChange("files", None, None, added_rows=None))
        return Source(name, columns, TableChange("unknown", None, None, _unversioned(run, name)))
    if record.read().get(name, "").startswith("v:"):
        raise Refused("DEFINITION_CHANGED", f"{name} was a view before")
    if then is None:
        # not read before, or not known as what
        raise Refused("DEFINITION_CHANGED", f"{name} was not read before")
    known, old = run.versions(name), then.pin
    change = table_change(known, old, facts.snapshot_id)
    if old is None and not then.empty:
        why = "it had no versions when it was read last"
        change = TableChange("unknown", None, facts.snapshot_id, why)
    readable = old is None or old in known
    if read_by is None or change.way == "unknown" or old is None:
        return Source(name, columns, change, facts, readable)
    stored = known[old].columns if old in known else None
    for before in _as_read(run, then.data, facts, name, stored):
        _same_columns(name, columns, before, facts)
        _same_meaning(name, read_by.words, before, facts)
    if stored is not None and not set(columns) <= {c.name for c in _kept(stored, facts)}:
        # rows of then have to be given the columns of now, and nothing else is left of them
        way = "versions" if change.way == "lineage" else change.way
        change = msgspec.structs.replace(change, way=way)
        return Source(name, columns, change, facts, readable, stored=stored)
    parts = _parts(run, change, facts, known)
    if parts is not None:
        change = limited(change, parts)
    return Source(name, columns, change, facts, readable, parts)


class Then(msgspec.Struct, frozen=True):
    """A table as a record read it: its data id, its version, or that it was ``empty``."""

    data: str
    pin: int | None
    empty: bool


def as_it_was(run: Run, record: Record, name: str) -> Then | None:
    """What a record read of a table; None: it did not read it.

    A source may be declared, renamed or no longer declared: its table is the same. And what was
    read as a table of its own may be a view by now, over tables that are known to it.
    """
    facts = run.relation(name)
    read = record.read()
    if facts is not None and facts.kind == "table" and not _is(run, record, name, name, facts):
        others = (one for one in {**record.pins, **read} if one != name)
        same = next((one for one in others if _is(run, record, one, name, facts)), None)
        if same is not None:
            return _then(record, same, facts)
    if name in record.pins or name in read:
        return _then(record, name, facts)
    for item in record.inputs:
        before = run.situation.recorded.get(item.name)
        if before is None or before.materialized == "view" or before.data != item.data:
            continue
        if is_view(run, item.name) and name in {**before.pins, **before.read()}:
            return _then(before, name, facts)
    return None


def _is(run: Run, record: Record, known: str, name: str, facts: TableFacts) -> bool:
    """Is what a record calls ``known`` the table that is called ``name`` now?"""
    if source_schema(record.read().get(known, ""), facts.uuid) is not None:
        return True
    return known in record.pins and record.pins[known] in run.versions(name)


def _then(record: Record, name: str, facts: TableFacts | None) -> Then:
    data, uuid = record.read().get(name, ""), facts.uuid if facts is not None else ""
    empty = name in record.empty or (
        data.endswith(":empty") and source_schema(data, uuid) is not None
    )
    return Then(data, record.pins.get(name), empty or data.split(":")[::2][:2] == ["t", "0"])


def _as_read(
    run: Run, data: str, facts: TableFacts, name: str, stored: tuple[Column, ...] | None
) -> Iterable[Sequence[Column]]:
    """The columns that a table was read with; several where that is not known.

    They are not always those of the version: columns come, go and are widened without a commit of
    rows, and then the version is read with the columns of the table.
    """
    schema = source_schema(data, facts.uuid)
    if schema is None and stored is not None:
        return [stored]
    known = list(run.schemas(name).values())
    exact = [columns for columns in known if schema_hash(columns) == schema]
    # of a version that is gone nobody tells which of the table's schemas it had
    return exact[:1] or (known if stored is None else [stored])


def _parts(
    run: Run, change: TableChange, facts: TableFacts, known: Mapping[int, Snapshot]
) -> Parts | None:
    """The files to read where two versions are compared; None if all of them are."""
    if change.way not in ("versions", "lineage") or facts.snapshot_columns is not None:
        return None
    old, new = known.get(change.old or -1), known.get(change.new or -1)
    if old is None or new is None or any(c.name.lower() == _FILE for c in facts.columns):
        return None
    files = run.files(old, new)
    if files is None:
        return None
    then, now = files
    return differing(then, now, _kept(old.columns, facts))


def _kept(then: Sequence[Column], facts: TableFacts) -> list[Column]:
    """The columns that are what they were."""
    before = {(column.id, column.name, column.type) for column in then}
    return [c for c in facts.columns if (c.id, c.name, c.type) in before]


def _unversioned(run: Run, name: str) -> str:
    """Why the change of a source without versions can't be told."""
    source = run.compiled.sources.get(name)
    if source is None or source.files is None:
        return "it has no versions that can be compared"
    if source.files.immutable:
        return "not all of the files that were read are there as they were, or they are too many"
    return "files have no versions; `immutable_files` says that they only come"


def _added_files(run: Run, record: Record, name: str) -> tuple[Listing, Listing] | None:
    """The files that were read before and those that came, of a source whose files never change."""
    listing, marks = run.sources.listings.get(name), record.files.get(name)
    if listing is None or marks is None:
        return None
    # how files are read must be the same, too
    way = record.read().get(name, "").split(":")[:2]
    return listing.since(set(marks)) if run.state(name).data.split(":")[:2] == way else None


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


def _same_meaning(
    name: str, words: frozenset[str] | None, then: Sequence[Column], facts: TableFacts
) -> None:
    """Raise if names that a query mentions, or ``*``, may mean something else than they did."""
    before, now = ([c.name.lower() for c in columns] for columns in (then, facts.columns))
    other = set(before) ^ set(now)
    if words is not None:
        other = {column for column in other if column in words or not column.isidentifier()}
    elif [c for c in before if c not in other] != [c for c in now if c not in other]:
        raise Refused("SCHEMA_CHANGED", f"the columns of {name} stand in another order")
    if other:
        raise Refused("SCHEMA_CHANGED", f"column {min(other)} of {name} is not what it was")


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
        parts = _added_files(self.run, self.record, source.name)
        if spec is None or parts is None:
            raise AssertionError("a source of files")
        then, came = (read_files(self.session, source.name, spec, part) for part in parts)
        whole = self.session.table(files_view(source.name)).schema
        if not came.schema.fields == whole.fields == then.schema.fields:
            raise Refused("SCHEMA_CHANGED", f"the files of {source.name} differ in their columns")
        items = [quote(column) for column in source.columns]
        view = f"sqb_changes_of_{len(self._texts)}"
        steps.view(view, came.selectExpr(*items, f"1 AS {WEIGHT}"))
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
        kept = _kept(then.columns, facts) if then is not None else facts.columns
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
    tests = [f"{_FILE} IN ({', '.join(map(literal, part.paths))})"]
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


def old_versions(sources: Mapping[str, Source]) -> frozenset[str]:
    """The sources whose version before the change can be read."""
    return frozenset(name for name, source in sources.items() if source.readable)


__all__ = ["Bound", "Source", "old_versions", "sources_of"]
