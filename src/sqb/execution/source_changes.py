"""What happened to each table that a plan reads since a record, told by metadata alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from sqb.execution.reading import is_view, tables_read
from sqb.execution.run import Run
from sqb.freshness.files import Listing
from sqb.identity.data_id import UNKNOWN, has_no_rows, observed_value, source_schema
from sqb.lake.metadata import Column, TableFacts, schema_hash
from sqb.lake.types import spark_type
from sqb.lake.versions import Snapshot
from sqb.refresh.build import Plan
from sqb.refresh.changes import TableChange, table_change
from sqb.refresh.differing import Parts, differing, limited
from sqb.refresh.ir import scans
from sqb.refresh.reasons import Refused
from sqb.refresh.types import ColumnType, mistied
from sqb.state.record import Record

#: The column in which Iceberg tells the file of a row.
FILE = "_file"


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
    facts = run.relation(name)
    if was_view(run, record, name):
        raise Refused("DEFINITION_CHANGED", f"{name} was a view before")
    then = as_it_was(run, record, name)
    if then is not None and then.untold:
        return Source(name, columns, TableChange("unknown", None, None, then.untold), facts)
    if fresh and then is None:
        at = facts.snapshot_id if facts is not None else None
        return Source(name, columns, TableChange("none", at, at), facts, readable=True)
    if facts is None or facts.kind != "table":
        if unmoved(run, record, name):
            return Source(name, columns, TableChange("none", None, None))
        if added_files(run, record, name) is not None:
            return Source(name, columns, TableChange("files", None, None, added_rows=None))
        return Source(name, columns, TableChange("unknown", None, None, _unversioned(run, name)))
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
    if stored is not None and not set(columns) <= {c.name for c in kept_columns(stored, facts)}:
        # rows of then have to be given the columns of now, and nothing else is left of them
        way = "versions" if change.way == "lineage" else change.way
        change = msgspec.structs.replace(change, way=way)
        return Source(name, columns, change, facts, readable, stored=stored)
    parts = _parts(run, change, facts, known)
    if parts is not None:
        change = limited(change, parts)
    return Source(name, columns, change, facts, readable, parts)


def unmoved(run: Run, record: Record, name: str) -> bool:
    """Are the rows of a source without versions what a record read of it, for sure?

    One that is watched by a value may have other rows while that stands still.
    """
    data = record.read().get(name, "")
    if data in (UNKNOWN, "") or data != run.state(name).data:
        return False
    if observed_value(data) is None:
        return True
    files = added_files(run, record, name)
    return files is not None and not files[1].files


class Then(msgspec.Struct, frozen=True):
    """A table as a record read it: its data id, its version, or that it was ``empty``.

    ``untold``: it was read, and why nobody knows at which version.
    """

    data: str
    pin: int | None
    empty: bool
    untold: str = ""


def was_view(run: Run, record: Record, name: str) -> bool:
    """Did a record see through a model that is a table by now?"""
    model = run.compiled.models.get(name)
    if model is None or is_view(run, name):
        return False
    return record.read().get(model.settings.state_of or name, "").startswith("v:")


def as_it_was(run: Run, record: Record, name: str) -> Then | None:
    """What a record read of a table; None: it did not read it.

    A source may be declared, renamed or no longer declared: its table is the same. And what was
    read as a table of its own may be a view by now, over tables that are known to it.
    """
    direct = _by_name(run, record, name)
    found = [] if direct is None else [direct]
    for table, data in record.read().items():
        if data.startswith("v:") or not is_view(run, table):
            continue
        if name in run.inside(tables_read(run, table, below=table)):
            found += _behind(run, table, data, name)
    # what has no versions is told apart by what it was
    told = {(then.pin or then.data, then.empty, then.untold) for then in found}
    if len(told) > 1:
        why = "it was read at several versions, of which one was behind what is a view by now"
        return msgspec.structs.replace(found[0], untold=why)
    return found[0] if found else None


def _by_name(run: Run, record: Record, name: str) -> Then | None:
    """A table that a record names itself, perhaps in another way."""
    facts = run.relation(name)
    read = record.read()
    if facts is not None and facts.kind == "table" and not _is(run, record, name, name, facts):
        others = (one for one in {**record.pins, **read} if one != name)
        same = next((one for one in others if _is(run, record, one, name, facts)), None)
        if same is not None:
            return _then(record, same, facts)
    # of what an expression reads, only that tells
    if name in read or name in record.pins or name in record.empty:
        return _then(record, name, facts)
    return None


def _behind(run: Run, view: str, data: str, name: str) -> list[Then]:
    """What was read of a table inside of what was one of its own, and is a view by now."""
    before = run.situation.recorded.get(view)
    if before is not None and before.materialized != "view" and before.data == data:
        then = as_it_was(run, before, name)
        if then is not None:
            return [then]
        if before.query != run.expected(view).query:
            return []  # an edited query reads it for the first time
    why = f"`{view}`, which was read as a table, is a view by now, and what it was made of is gone"
    return [Then("", None, empty=False, untold=why)]


def _is(run: Run, record: Record, known: str, name: str, facts: TableFacts) -> bool:
    """Is what a record calls ``known`` the table that is called ``name`` now?"""
    if source_schema(record.read().get(known, ""), facts.uuid) is not None:
        return True
    return known in record.pins and record.pins[known] in run.versions(name)


def _then(record: Record, name: str, facts: TableFacts | None) -> Then:
    data = record.read().get(name, "")
    empty = name in record.empty or has_no_rows(data, facts.uuid if facts is not None else "")
    return Then(data, record.pins.get(name), empty)


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
    if old is None or new is None or any(c.name.lower() == FILE for c in facts.columns):
        return None
    files = run.files(old, new)
    if files is None:
        return None
    then, now = files
    return differing(then, now, kept_columns(old.columns, facts))


def kept_columns(then: Sequence[Column], facts: TableFacts) -> list[Column]:
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


def added_files(run: Run, record: Record, name: str) -> tuple[Listing, Listing] | None:
    """The files that were read before and those that came, of a source whose files never change."""
    listing, marks = run.sources.listings.get(name), record.files.get(name)
    if listing is None or marks is None:
        return None
    # how files are read must be the same, too; inside an expression its definition tells
    data, now = record.read().get(name), run.state(name).data
    same = data is None or data.split(":")[:2] == now.split(":")[:2]
    return listing.since(set(marks)) if same else None


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


def old_versions(sources: Mapping[str, Source]) -> frozenset[str]:
    """The sources whose version before the change can be read."""
    return frozenset(name for name, source in sources.items() if source.readable)
