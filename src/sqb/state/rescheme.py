"""After an upgrade of the tokeniser: recorded hashes brought to the scheme in force.

The *stored text* is made canonical again and hashed, so that an upgrade alone makes nothing stale
while a real edit still does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from sqb.hashing import digest
from sqb.sql.version import scheme
from sqb.state.record import Record


def rescheme(
    recorded: Mapping[str, Record], definition: Callable[[str], str | None]
) -> tuple[dict[str, Record], frozenset[str]]:
    """Records under the current scheme, and the names of those that were translated.

    ``definition`` gives the stored text of a record. A model whose text is lost keeps its old hash
    and is rebuilt.
    """
    current = scheme()
    out = dict(recorded)
    translated: set[str] = set()
    for name, record in recorded.items():
        if record.scheme == current or record.type != "model":
            continue
        text = definition(name)
        if text is None:
            continue
        from sqb.sql.tokens import canonical

        query = digest(canonical(text))
        out[name] = msgspec.structs.replace(record, query=query, scheme=current)
        translated.add(name)
    return out, frozenset(translated)
