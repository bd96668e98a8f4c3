"""One build in progress: what it knows, what it pinned, and what each node really consumed.

Shared by the threads of the scheduler; the little that changes is behind a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from sqb.compile.nodes import Compiled
from sqb.errors import SqbError
from sqb.execution.accounts import Account
from sqb.execution.shared_changes import SharedChanges
from sqb.execution.sources import SourceLook
from sqb.execution.statement import full_name, pinned
from sqb.execution.volume import bytes_behind
from sqb.identity.data_id import UNKNOWN, InputState, source_data, view_state
from sqb.identity.expected import Expected, compose_version, session_conf
from sqb.lake.catalog import Head
from sqb.lake.data_files import Files, files_of
from sqb.lake.facts import FactsCache
from sqb.lake.lake import Lake
from sqb.lake.metadata import Column, TableFacts
from sqb.lake.versions import Snapshot, schemas_of, versions
from sqb.planning.cascade import Verdict
from sqb.planning.plan import Plan
from sqb.planning.situation import Situation, definition_local
from sqb.planning.tolerance import as_consumed, kept_sources
from sqb.project.config import Config
from sqb.refresh.reasons import RULES
from sqb.sql.version import scheme
from sqb.state.record import Consumed, Record, owner_of, remembered

if TYPE_CHECKING:
    from sqb.spark.pool import SessionPool

#: Versions of more files than this are not listed: reading the list would take too long.
_MOST_FILES = 10_000


class Published(msgspec.Struct, frozen=True):
    """A relation as it stands after this run built or confirmed it."""

    head: Head
    facts: TableFacts
    record: Record


class Definition(NamedTuple):
    """What a table's rows follow from, data aside: a hash of all texts, one of what they name."""

    texts: str = ""
    places: str = ""


