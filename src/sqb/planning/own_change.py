"""Pass 1: does a node have to run by itself, whatever its inputs do?"""

from __future__ import annotations

from sqb.identity.expected import Expected
from sqb.planning.situation import Situation, as_recorded, bound
from sqb.state.record import Record


def own_change(situation: Situation, name: str) -> str | None:
    """The node's own reason to run, or None."""
    expected = situation.expected[name]
    if name in situation.selected:
        if situation.full_refresh and expected.full_refresh is not False:
            return "full_refresh"
        if situation.force or situation.full_refresh:
            return "forced"
    if expected.relation and name not in situation.relations:
        return "relation_missing" if name in situation.known else "first_run"
    record = situation.recorded.get(name)
    if record is None:
        return "relation_changed" if name in situation.known else "first_run"
    changed = definition_change(expected, record)
    if changed is not None:
        return changed
    if not as_recorded(situation, name):
        return "relation_changed"
    dated = bool(expected.constants) and expected.materialized != "view"
    if dated and record.constants != bound(expected, situation.constants):
        return "constant_changed"
    return None


def definition_change(expected: Expected, record: Record) -> str | None:
    """How the definition differs from the recorded one."""
    if record.query != expected.query:
        return "seed_changed" if expected.type == "seed" else "query_changed"
    if record.config != expected.config:
        return "config_changed"
    return None
