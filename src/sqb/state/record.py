"""A record: what a relation was built from. The same value is a stamp and a state row.

As table property ``sqb.stamp`` it commits with the data and is the truth; as a row of
``_sqlbuild_fingerprints`` it is history, and an *amendment* where a later run found that the
relation still stands although its inputs or its definition moved.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sqb.identity.hashes import Hashes
from sqb.lake.metadata import TableFacts
from sqb.project.config import Config


class Consumed(msgspec.Struct, frozen=True, array_like=True):
    """One input as it was used: which rows (data id), columns, definition, and where it stood."""

    name: str
    data: str
    schema: str
    version: str
    place: str = ""


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """What one run of a table took, and what was thought before.

    ``plain`` are the seconds of the coarse model for the way that was taken, ``guess`` those that
    were foreseen, ``full`` those foreseen for a rebuild. ``code`` says why it was a rebuild, and
    ``lost`` the seconds of a refresh that was given up for it.
    """

    run: str
    way: str
    seconds: float
    plain: float | None = None
    guess: float | None = None
    full: float | None = None
    bytes: int | None = None
    changed: int | None = None
    keys: int | None = None
    written: int | None = None
    code: str = ""
    lost: float = 0.0


#: So many runs of each way are remembered.
_REMEMBERED = 6


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One relation's origin. ``snapshot`` and ``uuid`` name the commit it speaks of.

    ``table`` is the relation's shape (columns, for a view its SQL), so that an ALTER by someone
    else is seen; ``schema`` the hash of its names and types, which readers compare. ``through`` has
    the data ids of the tables and views that were read through views, to tell later which of them
    moved. ``pins`` has the snapshot of every table that was read, also through views: what a
    refresh by rows starts from, so upkeep must keep it; ``empty`` are tables that had none yet, and
    so no rows. ``seen`` says of each source
    that is watched by a value which version of it gave the value. ``owner`` names the project and
    the target schema it was built for. ``clock`` has the constants as its queries, and the views
    they see through, found them; ``rules`` the version of the rules of row-level refresh;
    ``files`` a mark for each file of a source whose files never change. ``spent`` has its last
    runs, the newest last; ``refreshes`` counts those by rows since the last rebuild. ``kept`` says
    that it holds rows that its query does not give back: ``history``, or ``forward`` where an
    older definition made them. ``texts`` is a hash of its query with all that it sees through, and
    ``places`` one of where the tables are that these read. ``ts`` is in microseconds since the
    epoch. What dbt built has its ``hashes``, so that another sense of identity finds it as current
    as this one; a test of dbt has the ``outcome`` that its last run had.
    """

    node: str
    type: str
    materialized: str
    scheme: str
    query: str
    config: str
    local: str
    version: str
    data: str
    schema: str
    table: str
    uuid: str
    snapshot: int | None
    run: str
    ts: int
    inputs: tuple[Consumed, ...] = ()
    constants: dict[str, str] = {}
    rows: int | None = None
    through: dict[str, str] = {}
    pins: dict[str, int] = {}
    empty: tuple[str, ...] = ()
    seen: dict[str, str] = {}
    owner: str = ""
    clock: dict[str, str] = {}
    rules: str = ""
    files: dict[str, list[str]] = {}
    spent: tuple[Spent, ...] = ()
    refreshes: int = 0
    kept: str = ""
    texts: str = ""
    places: str = ""
    hashes: Hashes | None = None
    outcome: str = ""

    def read(self) -> dict[str, str]:
        """The data ids of all that it was made from, also behind views."""
        return {item.name: item.data for item in self.inputs} | self.through

    def consumed(self) -> dict[str, Consumed]:
        """The inputs by name."""
        return {item.name: item for item in self.inputs}


def remembered(before: tuple[Spent, ...], run: Spent) -> tuple[Spent, ...]:
    """The runs to remember after one more."""
    runs = (*before, run)
    kept = []
    for way in {spent.way for spent in runs}:
        kept += [i for i, spent in enumerate(runs) if spent.way == way][-_REMEMBERED:]
    return tuple(runs[i] for i in sorted(kept))


def owner_of(config: Config) -> str:
    """Whose relations these are: two people share a project, but not a target schema."""
    return f"{config.name}/{config.target.schema}"


_decoder = msgspec.json.Decoder(Record)


def encode(record: Record) -> str:
    """The text kept in ``sqb.stamp`` and in state rows."""
    return msgspec.json.encode(record).decode()


def decode(text: str | bytes | None) -> Record | None:
    """A record from its text; one that can't be read is no record."""
    if not text:
        return None
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError:
        return None


def untouched(record: Record, facts: TableFacts) -> bool:
    """Does the relation still hold exactly what ``record`` says, compactions aside?"""
    if record.uuid != facts.uuid or record.table != facts.shape:
        return False
    return facts.kind == "view" or record.snapshot == facts.data_snapshot_id


def truth(stamp: Record | None, row: Record | None, facts: TableFacts | None) -> Record | None:
    """What is known of a relation: the newest record that names its published commit.

    A stamp on another uuid was copied with the table and says nothing. A row counts only if it
    speaks of the very commit that the stamp names, or, without a stamp, of the head.
    """
    if facts is None:
        return None
    if stamp is not None and stamp.uuid != facts.uuid:
        stamp = None
    if row is not None and row.uuid != facts.uuid:
        row = None
    if stamp is None:
        return row if row is not None and untouched(row, facts) else None
    if row is None or row.ts < stamp.ts:
        return stamp
    return row if row.snapshot == stamp.snapshot and row.table == stamp.table else stamp


def needs_repair(truth_: Record, row: Record | None) -> bool:
    """Was the relation published without its state row (the build died in between)?"""
    return row is None or row.uuid != truth_.uuid or row.ts < truth_.ts


def newest(into: dict[str, Record], records: Iterable[Record]) -> None:
    """Keep the newest record of each node: latest instant, then highest run id."""
    for record in records:
        known = into.get(record.node)
        if known is None or (record.ts, record.run) >= (known.ts, known.run):
            into[record.node] = record
