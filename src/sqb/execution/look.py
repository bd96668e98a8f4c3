"""One look at the lake: what stands there now, and what is recorded of it.

Everything comes from the catalog's heads and from caches; only what moved since the last look is
read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from sqb.errors import SqbError
from sqb.identity.expected import Expected
from sqb.lake.catalog import Head
from sqb.lake.facts import FactsCache
from sqb.lake.io import is_within
from sqb.lake.lake import Key, Lake
from sqb.lake.metadata import TableFacts
from sqb.lake.staging import stage_schema
from sqb.state.definition import unpack
from sqb.state.record import Record, decode, needs_repair, truth
from sqb.state.rescheme import rescheme
from sqb.state.store import StateStore
from sqb.state.tables import FINGERPRINTS, FRESHNESS


class Observed(msgspec.Struct, frozen=True):
    """Everything one look gave.

    ``rows`` are the newest state rows, ``recorded`` the truth about each relation that stands,
    under the scheme in force; ``outdated`` were recorded under an older one. ``repairs`` were
    published by a build that died before it could write their rows.
    """

    heads: dict[tuple[str, str], Head]
    relations: dict[str, TableFacts]
    rows: dict[str, Record]
    recorded: dict[str, Record]
    outdated: frozenset[str]
    repairs: dict[str, Record]


def look(
    expected: Mapping[str, Expected],
    namespaces: Sequence[str],
    sources: Collection[Key],
    catalog: Lake,
    facts: FactsCache,
    store: StateStore,
) -> Observed:
    """What the lake holds of these nodes."""
    relations_wanted = {(node.namespace, node.relation) for node in expected.values()}
    state = {(namespace, table) for namespace in namespaces for table in (FINGERPRINTS, FRESHNESS)}
    stages = [stage_schema(namespace) for namespace in namespaces]
    heads = catalog.look(relations_wanted | state | set(sources), stages)
    relations: dict[str, TableFacts] = {}
    for name, node in expected.items():
        head = heads.get((node.namespace, node.relation))
        if head is not None:
            relations[name] = facts.get(head.location)
    rows = store.latest(heads, namespaces)
    recorded: dict[str, Record] = {}
    repairs: dict[str, Record] = {}
    below = catalog.warehouse.rstrip("/") + "/"
    for name, relation in relations.items():
        row, stamp = rows.get(name), decode(relation.stamp)
        place = relation.location
        # the plain comparison first: thousands of relations are looked at
        inside = not catalog.warehouse or place.startswith(below) or stamp is None
        if not (inside or is_within(place, below)):
            raise _moved(place, catalog.warehouse)
        found = truth(stamp, row, relation)
        if found is None or found.node != name:
            continue
        recorded[name] = found
        if needs_repair(found, row):
            repairs[name] = found
    observed = Observed(heads, relations, rows, recorded, frozenset(), repairs)
    translated, outdated = rescheme(
        recorded, lambda name: built_definition(expected[name], observed, facts, store)
    )
    return msgspec.structs.replace(observed, recorded=translated, outdated=outdated)


def compacted(recorded: Mapping[str, Record], tables: Mapping[str, TableFacts]) -> frozenset[str]:
    """The logs that were last told of a version of a table which is not its newest.

    If they are current, it was only compacted since. They can't do without the version that they
    go on from, so it should be one that is there for long.
    """
    found: set[str] = set()
    for name, record in recorded.items():
        for table, pin in record.pins.items() if record.materialized == "append" else ():
            facts = tables.get(table)
            if facts is not None and facts.snapshot_id != pin and table not in record.seen:
                found.add(name)
    return frozenset(found)


def refuse_moved(nodes: Iterable[Expected], catalog: Lake, facts: FactsCache) -> None:
    """Refuse to read relations of sqb's own that lie outside the warehouse."""
    if not catalog.warehouse:
        return
    places = {(node.namespace, node.relation) for node in nodes}
    for key, head in catalog.look(places, ()).items() if places else ():
        relation = facts.get(head.location) if key in places else None
        if relation is None or decode(relation.stamp) is None:
            continue
        if not is_within(relation.location, catalog.warehouse):
            raise _moved(relation.location, catalog.warehouse)


def _moved(location: str, warehouse: str) -> SqbError:
    """sqb makes its tables below the warehouse; one elsewhere came along with the catalog."""
    return SqbError(
        "L002",
        f"the project was moved or copied: its catalog names {location}, "
        f"outside the warehouse {warehouse}",
        help="paths in Iceberg metadata are absolute: move the project back, or delete its lake "
        "folder, load your sources into a new one and build again",
    )


def built_definition(
    node: Expected, observed: Observed, facts: FactsCache, store: StateStore
) -> str | None:
    """The recorded text of a node: from its relation, or from the row that amended it since."""
    head = observed.heads.get((node.namespace, node.relation))
    if head is None:
        return None
    stamp, row = decode(facts.get(head.location).stamp), observed.rows.get(node.name)
    if row is not None and stamp is not None and row.query != stamp.query:
        return store.definition([node.namespace], node.name)
    return unpack(facts.definition(head.location))
