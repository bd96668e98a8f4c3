"""Pass 2: walk the graph from the top and settle what every node does.

A node runs for a reason of its own, because an input moved, or *maybe*: because an upstream will
run and only its outcome shows whether anything is different below (early cut-off).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sqb.freshness.sighting import Sighting
from sqb.identity.data_id import UNKNOWN, InputState, view_state
from sqb.planning.inputs import Moved, moved_inputs
from sqb.planning.own_change import own_change
from sqb.planning.plan import Cause
from sqb.planning.situation import Situation, as_recorded, bound, definition_local
from sqb.planning.tolerance import as_consumed, kept_sources
from sqb.state.record import Record

#: Own reasons that leave the columns as they are.
_SAME_COLUMNS = frozenset({"forced", "full_refresh", "constant_changed"})


class Verdict(msgspec.Struct, frozen=True):
    """What a node does, and what its readers can know of it.

    ``state`` is None while it can't be known before the run; then ``waits`` names the nodes whose
    outcome decides. ``columns_move``: its columns may come out different. ``stale_above``: stale
    nodes outside the selection that it rests on. ``blocked``: a source above is too old, or it or
    a node above is barred.
    """

    runs: bool
    reason: str
    cause: Cause | None = None
    if_changed: tuple[str, ...] | None = None
    state: InputState | None = None
    waits: tuple[str, ...] = ()
    columns_move: bool = False
    stale_above: frozenset[str] = frozenset()
    blocked: bool = False


_NONE: frozenset[str] = frozenset()


def cascade(situation: Situation) -> dict[str, Verdict]:
    """A verdict for every node of the project, selected or not, parents first."""
    verdicts: dict[str, Verdict] = {}
    tolerant = {n: s for n, s in situation.sightings.items() if s.tolerance is not None}
    for name in situation.expected:
        verdict = _settle(situation, name, verdicts, tolerant)
        barred = situation.barred.get(name) if verdict.runs else None
        if barred is not None:
            verdict = Verdict(False, barred.reason, barred, blocked=True)
        verdicts[name] = verdict
    return verdicts


def _settle(
    situation: Situation,
    name: str,
    verdicts: dict[str, Verdict],
    tolerant: Mapping[str, Sighting],
) -> Verdict:
    expected = situation.expected[name]
    record = situation.recorded.get(name)
    eager = situation.eager
    is_view = expected.materialized == "view" and not eager
    too_old = _too_old(situation, verdicts, expected.inputs)
    if too_old is not None:
        return Verdict(False, too_old.reason, too_old, blocked=True)
    states = _states(situation, verdicts, expected.inputs)
    waiting: list[str] = []
    stale_above: frozenset[str] = _NONE
    for parent in expected.inputs:
        verdict = verdicts.get(parent)
        if verdict is None:
            continue
        if verdict.state is None and verdict.waits:
            waiting.append(parent)
        if verdict.stale_above and not (verdict.runs and parent in situation.selected):
            stale_above |= verdict.stale_above
    own = own_change(situation, name)
    moved: list[Moved] = []
    if own is None and record is not None:
        kept = kept_sources(record, tolerant) if tolerant else {}
        seen = _as_consumed(situation, states, verdicts, kept) if kept else states
        moved = moved_inputs(record, expected.inputs, seen, situation.sources, schema_only=is_view)
    columns_above = [
        p for p in waiting if verdicts[p].columns_move or _replaced(situation, p, record)
    ]
    selected = name in situation.selected
    if own is not None or moved:
        if not selected:
            # an eager view shows rows that moved without being made anew
            shown = own is None and expected.materialized == "view"
            stale = stale_above if shown and eager else stale_above | {name}
            return _outside(situation, name, verdicts, waiting, stale)
        reason, cause = (own, None) if own else _explain(situation, name, moved, verdicts)
        columns = (own or "forced") not in _SAME_COLUMNS or _columns_moved(record, states)
        state = _view_state(situation, name, states) if is_view else None
        waits = (_waits(waiting, verdicts) if is_view else ()) or (name,)
        return Verdict(
            True,
            reason,
            cause,
            state=state,
            waits=() if state is not None else waits,
            columns_move=columns or bool(columns_above),
            stale_above=stale_above,
        )
    if not selected:
        return _outside(situation, name, verdicts, waiting, stale_above)
    if columns_above if is_view else waiting:
        deciding = columns_above if is_view else waiting
        first = verdicts[deciding[0]]
        if_changed = tuple(dict.fromkeys(w for p in deciding for w in verdicts[p].waits or (p,)))
        return Verdict(
            True,
            "upstream_changed",
            first.cause or Cause(deciding[0], first.reason),
            None if eager else if_changed,
            waits=_waits(waiting, verdicts) if is_view else (name,),
            columns_move=bool(columns_above),
            stale_above=stale_above,
        )
    if is_view and waiting:
        # the view stays as it is, but the rows seen through it depend on what runs above
        first = verdicts[waiting[0]]
        return Verdict(
            False,
            "no_change",
            first.cause or Cause(waiting[0], first.reason),
            waits=_waits(waiting, verdicts),
            stale_above=stale_above,
        )
    wanted = situation.wanted.get(name)
    if wanted is not None:
        return Verdict(True, wanted.reason, wanted, waits=(name,), stale_above=stale_above)
    return Verdict(
        False,
        "no_change",
        state=_standing(situation, name, verdicts),
        stale_above=stale_above,
    )


def _too_old(
    situation: Situation, verdicts: dict[str, Verdict], inputs: Iterable[str]
) -> Cause | None:
    """What blocks from above: a source older than its policy allows, or a barred node."""
    for name in inputs:
        verdict = verdicts.get(name)
        if verdict is not None:
            if verdict.blocked:
                return verdict.cause
            continue
        sighting = situation.sightings.get(name)
        if sighting is not None and sighting.age is not None and sighting.age.status == "error":
            return Cause(name, "source_freshness_error")
    return None


def _as_consumed(
    situation: Situation,
    states: dict[str, InputState],
    verdicts: dict[str, Verdict],
    kept: Mapping[str, InputState],
) -> dict[str, InputState]:
    """The inputs as their reader sees them, with its tolerance of lag."""

    def view(name: str) -> Record | None:
        verdict, recorded = verdicts.get(name), situation.recorded.get(name)
        stands = verdict is not None and not verdict.runs
        return recorded if stands and recorded and recorded.materialized == "view" else None

    return as_consumed(
        states,
        kept,
        view,
        lambda name: _states(situation, verdicts, [name]).get(name),
        situation.constants,
    )


def _explain(
    situation: Situation, name: str, moved: list[Moved], verdicts: dict[str, Verdict]
) -> tuple[str, Cause | None]:
    """The reason that says most: sources first, then upstream models."""
    for reason in ("source_changed", "schema_changed", "source_unknown"):
        for item in moved:
            if item.reason == reason:
                return reason, Cause(item.name, reason)
    first = moved[0].name
    verdict = verdicts.get(first)
    if verdict is None:
        return "upstream_changed", Cause(first, "upstream_changed")
    if verdict.cause is not None:
        return "upstream_changed", verdict.cause
    if verdict.runs:
        return "upstream_changed", Cause(first, verdict.reason)
    return "upstream_changed", _behind(situation, name, first, verdicts)


def _replaced(situation: Situation, parent: str, record: Record | None) -> bool:
    """Does an input that is about to run stand elsewhere than when the reader was made?"""
    before = record.consumed().get(parent) if record is not None else None
    return bool(before and before.place and before.place != situation.expected[parent].place)


def _behind(situation: Situation, name: str, parent: str, verdicts: dict[str, Verdict]) -> Cause:
    """What moved behind a view that itself stays as it is."""
    through = situation.recorded[name].through
    for leaf, state in leaves(situation, parent, verdicts).items():
        if through.get(leaf, state.data) != state.data or state.data == UNKNOWN:
            if state.data == UNKNOWN:
                return Cause(leaf, "source_unknown")
            moved = "source_changed" if leaf in situation.sources else "upstream_changed"
            return Cause(leaf, moved)
    return Cause(parent, "upstream_changed")


def leaves(
    situation: Situation, name: str, verdicts: Mapping[str, Verdict]
) -> dict[str, InputState]:
    """The tables that a view reads, itself or through other views, as far as they are known."""
    record = situation.recorded.get(name)
    if record is None or record.materialized != "view":
        verdict = verdicts.get(name)
        state = situation.sources.get(name) if verdict is None else verdict.state
        return {} if state is None else {name: state}
    out: dict[str, InputState] = {}
    for item in record.inputs:
        out |= leaves(situation, item.name, verdicts)
    return out


def _columns_moved(record: Record | None, states: dict[str, InputState]) -> bool:
    if record is None:
        return True
    consumed = record.consumed()
    return any(
        name not in consumed or consumed[name].schema != state.schema
        for name, state in states.items()
    )


def _waits(waiting: list[str], verdicts: dict[str, Verdict]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(w for parent in waiting for w in verdicts[parent].waits))


def _states(
    situation: Situation, verdicts: dict[str, Verdict], names: Iterable[str]
) -> dict[str, InputState]:
    """The inputs whose state is known."""
    out: dict[str, InputState] = {}
    for name in names:
        verdict = verdicts.get(name)
        state = situation.sources.get(name) if verdict is None else verdict.state
        if state is not None:
            out[name] = state
    return out


def _view_state(
    situation: Situation, name: str, states: dict[str, InputState]
) -> InputState | None:
    """What readers will see through a view that is about to be (re)created."""
    expected = situation.expected[name]
    if len(states) < len(expected.inputs):
        return None
    local = definition_local(expected, situation.recorded.get(name))
    constants = bound(expected, situation.constants)
    return view_state(local, states, constants, expected.version, expected.place)


def _standing(situation: Situation, name: str, verdicts: dict[str, Verdict]) -> InputState | None:
    """A relation that stays as it is, seen by its readers."""
    record, place = situation.recorded.get(name), situation.expected[name].place
    if record is None:
        return None
    if record.materialized != "view":
        return InputState(record.data, record.schema, record.version, place)
    states = _states(situation, verdicts, (item.name for item in record.inputs))
    if len(states) < len(record.inputs):
        return None
    constants = {key: situation.constants[key] for key in record.constants}
    return view_state(record.local, states, constants, record.version, place)


def _outside(
    situation: Situation,
    name: str,
    verdicts: dict[str, Verdict],
    waiting: list[str],
    stale_above: frozenset[str],
) -> Verdict:
    """A node outside the selection: read as it stands.

    Where someone else wrote it there is no state to compare with, so it gives readers no reason.
    """
    record = situation.recorded.get(name)
    state = None
    if as_recorded(situation, name):
        state = _standing(situation, name, verdicts)
    through = record is not None and record.materialized == "view" and state is None
    waits = _waits(waiting, verdicts) if through else ()
    return Verdict(False, "no_change", state=state, waits=waits, stale_above=stale_above)
