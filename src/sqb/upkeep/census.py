"""Who needs what in the whole catalog: running builds, stamps, state rows, heads."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

import msgspec

from sqb.errors import SqbError
from sqb.lake.catalog import Head, SqlCatalog
from sqb.lake.facts import FactsCache
from sqb.lake.metadata import TableFacts
from sqb.lake.staging import STAGE_SUFFIX, live_leases
from sqb.project.config import JanitorConfig
from sqb.project.durations import duration_seconds
from sqb.state.record import Record, decode, truth
from sqb.state.store import StateStore
from sqb.state.tables import FINGERPRINTS
from sqb.upkeep.needed import Needs

#: Every state table has such a name.
STATE_PREFIX = "_sqlbuild_"


class Census(msgspec.Struct, frozen=True):
    """One look at everything that may need a file of the lake.

    ``records`` are the stamps; ``truths`` what is known of each relation now, which a run that left
    it as it was may have recorded later. ``leases`` are the stage schemas in which a build runs,
    with the moment since when.
    """

    heads: dict[tuple[str, str], Head]
    facts: dict[tuple[str, str], TableFacts]
    records: dict[tuple[str, str], Record]
    truths: dict[tuple[str, str], Record]
    needs: Needs
    leases: dict[str, float]
    now: float


class Lake(msgspec.Struct, frozen=True):
    """What upkeep works on: a catalog, what is known of it, and the project's settings."""

    catalog: SqlCatalog
    facts: FactsCache
    store: StateStore
    settings: JanitorConfig

    @property
    def grace(self) -> float:
        """How long a reader may go on with what is no longer current, in seconds."""
        return float(duration_seconds(self.settings.reader_grace) or 3600)

    def census(self) -> Census:
        """Who needs what, right now."""
        return take(self.catalog, self.facts, self.store, grace=self.grace, now=wall_clock())


def wall_clock() -> float:
    """The time of the machine, which leases and files go by; ``SQB_NOW`` does not move it."""
    return time.time()


def is_state(name: str) -> bool:
    """Is it a state table's name?"""
    return name.startswith(STATE_PREFIX)


def take(
    catalog: SqlCatalog, facts: FactsCache, store: StateStore, *, grace: float, now: float
) -> Census:
    """Look at leases first, then at heads and records.

    A build that is not seen among the leases has either recorded what it pinned, or begins after
    ``now`` and pins what is current then, which the grace protects.
    """
    leases: dict[str, float] = {}
    for namespace in catalog.namespaces():
        if namespace.endswith(STAGE_SUFFIX):
            live = live_leases(catalog, namespace, now)
            if live:
                leases[namespace] = min(lease.began for lease in live.values())
    heads, known = _relations(catalog, facts)
    records = {key: stamp for key, found in known.items() if (stamp := stamp_of(found)) is not None}
    snapshots = {
        snapshot
        for found in known.values()
        for snapshot in (found.snapshot_id, found.data_snapshot_id)
    }
    standing = {found.uuid for found in known.values()}
    rows = [row for row in _rows(heads, store) if row.uuid in standing]
    for record in [*records.values(), *rows]:
        snapshots.add(record.snapshot)
        if record.materialized != "view":
            # A view reads what is there when it is asked; what it saw when it was made is nothing.
            snapshots |= set(record.pins.values())
    since = min([now, *leases.values()]) - grace
    needs = Needs(frozenset(s for s in snapshots if s is not None), int(since * 1000))
    truths = _truths(known, records, rows)
    return Census(heads, known, records, truths, needs, leases, now)


def _truths(
    known: Mapping[tuple[str, str], TableFacts],
    records: Mapping[tuple[str, str], Record],
    rows: Iterable[Record],
) -> dict[tuple[str, str], Record]:
    newest: dict[str, Record] = {}
    for row in rows:
        if row.uuid not in newest or newest[row.uuid].ts < row.ts:
            newest[row.uuid] = row
    found = {
        key: truth(stamp, newest.get(stamp.uuid), known[key]) for key, stamp in records.items()
    }
    return {key: record for key, record in found.items() if record is not None}


def _relations(
    catalog: SqlCatalog, facts: FactsCache
) -> tuple[dict[tuple[str, str], Head], dict[tuple[str, str], TableFacts]]:
    """Every relation with its facts; one that goes or moves while it is looked at is no trouble."""
    heads = catalog.heads()
    known: dict[tuple[str, str], TableFacts] = {}
    for key, seen in list(heads.items()):
        head: Head | None = seen
        while head is not None:
            try:
                known[key], heads[key] = facts.get(head.location), head
                break
            except SqbError:
                now = catalog.head(*key)
                if now == head:
                    raise
                head = now
        else:
            del heads[key]
    return heads, known


def is_excluded(namespace: str, name: str, patterns: Iterable[str]) -> bool:
    """Does a pattern name the relation, with or without its schema?

    >>> is_excluded("dev", "ledger_2024", ["ledger_*"]), is_excluded("dev", "a", ["prod.*"])
    (True, False)
    """
    return any(fnmatchcase(text, p) for p in patterns for text in (name, f"{namespace}.{name}"))


def stamp_of(facts: TableFacts) -> Record | None:
    """The record that a relation carries, if it is its own and not copied with it."""
    record = decode(facts.stamp)
    return record if record is not None and record.uuid == facts.uuid else None


def _rows(heads: Mapping[tuple[str, str], Head], store: StateStore) -> list[Record]:
    """The newest state rows of every schema of the catalog."""
    schemas = [namespace for namespace, name in heads if name == FINGERPRINTS]
    return [row for schema in schemas for row in store.latest(heads, [schema]).values()]
