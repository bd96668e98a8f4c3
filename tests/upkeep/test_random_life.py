"""Random lives of a lake: whatever happens in whatever order, nothing that is needed is lost.

Builds, pins, aliases, tags, clones, automatic expiry and the janitor take turns, one after the
other or from several threads at once. A model of the lake remembers which rows every needed
snapshot holds; they are read back in full, through pyiceberg.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
from small_lakes import SmallLake, numbers, rows_at

from sqb.lake.catalog import Head
from sqb.lake.io import normalised
from sqb.lake.metadata import read_document, read_facts
from sqb.lake.staging import Lease, stage
from sqb.upkeep import census as census_module
from sqb.upkeep.after_build import tidy
from sqb.upkeep.janitor import Scope, remove, survey

TABLES = ("a", "b")
DAY = 86_400


class Life:
    """One lake, what is known about it, and a user who does random things."""

    def __init__(self, folder: Path, seed: int, grace: str = "1m", age: str = "1h") -> None:
        self.lake = SmallLake(folder, keep_snapshots=2, reader_grace=grace, orphan_age=age)
        self.luck = random.Random(seed)
        self.rows: dict[int, list[int]] = {}
        self.numbers = iter(range(10**9))

    def scope(self, now: float) -> Scope:
        nodes = frozenset(("dev", name) for name in (*TABLES, "reader"))
        return Scope("small/dev", ("dev", "prod"), nodes, frozenset(), now)

    # What a user does

    def build(self) -> None:
        name = self.luck.choice(TABLES)
        self._remember(self.lake.build(name, self._ids(), append=self.luck.random() < 0.4))

    def read(self) -> None:
        """A consumer, in this schema or in another one, records what it read."""
        name = self.luck.choice(TABLES)
        head = self.lake.catalog.head("dev", name)
        if head is not None:
            pins = {name: read_facts(head.location).snapshot_id or 0}
            schema = self.luck.choice(("dev", "prod"))
            self.lake.catalog.ensure_namespace(schema)
            self.lake.build("reader", self._ids(), schema=schema, pins=pins)

    def tag(self) -> None:
        name = self.luck.choice(TABLES)
        if self.lake.catalog.head("dev", name) is not None:
            table = self.lake.ice.load_table(f"dev.{name}")
            current = table.current_snapshot()
            assert current is not None
            label = f"tag{next(self.numbers)}"
            if len(table.metadata.refs) < 4:
                table.manage_snapshots().create_tag(current.snapshot_id, label).commit()

    def clone(self) -> None:
        name = self.luck.choice(TABLES)
        if self.lake.catalog.head("dev", name) is not None:
            new = f"clone{next(self.numbers)}"
            snapshot = self.lake.clone(name, new)
            self.rows[snapshot] = self.lake.read(new, schema="clones")

    def crash(self) -> None:
        """A build dies: its alias stays, without a lease."""
        name = self.luck.choice(TABLES)
        if self.lake.catalog.head("dev", name) is not None:
            staged = stage(self.lake.catalog, "dev", name, f"dead{next(self.numbers)}")
            alias = self.lake.ice.load_table(f"{staged.namespace}.{staged.name}")
            alias.append(numbers(self._ids()))

    def expire(self) -> None:
        heads = self.lake.catalog.heads(["dev"])
        tables = [heads["dev", name] for name in TABLES if ("dev", name) in heads]
        assert tidy(self.lake.upkeep(), tables, ["dev", "prod"], f"x{next(self.numbers)}") == []

    def janitor(self) -> None:
        lake, scope = self.lake.upkeep(), self.scope(census_module.wall_clock() + 400 * DAY)
        remove(lake, scope, survey(lake, scope), f"j{next(self.numbers)}")

    def _ids(self) -> list[int]:
        return [next(self.numbers) for _ in range(self.luck.randint(1, 3))]

    def _remember(self, head: Head | None) -> None:
        if head is not None:
            snapshot = read_facts(head.location).snapshot_id
            self.rows[snapshot or 0] = rows_at(head.location)

    # What must hold

    def check(self) -> None:
        """Every snapshot that something needs is there and can be read in full."""
        needed = self._needed()
        for (namespace, name), head in self.lake.catalog.heads().items():
            document = read_document(head.location)
            for snapshot in document["snapshots"] or []:
                id_ = snapshot["snapshot-id"]
                if namespace == "dev__sqb_stage" and id_ != document["current-snapshot-id"]:
                    continue  # inherited from its target, where it may have been expired
                if name.startswith("_sqlbuild_"):
                    table = self.lake.ice.load_table(f"{namespace}.{name}")
                    table.scan(snapshot_id=id_).to_arrow()
                    continue
                found = rows_at(head.location, id_)
                assert found == self.rows.get(id_, found)
            if (namespace, name) in {("dev", t) for t in TABLES}:
                here = {s["snapshot-id"] for s in document["snapshots"]}
                pinned = needed.get(name, set())
                assert pinned <= here, f"{name} lost {pinned - here}"

    def _needed(self) -> dict[str, set[int]]:
        out: dict[str, set[int]] = {}
        for head in self.lake.catalog.heads().values():
            record = census_module.stamp_of(read_facts(head.location))
            for name, snapshot in (record.pins if record else {}).items():
                out.setdefault(name, set()).add(snapshot)
        return out


@pytest.mark.parametrize("seed", range(2))
def test_a_random_life_loses_nothing_and_stays_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    life = Life(tmp_path, seed)
    moment = [time.time()]
    monkeypatch.setattr(census_module, "wall_clock", lambda: moment[0])
    things = [life.build] * 8 + [life.read] * 2 + [life.tag, life.clone, life.crash]
    things += [life.expire] * 3 + [life.janitor]
    for _ in range(40):
        moment[0] += life.luck.choice((0, 0, 3600, 5 * DAY))
        life.luck.choice(things)()
    life.check()
    # years later, all that is left is what is needed
    moment[0] += 400 * DAY
    for _ in range(3):
        life.janitor()
        moment[0] += DAY
    life.check()
    for name in TABLES:
        document = read_document(life.lake.head(name).location)
        named = {ref["snapshot-id"] for ref in document["refs"].values()}
        needed = named | life._needed().get(name, set())
        here = {s["snapshot-id"] for s in document["snapshots"]}
        assert here <= needed, [s for s in document["snapshots"] if s["snapshot-id"] not in needed]
    reached = _reached(life.lake)
    below = [f for f in life.lake.files() if f.parts[-4] in ("dev", "prod")]
    assert {f for f in below if normalised(str(f)) not in reached} == set()
    life.lake.close()


def test_builds_readers_and_upkeep_at_once_lose_nothing(tmp_path: Path) -> None:
    # seconds stand for hours here; the grace covers what lies between a look and a lease
    seconds = ("2s", "2s")
    lives = Life(tmp_path, 1, *seconds)
    for name in TABLES:
        lives.lake.build(name, [1])
    errors: list[BaseException] = []
    stop = time.monotonic() + 6

    def user(seed: int, *things: str) -> None:
        life = Life(tmp_path, seed, *seconds)
        life.rows = lives.rows
        try:
            while time.monotonic() < stop:
                getattr(life, life.luck.choice(things))()
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            errors.append(error)
        finally:
            life.lake.close()

    def reader() -> None:
        """Reads a table in the way of a build: look, lease, read, a while later."""
        life = Life(tmp_path, 9, *seconds)
        turn = 0
        try:
            while time.monotonic() < stop:
                turn += 1
                head = life.lake.head(TABLES[turn % 2])
                snapshot = read_facts(head.location).snapshot_id
                with Lease(life.lake.catalog, ["prod__sqb_stage"], f"reader{turn}", ttl=7200):
                    time.sleep(0.3)
                    assert rows_at(head.location, snapshot)
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            errors.append(error)
        finally:
            life.lake.close()

    threads = [
        threading.Thread(target=user, args=(11, "build")),
        threading.Thread(target=user, args=(12, "build", "read")),
        threading.Thread(target=user, args=(13, "expire", "expire", "janitor")),
        threading.Thread(target=reader),
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    lives.check()
    time.sleep(2.1)
    for _ in range(2):
        lives.janitor()
    lives.check()
    for name in TABLES:
        needed = lives._needed().get(name, set())
        assert len(lives.lake.snapshots(name)) <= 1 + len(needed)
    lives.lake.close()


def _reached(lake: SmallLake) -> set[str]:
    from sqb.lake.expiry import reached_by

    out: set[str] = set()
    for head in lake.catalog.heads().values():
        out |= reached_by(read_document(head.location), head.location)
    return out
