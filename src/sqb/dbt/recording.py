"""What a run of dbt leaves behind, as records: who each node was, and what it was made from.

Pure. A node is recorded with the sources as they were seen before dbt ran: a source that moved
meanwhile is then found moved, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import msgspec

from sqb.dbt.expect import graph_of, is_planned
from sqb.dbt.nodes import DbtNode
from sqb.dbt.owed import ground, proof
from sqb.freshness.sighting import Sighting
from sqb.hashing import digest
from sqb.identity.data_id import InputState, source_data, view_state
from sqb.lake.metadata import TableFacts
from sqb.state.record import Consumed, Record
from sqb.state.tables import DBT, Fingerprint, Observation

_SCHEME = "dbt/1"


class Run(msgspec.Struct, frozen=True):
    """One run: its id, its instant in microseconds since the epoch, for whom it built."""

    id: str
    ts: int
    owner: str = ""


def records_of_built(
    nodes: Mapping[str, DbtNode],
    succeeded: Collection[str],
    rows: Mapping[str, Record],
    relations: Mapping[str, TableFacts],
    sources: Mapping[str, InputState],
    run: Run,
) -> dict[str, Record]:
    """A record of each node that dbt built.

    ``nodes`` are all, parents first; ``rows`` the records from before, ``relations`` what stands
    now, ``sources`` as the plan saw them.
    """
    known = dict(rows)
    out: dict[str, Record] = {}
    seen = _Seen(nodes, known, sources)
    for name, node in nodes.items():
        if name not in succeeded or not is_planned(node):
            continue
        facts = relations.get(name)
        if facts is None and node.relation is not None:
            # dropped by someone at once: without a record it is built again
            continue
        known[name] = out[name] = _built(node, facts, seen, run)
    return out


def records_of_tests(
    nodes: Mapping[str, DbtNode],
    outcomes: Mapping[str, str],
    rows: Mapping[str, Record],
    relations: Mapping[str, TableFacts],
    sources: Mapping[str, InputState],
    run: Run,
) -> dict[str, Record]:
    """A record of each test that ran, with its outcome; ``rows`` are those after the run."""
    on = ground(rows, relations, sources)
    out: dict[str, Record] = {}
    for name, outcome in outcomes.items():
        node = nodes[name]
        out[name] = _record(node, run, data=proof(node, on) or "", outcome=outcome)
    return out


def fingerprints(
    records: Mapping[str, Record], nodes: Mapping[str, DbtNode], database: str, home: str
) -> list[Fingerprint]:
    """Rows for the state table in the schema ``home``, whatever schema each node builds in."""
    return [
        Fingerprint(
            record,
            database,
            nodes[name].schema or home,
            nodes[name].alias or nodes[name].name,
            "",
            home,
        )
        for name, record in sorted(records.items())
    ]


def observations(
    nodes: Mapping[str, DbtNode],
    made: Mapping[str, Record],
    unfinished: Collection[str],
    rows: Mapping[str, Record],
    sightings: Mapping[str, Sighting],
    database: str,
    run: Run,
) -> list[Observation]:
    """Sources that moved and below which all that was planned succeeded.

    ``made`` are the new records, ``rows`` those from before; ``unfinished`` is what was planned
    and did not succeed, blocked or failed: the next plan must see the change.
    """
    graph = graph_of(nodes)
    held = graph.ancestors(n for n in unfinished if n in graph.parents)
    moved: set[str] = set()
    for name, record in made.items():
        before = rows.get(name)
        was = before.read() if before is not None else {}
        moved.update(n for n, data in record.read().items() if was.get(n) != data)
    out: list[Observation] = []
    for name in sorted(moved - held):
        sighting = sightings.get(name)
        if sighting is None or sighting.value is None:
            continue
        node, value = nodes[name], sighting.value
        mark = digest(name, sighting.strategy, sighting.kind, value)
        out.append(
            Observation(
                name,
                database,
                node.schema,
                node.alias,
                run.id,
                value,
                mark,
                run.ts,
                sighting.strategy,
                sighting.kind,
            )
        )
    return out


class _Seen:
    """What readers find in each node: views are seen through, as the planning core does."""

    def __init__(
        self,
        nodes: Mapping[str, DbtNode],
        known: Mapping[str, Record],
        sources: Mapping[str, InputState],
    ) -> None:
        self.nodes, self.known, self.sources = nodes, known, sources
        # asked of a node only when all above it are done, so an answer stands
        self._states: dict[str, InputState | None] = {}

    def states(self, names: Iterable[str]) -> dict[str, InputState]:
        """Those of the names whose state is known."""
        found = ((name, self._state(name)) for name in names)
        return {name: state for name, state in found if state is not None}

    def through(self, names: Iterable[str]) -> dict[str, str]:
        """The data ids of the tables that are read through views among the names."""
        out: dict[str, str] = {}
        pending = [name for name in names if self._is_view(name)]
        met = set(pending)
        while pending:
            for item in self.known[pending.pop()].inputs:
                if item.name in met:
                    continue
                met.add(item.name)
                if self._is_view(item.name):
                    pending.append(item.name)
                elif (state := self._state(item.name)) is not None:
                    out[item.name] = state.data
        return out

    def _is_view(self, name: str) -> bool:
        record = self.known.get(name)
        return record is not None and record.materialized == "view"

    def _state(self, name: str) -> InputState | None:
        if name not in self._states:
            self._states[name] = self._look(name)
        return self._states[name]

    def _look(self, name: str) -> InputState | None:
        if name in self.sources:
            return self.sources[name]
        record = self.known.get(name)
        node = self.nodes.get(name)
        if record is None or node is None:
            return None
        place = place_of(node)
        if record.materialized != "view":
            return InputState(record.data, record.schema, record.version, place)
        inputs = self.states(item.name for item in record.inputs)
        if len(inputs) < len(record.inputs):
            return None
        return view_state(record.local, inputs, {}, record.version, place)


def place_of(node: DbtNode) -> str:
    """Where its relation stands: ``schema.name``."""
    return ".".join(node.relation or ("", ""))


def _built(node: DbtNode, facts: TableFacts | None, seen: _Seen, run: Run) -> Record:
    states = seen.states(node.parents)
    version = node.hashes.versions[-1]
    if facts is not None and facts.kind == "view":
        data = view_state(node.hashes.full, states, {}, version, place_of(node)).data
    elif facts is not None and facts.uuid:
        data = source_data(facts.uuid, facts.shape, facts.data_snapshot_id)
    else:
        # nothing tells its rows from others but the run that made them
        data = f"r:{run.id}"
    return _record(
        node,
        run,
        data=data,
        facts=facts,
        inputs=tuple(Consumed(n, s.data, s.schema, s.version, s.place) for n, s in states.items()),
        through=seen.through(node.parents),
    )


def _record(
    node: DbtNode,
    run: Run,
    *,
    data: str,
    facts: TableFacts | None = None,
    inputs: tuple[Consumed, ...] = (),
    through: dict[str, str] | None = None,
    outcome: str = "",
) -> Record:
    hashes = node.hashes
    return Record(
        node=node.unique_id,
        type=DBT,
        # what stands decides how readers see it, not what it was asked to be
        materialized="view" if facts is not None and facts.kind == "view" else node.materialized,
        scheme=_SCHEME,
        query=hashes.checksum,
        config="",
        local=hashes.full,
        version=hashes.versions[-1] or hashes.full,
        data=data,
        schema=facts.shape if facts is not None else "",
        table=facts.shape if facts is not None else "",
        uuid=facts.uuid if facts is not None else "",
        snapshot=facts.data_snapshot_id if facts is not None else None,
        run=run.id,
        ts=run.ts,
        inputs=inputs,
        rows=facts.total_records if facts is not None else None,
        through=through or {},
        owner=run.owner,
        # of a test, query and local say all
        hashes=None if outcome else hashes,
        outcome=outcome,
    )
