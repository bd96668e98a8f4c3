"""The adapter strategy: a source's version is its table, its columns and its snapshot.

Exact and free: it is read from the catalog's head and cached metadata, never from data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqb.compile.nodes import SourceTable
from sqb.identity.data_id import UNKNOWN, InputState, source_data
from sqb.lake.catalog import Head
from sqb.lake.facts import FactsCache


def observe_sources(
    sources: Iterable[SourceTable], heads: Mapping[tuple[str, str], Head], facts: FactsCache
) -> dict[str, InputState]:
    """The state of every source that exists; one that does not is absent.

    A view of someone else has no version that could be observed: what reads it is always stale.
    """
    out: dict[str, InputState] = {}
    for source in sources:
        head = heads.get((source.namespace, source.table))
        if head is None:
            continue
        found = facts.get(head.location)
        data = UNKNOWN
        if found.kind == "table":
            data = source_data(found.uuid, found.shape, found.data_snapshot_id)
        place = f"{source.namespace}.{source.table}"
        out[source.name] = InputState(data, found.shape, place=place)
    return out
