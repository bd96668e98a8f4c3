"""A small world for planning tests: nodes, what was recorded of them, and ways to move them.

``World`` records a build of everything (as a real build would leave it) and then lets a test move
single facts; ``plan`` decides on the result. No Spark, no files.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from sqb.freshness.sighting import Age, Sighting
from sqb.graph.graph import Graph
from sqb.identity.data_id import UNKNOWN, InputState, source_data, value_data, view_state
from sqb.identity.expected import Expected, compose_version
from sqb.lake.metadata import Column, TableFacts
from sqb.planning.plan import Plan
from sqb.planning.planner import decide
from sqb.planning.situation import Situation
from sqb.state.record import Consumed, Record


@dataclass(frozen=True)
class Node:
    kind: str = "table"
    inputs: tuple[str, ...] = ()
    query: str = "q1"
    config: str = "c1"
    constants: tuple[str, ...] = ()
    described: str = ""
    full_refresh: bool | None = None
    replay: str | None = None


@dataclass(frozen=True)
class Watched:
    """A source that is watched by a value, or one with an age."""

    value: str | None = None
    at: str = "at1"
    kind: str = "timestamp"
    tolerance: int | None = None
    age: Age | None = None


@dataclass
class World:
    nodes: dict[str, Node]
    sources: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    constants: dict[str, str] = field(default_factory=lambda: {"current_date": "2026-01-01"})
    relations: dict[str, TableFacts] = field(default_factory=dict)
    recorded: dict[str, Record] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    places: dict[str, str] = field(default_factory=dict)
    watched: dict[str, Watched] = field(default_factory=dict)

    def built(self, *names: str, data: str = "d1") -> World:
        """Record a build of these nodes (all by default) on what is there now."""
        for name in names or self.graph().order:
            if name in self.nodes:
                self._build(name, data)
        return self

    def edit(self, name: str, **changes: object) -> World:
        self.nodes[name] = replace(self.nodes[name], **changes)
        return self

    def move_source(
        self, name: str, *, snapshot: int | None = None, schema: str | None = None
    ) -> World:
        uuid, old_schema, old_snapshot = self.sources[name]
        self.sources[name] = (uuid, schema or old_schema, snapshot or old_snapshot)
        return self

    def foreign_write(self, name: str) -> World:
        facts = self.relations[name]
        self.relations[name] = msgspec.structs.replace(facts, snapshot_id=99, data_snapshot_id=99)
        return self

    def compacted(self, name: str) -> World:
        self.relations[name] = msgspec.structs.replace(self.relations[name], snapshot_id=98)
        return self

    def dropped(self, name: str) -> World:
        del self.relations[name]
        del self.recorded[name]
        return self

    def replaced(self, name: str) -> World:
        """Dropped, and made again by someone else: no record speaks of it."""
        self.relations[name] = msgspec.structs.replace(self.relations[name], uuid="uuid-foreign")
        del self.recorded[name]
        return self

    def graph(self) -> Graph:
        parents: dict[str, tuple[str, ...]] = {n: node.inputs for n, node in self.nodes.items()}
        parents |= dict.fromkeys(self.sources, ())
        return Graph(parents)

    def expected(self) -> dict[str, Expected]:
        out: dict[str, Expected] = {}
        for name in self.graph().order:
            node = self.nodes.get(name)
            if node is None:
                continue
            local = f"{node.query}/{node.config}"
            upstream = {p: out[p].version for p in node.inputs if p in out}
            out[name] = Expected(
                name=name,
                type="seed" if node.kind == "seed" else "model",
                path=f"models/{name}.sql",
                materialized=node.kind,
                namespace="dev",
                relation=name,
                tags=(),
                inputs=node.inputs,
                query=node.query,
                config=node.config,
                local=local,
                version=compose_version(local, upstream),
                constants=node.constants,
                described=node.described,
                full_refresh=node.full_refresh,
                replay=node.replay,
            )
        return out

    def source_states(self) -> dict[str, InputState]:
        return {
            name: InputState(self._data(name), s, place=self.places.get(name, name))
            for name, (_, s, _) in self.sources.items()
        }

    def _data(self, name: str) -> str:
        uuid, schema, snapshot = self.sources[name]
        watched = self.watched.get(name)
        if watched is None or (watched.value is None and watched.age is not None):
            return source_data(uuid, schema, snapshot)
        if watched.value is None:
            return UNKNOWN
        return value_data("spec", schema, watched.kind, watched.value)

    def sightings(self) -> dict[str, Sighting]:
        states = self.source_states()
        return {
            name: Sighting(
                name,
                "column",
                watched.kind,
                "unknown" if states[name].data == UNKNOWN else "pinned",
                states[name],
                watched.value,
                "its freshness value is NULL" if states[name].data == UNKNOWN else "",
                watched.at if watched.value is not None else "",
                watched.age,
                watched.tolerance,
                watched=True,
            )
            for name, watched in self.watched.items()
        }

    def watch(self, name: str, **changes: object) -> World:
        self.watched[name] = replace(self.watched.get(name, Watched()), **changes)  # type: ignore[arg-type]
        return self

    def plan(
        self, *select: str, force: bool = False, full_refresh: bool = False, **more: Any
    ) -> Plan:
        expected = self.expected()
        situation = Situation(
            target="dev",
            graph=self.graph(),
            expected=expected,
            recorded=self.recorded,
            known=frozenset(self.known),
            relations=self.relations,
            sources=self.source_states(),
            selected=frozenset(select or expected),
            constants=self.constants,
            force=force,
            full_refresh=full_refresh,
            sightings=self.sightings(),
            **more,
        )
        return decide(situation)[0]

    def _state(self, name: str) -> InputState:
        if name in self.sources:
            return self.source_states()[name]
        record = self.recorded[name]
        if record.materialized == "view":
            states = {c.name: self._state(c.name) for c in record.inputs}
            return view_state(record.local, states, record.constants, record.version)
        return InputState(record.data, record.schema, record.version)

    def _build(self, name: str, data: str) -> None:
        node, expected = self.nodes[name], self.expected()[name]
        is_view = node.kind == "view"
        facts = TableFacts(
            kind="view" if is_view else "table",
            uuid=f"uuid-{name}",
            location=f"/lake/{name}",
            snapshot_id=None if is_view else 1,
            data_snapshot_id=None if is_view else 1,
            data_timestamp_ms=0,
            schema_id=0,
            columns=(Column(1, "id", "int", False),),
            snapshot_columns=None,
            partitioning=(),
            sort_order=(),
            format_version=2,
            properties={},
            stamp=None,
            total_records=1,
            shape=f"shape of {node.query}" if is_view else "shape",
        )
        states = {parent: self._state(parent) for parent in node.inputs}
        upstream = {n: s.version for n, s in states.items() if n in self.nodes}
        self.relations[name] = facts
        self.known.add(name)
        self.recorded[name] = Record(
            node=name,
            type=expected.type,
            materialized=node.kind,
            scheme="s",
            query=node.query,
            config=node.config,
            local=expected.local,
            version=compose_version(expected.local, upstream),
            data=f"{data}-{name}",
            schema=f"schema-{name}",
            table=facts.shape,
            uuid=facts.uuid,
            snapshot=facts.snapshot_id,
            run="r1",
            ts=1,
            inputs=tuple(
                Consumed(n, s.data, s.schema, s.version, s.place) for n, s in states.items()
            ),
            constants={c: self.constants[c] for c in node.constants},
            through=self._through(node.inputs),
            seen={
                n: self.watched[n].at
                for n in (*node.inputs, *self._through(node.inputs))
                if n in self.watched and self.watched[n].value is not None
            },
        )

    def _through(self, inputs: tuple[str, ...]) -> dict[str, str]:
        out: dict[str, str] = {}
        for name in inputs:
            if name in self.recorded and self.recorded[name].materialized == "view":
                for item in self.recorded[name].inputs:
                    out |= self._through((item.name,)) or {item.name: self._state(item.name).data}
        return out


def chain() -> World:
    """raw.orders -> stg (view) -> orders (table) -> report (table); a seed beside them."""
    return World(
        nodes={
            "stg": Node("view", ("raw.orders",)),
            "orders": Node("table", ("stg", "rates")),
            "report": Node("table", ("orders",)),
            "other": Node("table", ("raw.other",)),
            "rates": Node("seed"),
        },
        sources={"raw.orders": ("uo", "so", 1), "raw.other": ("ux", "sx", 1)},
    )


def told(plan: Plan) -> dict[str, str]:
    """What the plan does, one word per node that may run: ``reason`` or ``maybe <- names``."""
    out: dict[str, str] = {}
    for node in plan.nodes:
        if node.action == "run":
            out[node.name] = (
                "maybe <- " + ",".join(node.if_changed) if node.if_changed else node.reason
            )
    return out
