"""How large the sources and the table of a refresh are, as the lake's metadata tells."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sqb.execution.source_changes import Source
from sqb.lake.metadata import TableFacts
from sqb.refresh.changes import TableChange
from sqb.refresh.cost import Size, Sizes
from sqb.state.record import Record

#: A table below this many bytes is read and written anew faster than it is searched.
_SMALL = 8 << 20


def is_small(table: TableFacts) -> bool:
    """Is a table read and written as a whole faster than rows are looked for in it?"""
    return (table.total_bytes or _SMALL) < _SMALL


def sizes_of(base: TableFacts, record: Record, sources: Mapping[str, Source]) -> Sizes:
    """The sizes that the cost of a refresh depends on."""
    rows = record.rows if record.rows is not None else base.total_records
    found = {name: _size(source) for name, source in sources.items()}
    return Sizes(found, base.total_bytes, rows)


def counted(sizes: Sizes, changes: Mapping[str, TableChange]) -> Sizes:
    """The sizes after the changes that had to be compared were counted."""
    sources = {
        name: msgspec.structs.replace(size, counted=changes[name])
        if size.change.way not in ("none", "append", "files", "unknown")
        else size
        for name, size in sizes.sources.items()
    }
    return msgspec.structs.replace(sizes, sources=sources)


def _size(source: Source) -> Size:
    facts = source.facts
    if facts is None:
        return Size(None, None, 1.0, source.change)
    if facts.snapshot_id is None:
        return Size(0, 0, 1.0, source.change)
    share = len(source.columns) / max(len(facts.columns), 1)
    return Size(facts.total_bytes, facts.total_records, min(share, 1.0), source.change)
