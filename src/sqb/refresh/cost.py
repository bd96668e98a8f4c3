"""Which of the ways that apply is taken, and whether a full rebuild is the cheaper one."""

from __future__ import annotations

from collections.abc import Mapping

from sqb.refresh.reasons import Refused
from sqb.refresh.strategies import Choice, Option, Situation

#: More changed rows than this share of a source, and the table is rebuilt.
MOST_CHANGED = 0.2


def affordable(
    choice: Choice, situation: Situation, rows: Mapping[str, int | None], mode: str
) -> Option:
    """The way to take; raises ``Refused`` where a rebuild is cheaper, unless rows are wished."""
    option = choice.options[0]
    if mode == "rows":
        return option
    for name, change in situation.changes.items():
        whole, moved = rows.get(name), (change.added_rows or 0) + (change.removed_rows or 0)
        if whole and moved > MOST_CHANGED * whole:
            raise Refused("CHANGE_TOO_LARGE", f"{moved:,} of {whole:,} rows of {name}")
    return option
