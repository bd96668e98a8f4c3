"""All that planning may know: expected, recorded and observed facts, and the user's wishes."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sqb.freshness.sighting import Sighting
from sqb.graph.graph import Graph
from sqb.identity.data_id import InputState
from sqb.identity.expected import Expected
from sqb.lake.metadata import TableFacts
from sqb.planning.plan import Cause
from sqb.state.record import Record, untouched


class Situation(msgspec.Struct, frozen=True):
    """The facts of one moment.

    ``recorded`` holds the truth about each relation, ``known`` the nodes that any state row names
    (so that a dropped relation is told from one never built), ``relations`` what the catalog shows
    and ``sources`` the tables that others write; a missing one is absent. ``sightings`` tells more
    of each source: how it was observed, its age, why it is missing.

    ``eager``: there is no early cut-off, so what reads a node that runs, runs too, and a view is
    made anew whenever the rows behind it moved. ``overlook_writes``: what others wrote into a
    relation is no reason to run. ``wanted`` nodes run even if nothing moved, ``barred`` ones can't
    run if they have to; both by the reason and who gave it.
    """

    target: str
    graph: Graph
    expected: Mapping[str, Expected]
    recorded: Mapping[str, Record]
    known: frozenset[str]
    relations: Mapping[str, TableFacts]
    sources: Mapping[str, InputState]
    selected: frozenset[str]
    constants: Mapping[str, str]
    force: bool = False
    full_refresh: bool = False
    outdated: frozenset[str] = frozenset()
    sightings: Mapping[str, Sighting] = {}
    eager: bool = False
    overlook_writes: bool = False
    wanted: Mapping[str, Cause] = {}
    barred: Mapping[str, Cause] = {}


def bound(expected: Expected, constants: Mapping[str, str]) -> dict[str, str]:
    """The values of the bound constants that a node uses."""
    return {name: constants[name] for name in expected.constants}


def as_recorded(situation: Situation, name: str) -> bool:
    """Does a relation stand as its record says, as far as that counts?"""
    record, facts = situation.recorded.get(name), situation.relations.get(name)
    if record is None:
        return False
    if facts is None:
        return not situation.expected[name].relation
    return situation.overlook_writes or untouched(record, facts)


def definition_local(expected: Expected, record: Record | None) -> str:
    """The local hash that stands for a node's definition in the data id of a view.

    While the definition is the recorded one it is the recorded hash, whatever scheme made it, so
    that an upgrade of the tokeniser does not move the data of every view.
    """
    if record is not None and record.query == expected.query and record.config == expected.config:
        return record.local
    return expected.local
