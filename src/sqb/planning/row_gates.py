"""Whether a stale table may be refreshed by rows at all: facts about it, not about its query."""

from __future__ import annotations

from collections.abc import Mapping

from sqb.identity.data_id import InputState
from sqb.refresh.reasons import RULES, Refused
from sqb.state.record import Record

_REASONS = {
    "first_run": ("FIRST_BUILD", "the table is built for the first time"),
    "relation_missing": ("TARGET_MISSING", "the table is gone"),
    "relation_changed": ("TARGET_MODIFIED_OUTSIDE", "the table was written by someone else"),
    "full_refresh": ("FORCED", "--full-refresh"),
    "forced": ("FORCED", "--force"),
    "query_changed": ("DEFINITION_CHANGED", "the query is another"),
    "config_changed": ("DEFINITION_CHANGED", "the configuration is another"),
    "source_unknown": ("NO_CHANGE_SET", "a source has no versions that can be compared"),
}


def at_once(reason: str) -> tuple[str, str] | None:
    """The code and the sentence for which a node that runs for this reason is rebuilt."""
    return _REASONS.get(reason)


def refuse(
    reason: str,
    record: Record | None,
    mode: str,
    publish_mode: str | None,
    states: Mapping[str, InputState],
    definition: tuple[str, str],
    *,
    forward: bool = False,
) -> None:
    """Raise ``Refused`` if the table must be rebuilt whatever its query is.

    ``definition`` are the texts and places that it follows from now. ``forward``: that they are
    others is no reason.
    """
    if reason in _REASONS:
        raise Refused(*_REASONS[reason])
    if record is None:
        raise Refused("FIRST_BUILD", "nothing is known of the table")
    if mode == "full":
        raise Refused("FORCED", "refresh full")
    if publish_mode == "replace":
        raise Refused("UNSUPPORTED", "the catalog lets tables only be replaced")
    if forward:
        return
    if record.rules != RULES:
        raise Refused("DEFINITION_CHANGED", "the table was made by another version of the rules")
    for item in record.inputs:
        state = states.get(item.name)
        viewed = item.data.startswith("v:")
        if state is None or viewed != state.data.startswith("v:"):
            raise Refused("DEFINITION_CHANGED", f"{item.name} is of another kind")
        if viewed and item.version != state.version:
            raise Refused("DEFINITION_CHANGED", f"the view {item.name} is another")
    texts, places = definition
    if record.texts != texts:
        raise Refused("DEFINITION_CHANGED", "a view or an expression that it reads is another")
    if record.places != places:
        raise Refused("DEFINITION_CHANGED", "a name in its query means another table")
