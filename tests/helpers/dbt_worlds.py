"""A dbt project in a small world: its manifest, what stands in the lake, what was recorded.

``build`` plans and then does what dbt would do with the plan; tests move single facts in between.
No dbt, no Spark, no files but the manifest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from dbt_manifests import nodes_of

from sqb.dbt.decide import Seen, Wish, decide
from sqb.dbt.expect import graph_of, is_planned
from sqb.dbt.nodes import TESTS, DbtNode
from sqb.dbt.plan import DbtPlan
from sqb.dbt.recording import Run, records_of_built, records_of_tests
from sqb.dbt.settings import DbtSettings
from sqb.dbt.watch import sight, watch
from sqb.freshness.sighting import Sighting
from sqb.freshness.values import Answer
from sqb.identity.data_id import InputState
from sqb.lake.metadata import TableFacts
from sqb.state.record import Record, decode, encode

Edit = Callable[[dict[str, Any]], object]

RAW = "source.little.raw.orders"
RAW_CUSTOMERS = "source.little.raw.customers"
SEED = "seed.little.countries"
STG = "model.little.stg_orders"
CUSTOMERS = "model.little.stg_customers"
EPHEMERAL = "model.little.paid_orders"
FACT = "model.little.fct_orders"
COUNTRY = "model.little.by_country"
DAYS = "model.little_pkg.pkg_days"
DIM_1, DIM_2 = "model.little.dim_customers.v1", "model.little.dim_customers.v2"
SNAP = "snapshot.little.customers_snap"
NOT_NULL = "test.little.not_null_fct_orders_id.600c7b2b67"
UNIQUE = "test.little.unique_fct_orders_id.2a20231a0b"
SINGULAR = "test.little.no_negative"
RELATIONSHIP = "test.little.relationships_fct_orders_country__code__ref_countries_.3f8548c59d"
UNIT = "unit_test.little.by_country.few_by_country"

DAY_US = 86_400_000_000
NOW_US = 1_000 * DAY_US
_FIRST = TableFacts("table", "", "", 1, 1, 0, 0, (), None, (), (), 2, {}, None, 1)


def config(name: str, **keys: Any) -> Edit:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["nodes"][name]["config"].update(keys)

    return edit


def text(name: str, addition: str, checksum: str) -> Edit:
    """Another text, as dbt writes it."""

    def edit(manifest: dict[str, Any]) -> None:
        node = manifest["nodes"][name]
        node["raw_code"] = node.get("raw_code", "") + addition
        node["checksum"] = {"name": "sha256", "checksum": checksum}

    return edit


class DbtWorld:
    """The project ``little`` with its lake and its state rows."""

    def __init__(self, **settings: Any) -> None:
        self.settings = DbtSettings(**settings)
        self.edits: list[Edit] = []
        self.around: dict[str, Any] = {}
        self.rows: dict[str, Record] = {}
        self.relations: dict[str, TableFacts] = {}
        self.sources: dict[str, TableFacts | None] = {
            name: facts(uuid=f"uuid of {name}", stamp_ms=NOW_US // 1000)
            for name in (RAW, RAW_CUSTOMERS)
        }
        self.loaded_us: int | None = NOW_US
        self._runs = 0
        self._nodes: dict[str, DbtNode] | None = None

    # What can happen

    def edit(self, *edits: Edit, **around: Any) -> DbtWorld:
        self.edits += edits
        self.around |= around
        self._nodes = None
        return self

    def undo(self) -> DbtWorld:
        self.edits.clear()
        self.around.clear()
        self._nodes = None
        return self

    def identity(self, mode: str) -> DbtWorld:
        self.settings = msgspec.structs.replace(self.settings, identity=mode)
        return self

    def move_source(self, name: str = RAW) -> DbtWorld:
        before = self.sources[name]
        assert before is not None
        self.sources[name] = written(before)
        return self

    def write(self, name: str) -> DbtWorld:
        """Someone else writes into a relation."""
        self.relations[name] = written(self.relations[name])
        return self

    def drop(self, name: str) -> DbtWorld:
        del self.relations[name]
        return self

    # What is there

    @property
    def nodes(self) -> dict[str, DbtNode]:
        if self._nodes is None:

            def edit(manifest: dict[str, Any]) -> None:
                for each in self.edits:
                    each(manifest)

            self._nodes = nodes_of(edit, **self.around)
        return self._nodes

    def sightings(self) -> dict[str, Sighting]:
        loaded = None
        if self.loaded_us is not None:
            from datetime import datetime, timedelta, timezone

            at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=self.loaded_us)
            loaded = Answer(at.isoformat())
        return {
            name: sight(watch(self.nodes[name]), self.sources[name], loaded, NOW_US)
            for name in self.sources
        }

    def states(self) -> dict[str, InputState]:
        return {n: s.state for n, s in self.sightings().items() if s.state is not None}

    # Planning and building

    def plan(self, *select: str, without: Collection[str] = (), **wish: Any) -> DbtPlan:
        """The plan for a selection: nodes with all tests that touch them, or else everything."""
        chosen = [n for n in self.nodes if not select or n in select or self._touches(n, select)]
        seen = Seen("dev", self.nodes, self.rows, self.relations, self.sightings())
        wanted = tuple(n for n in chosen if n not in without)
        return decide(seen, Wish(wanted, **wish), self.settings)

    def build(
        self,
        *select: str,
        fails: Collection[str] = (),
        outcomes: Mapping[str, str] | None = None,
        **wish: Any,
    ) -> DbtPlan:
        """Plan, and do what dbt does: in order, skipping what is below a failure."""
        plan = self.plan(*select, **wish)
        sources = self.states()
        graph = graph_of(self.nodes)
        skipped: set[str] = set()
        ended = {}
        tests = {n.name: self.nodes[n.name] for n in plan.tests if n.action == "run"}
        for name in fails:
            skipped |= graph.descendants([name])
        for name, outcome in (outcomes or {}).items():
            if outcome == "fail":
                parents = self.nodes[name].parents
                below = set.intersection(*(graph.descendants([p]) for p in parents))
                skipped |= below - set(parents)
        for name in plan.work:
            if name not in skipped and is_planned(self.nodes[name]):
                self.relations[name] = self._made(self.nodes[name])
        succeeded = {n for n in plan.work if n not in skipped and is_planned(self.nodes[n])}
        for name, test in tests.items():
            if skipped.isdisjoint(test.parents):
                ended[name] = (outcomes or {}).get(name, "pass")
        self._runs += 1
        run = Run(f"r{self._runs}", self._runs, "little/dev")
        made = records_of_built(self.nodes, succeeded, self.rows, self.relations, sources, run)
        self._keep(made)
        self._keep(records_of_tests(self.nodes, ended, self.rows, self.relations, sources, run))
        return plan

    def _keep(self, records: Mapping[str, Record]) -> None:
        for name, record in records.items():
            found = decode(encode(record))
            assert found is not None
            self.rows[name] = found

    def _touches(self, name: str, select: Collection[str]) -> bool:
        node = self.nodes[name]
        return node.type in TESTS and not set(select).isdisjoint(node.reads)

    def _made(self, node: DbtNode) -> TableFacts:
        before = self.relations.get(node.unique_id)
        if node.materialized == "view":
            return facts(uuid="uuid of a view", kind="view", shape=node.hashes.checksum)
        if before is not None and before.kind == "view":
            raise AssertionError("dbt-spark can't put a table where an Iceberg view stands")
        return written(before) if before is not None else facts(uuid=f"uuid {self._runs}")


def facts(
    *, uuid: str, kind: Any = "table", shape: str = "columns", stamp_ms: int = 0
) -> TableFacts:
    if kind == "view":
        return msgspec.structs.replace(
            _FIRST, kind="view", uuid=uuid, shape=shape, snapshot_id=None, data_snapshot_id=None
        )
    return msgspec.structs.replace(_FIRST, uuid=uuid, shape=shape, data_timestamp_ms=stamp_ms)


def written(before: TableFacts) -> TableFacts:
    number = (before.snapshot_id or 0) + 1
    return msgspec.structs.replace(before, snapshot_id=number, data_snapshot_id=number)


def told(plan: DbtPlan) -> dict[str, str]:
    """What the plan does with each model and seed that is not current: the reason, the cause."""
    out: dict[str, str] = {}
    for node in plan.nodes:
        if node.action == "skip":
            continue
        words = node.reason
        if node.detail is not None:
            words += f" {node.detail['kind']} {node.detail['name']}"
        if node.cause is not None:
            words += f" <- {node.cause.node.rsplit('.', 1)[-1]} {node.cause.reason}"
        out[node.name] = f"BLOCK {words}" if node.action == "block" else words
    return out


def checked(plan: DbtPlan) -> dict[str, str]:
    """What the plan does with each test that is not current."""
    out: dict[str, str] = {}
    for node in plan.tests:
        if node.action == "skip" and node.reason == "no_change":
            continue
        why = f" {node.detail['name']}" if node.detail is not None else ""
        out[node.name] = f"{node.action} {node.reason}{why}"
    return out