class Run:
    """A build: its plan's facts, its pins, and what came out so far."""

    def __init__(
        self,
        run_id: str,
        now_us: int,
        config: Config,
        compiled: Compiled,
        situation: Situation,
        verdicts: Mapping[str, Verdict],
        heads: Mapping[tuple[str, str], Head],
        sources: SourceLook,
        catalog: Lake,
        facts: FactsCache,
        environ: Mapping[str, str],
    ) -> None:
        self.id = run_id
        self.now_us = now_us
        self.config = config
        self.compiled = compiled
        self.situation = situation
        self.verdicts = verdicts
        self.heads = heads
        self.sources = sources
        self.catalog = catalog
        self.facts = facts
        self.environ = environ
        self.pool: SessionPool | None = None
        self.stopping = threading.Event()
        self.refresh: str | None = None
        self.shared = SharedChanges(run_id)
        self.work: frozenset[str] = frozenset()
        self.folder: Path | None = None
        self.accounts: dict[str, Account] = {}
        #: What records say of rows that a node's query does not give back.
        self.kept: dict[str, str] = {}
        #: What the tables that are built follow from, data aside.
        self.definitions: dict[str, Definition] = {}
        self._tolerant = {n: s for n, s in situation.sightings.items() if s.tolerance is not None}
        self._published: dict[str, Published] = {}
        self._files: dict[tuple[str, ...], list[Files] | None] = {}
        self._lock = threading.Lock()

    # What is known of a node

    def expected(self, name: str) -> Expected:
        """The node as the project wants it."""
        return self.situation.expected[name]

    def published(self, name: str) -> Published | None:
        """What this run made of a node, if it is done."""
        with self._lock:
            return self._published.get(name)

    def heads_made(self) -> list[Head]:
        """The heads of everything that this run made or confirmed so far."""
        with self._lock:
            return [done.head for done in self._published.values()]

    def publish(self, name: str, result: Published) -> None:
        """Remember what this run made of a node."""
        with self._lock:
            self._published[name] = result
        self.facts.add(result.head.location, result.facts)

    def record(self, name: str) -> Record | None:
        """The newest record of a node."""
        done = self.published(name)
        return done.record if done else self.situation.recorded.get(name)

    def relation(self, name: str) -> TableFacts | None:
        """The facts of a node's or source's relation: this run's result, else the pinned head."""
        done = self.published(name)
        if done is not None:
            return done.facts
        if name in self.situation.expected:
            return self.situation.relations.get(name)
        return self.sources.facts.get(name)

    def state(self, name: str) -> InputState:
        """A node or source as its readers in this run find it."""
        if name in self.situation.sources:
            return self.situation.sources[name]
        if name not in self.situation.expected:
            # read by an older definition alone: nobody looked at it
            return InputState(UNKNOWN, "")
        record, facts = self.record(name), self.relation(name)
        place = self.expected(name).place
        if record is not None and record.materialized == "view":
            states = {item.name: self.state(item.name) for item in record.inputs}
            constants = {key: self.situation.constants[key] for key in record.constants}
            return view_state(record.local, states, constants, record.version, place)
        if facts is None:
            raise AssertionError(f"{name} is read before it was built")
        verdict = self.verdicts[name]
        if record is None or (self.published(name) is None and verdict.state is None):
            # written by someone else: all that is known is its snapshot
            data = source_data(facts.uuid, facts.shape, facts.data_snapshot_id)
            return InputState(data, facts.shape, place=place)
        return InputState(record.data, record.schema, record.version, place)

    def input_states(self, name: str) -> dict[str, InputState]:
        """Every input of a node as it is now."""
        return {parent: self.state(parent) for parent in self.expected(name).inputs}

    def as_consumed(
        self, name: str, states: Mapping[str, InputState]
    ) -> tuple[dict[str, InputState], dict[str, InputState]]:
        """``states`` as a node that stands sees them, and the sources whose lag it tolerates."""
        kept = kept_sources(self.situation.recorded[name], self._tolerant)

        def view(parent: str) -> Record | None:
            record = self.record(parent) if parent in self.situation.expected else None
            return record if record is not None and record.materialized == "view" else None

        return as_consumed(states, kept, view, self.state, self.situation.constants), kept

    @property
    def ansi(self) -> bool:
        """Does a sum that is too large fail, as the standard says, and not become NULL?"""
        return session_conf(self.config.spark.conf)["spark.sql.ansi.enabled"].lower() == "true"

    def refresh_of(self, name: str) -> str:
        """How a model may be refreshed: as this run wishes, else as its header says."""
        options = self.compiled.models[name].settings.options
        if options.get("full_refresh") is True:
            return "full"
        return self.refresh or str(options.get("refresh", "auto"))

    def place(self, name: str) -> str:
        """The full name of a node's relation."""
        expected = self.expected(name)
        return full_name(self.catalog.name, expected.namespace, expected.relation)

    def stands(self, name: str) -> str:
        """Where the rows of a node or source are, for telling that a name means another table."""
        known = self.situation.expected.get(name)
        return known.place if known is not None else self.sources.stands(name)

    def readers(self, name: str, version: int | None) -> int:
        """How many nodes of this run's work read a table, and read this version of it last."""
        records = (self.situation.recorded.get(node) for node in self.work)
        return sum(1 for r in records if r is not None and r.pins.get(name) == version)

    def table(self, name: str) -> str:
        """The full name of a node's or source's table."""
        known = name in self.situation.expected
        return self.place(name) if known else self.sources.table(name)

    def versions(self, name: str) -> dict[int, Snapshot]:
        """The versions that the metadata of a node's or source's table tells of."""
        if name not in self.situation.expected:
            return self.sources.versions(name)
        return versions(self.facts.document(self._location(name)))

    def schemas(self, name: str) -> dict[int, tuple[Column, ...]]:
        """The columns that a node's or source's table has and had, by schema id."""
        if name not in self.situation.expected:
            return self.sources.schemas(name)
        return schemas_of(self.facts.document(self._location(name)))

    def files(self, *versions: Snapshot) -> list[Files] | None:
        """The files of versions of a table; None if they are too many or can't be listed here."""
        key = tuple(version.manifests for version in versions)
        if key not in self._files:
            try:
                self._files[key] = files_of(key, _MOST_FILES) if all(key) else None
            except (OSError, ValueError, SqbError):
                # someone else's may lie where only Spark can read them
                self._files[key] = None
        return self._files[key]

    def _location(self, name: str) -> str:
        """Where the metadata of a node's table is, as this run left or found it."""
        done, expected = self.published(name), self.expected(name)
        head = done.head if done else self.heads[(expected.namespace, expected.relation)]
        return head.location

    def read(self, name: str, travels: bool = False) -> tuple[str, bool]:
        """SQL that reads an input as this run finds it, and whether it is a sub-select."""
        if name not in self.situation.expected:
            return self.read_source(name, travels)
        facts = self.relation(name)
        if travels or facts is None or facts.kind == "view":
            return self.place(name), False
        return pinned(self.place(name), facts)

    def read_source(self, name: str, travels: bool, *, pin: bool = True) -> tuple[str, bool]:
        """SQL that reads a source, and whether it is a sub-select."""
        constants = self.situation.constants if pin else {}
        return self.sources.read(name, travels, pin=pin, constants=constants)

    def input_bytes(self, plan: Plan) -> int | None:
        """How many bytes the work of a plan reads; None if that is not known beforehand."""
        work = [node.name for node in plan.work]
        expected, sources = self.situation.expected, self.compiled.sources
        return bytes_behind(work, expected, sources, self.heads, self.facts, built=True)

    # What is recorded

    def make_record(
        self,
        name: str,
        states: Mapping[str, InputState],
        facts: TableFacts,
        *,
        data: str,
        schema: str,
        rows: int | None,
        keep_local: bool = False,
    ) -> Record:
        """What the node's relation is now and what it was really computed from.

        ``keep_local``: the definition is the recorded one under another scheme, so its old hash
        goes on standing for it.
        """
        expected = self.expected(name)
        before = self.situation.recorded.get(name)
        local = definition_local(expected, before) if keep_local else expected.local
        upstream = {n: s.version for n, s in states.items() if n in self.situation.expected}
        constants = {key: self.situation.constants[key] for key in expected.constants}
        through = self._through(states)
        pins = self._pins([*states, *through])
        # what another query took says nothing of this one
        last = before if before is not None and before.query == expected.query else None
        spent, refreshes = (last.spent, last.refreshes) if last is not None else ((), 0)
        account, definition = self.accounts.get(name), self.definitions.get(name, Definition())
        if account is not None:
            spent = remembered(spent, account.spent(self.id, self._bytes(pins), rows))
            refreshes = 0 if account.way == "full" else refreshes + (account.way != "skip")
        return Record(
            node=name,
            type=expected.type,
            materialized=expected.materialized,
            scheme=scheme(),
            query=expected.query,
            config=expected.config,
            local=local,
            version=compose_version(expected.local, upstream),
            data=data,
            schema=schema,
            table=facts.shape,
            uuid=facts.uuid,
            snapshot=facts.snapshot_id,
            run=self.id,
            ts=self.now_us,
            inputs=tuple(
                Consumed(n, s.data, s.schema, s.version, s.place) for n, s in states.items()
            ),
            constants=constants,
            rows=rows,
            through=through,
            pins=pins,
            empty=self._empty([*states, *through]),
            seen=self._seen([*states, *through]),
            owner=owner_of(self.config),
            clock=dict(self.situation.constants),
            rules=RULES,
            files=self.sources.marks(self.inside([*states, *through])),
            spent=spent,
            refreshes=refreshes,
            kept=self.kept.get(name, ""),
            texts=definition.texts,
            places=definition.places,
        )

    def _bytes(self, names: Iterable[str]) -> int | None:
        """The bytes of these tables; None if one's are not known."""
        found = [facts.total_bytes if (facts := self.relation(n)) else None for n in names]
        known = [size for size in found if size is not None]
        return sum(known) if len(known) == len(found) else None

    def _pins(self, names: Iterable[str]) -> dict[str, int]:
        """The snapshots these tables were read at; a view or an empty table has none."""
        found = {name: self.relation(name) for name in self.inside(names)}
        return {
            name: facts.snapshot_id
            for name, facts in found.items()
            if facts is not None and facts.snapshot_id is not None
        }

    def _empty(self, names: Iterable[str]) -> tuple[str, ...]:
        """Of these tables, those that nothing was written into yet."""
        found = {name: self.relation(name) for name in self.inside(names)}
        return tuple(n for n, f in found.items() if f and f.kind == "table" and not f.snapshot_id)

    def inside(self, names: Iterable[str]) -> Iterable[str]:
        """``names`` and what the expressions among them read."""
        for name in names:
            yield name
            query = self.compiled.expressions.get(name)
            if query is not None:
                yield from self.inside(binding.name for binding in query.bindings)

    def _seen(self, names: Iterable[str]) -> dict[str, str]:
        """Which version gave the value of each source that is watched by one."""
        found = {name: self.situation.sightings.get(name) for name in names}
        return {name: sighting.at for name, sighting in found.items() if sighting and sighting.at}

    def _through(self, inputs: Mapping[str, InputState]) -> dict[str, str]:
        """What is read through the views among ``inputs``, with what it was: tables and views."""
        out: dict[str, str] = {}
        for name in inputs:
            record = self.record(name) if name in self.situation.expected else None
            if record is None or record.materialized != "view":
                continue
            below = {item.name: self.state(item.name) for item in record.inputs}
            out |= {n: s.data for n, s in below.items()}
            out |= self._through(below)
        return out

    def definition(self, name: str) -> str:
        """The text that is stored as a node's definition."""
        model = self.compiled.models.get(name)
        if model is not None:
            return model.definition
        seed = self.compiled.seeds[name]
        return "\n".join(f"{column} {kind}" for column, kind in seed.columns)
