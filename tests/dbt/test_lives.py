"""Random lives of a dbt project: whatever happened before, a whole build leaves the right rows.

The rows of a table are what its definition made of its inputs when it was built; a view shows what
they are now. After a build of everything each table must hold what a rebuild would give.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from dbt_worlds import (
    COUNTRY,
    CUSTOMERS,
    DIM_1,
    FACT,
    NOT_NULL,
    RAW,
    RAW_CUSTOMERS,
    SEED,
    SNAP,
    STG,
    UNIQUE,
    DbtWorld,
    config,
    text,
)

from sqb.dbt.expect import graph_of, is_planned
from sqb.dbt.plan import DbtPlan
from sqb.errors import SqbError
from sqb.hashing import digest


class Living(DbtWorld):
    """A world whose tables hold rows."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.rng = random.Random(seed)
        self.rows_of: dict[str, str] = {}
        self.happened: list[str] = []

    def rows_in(self, name: str) -> str:
        """What a reader finds."""
        node = self.nodes[name]
        if node.type == "source":
            found = self.sources[name]
            assert found is not None
            return f"{name} {found.snapshot_id}"
        facts = self.relations.get(name)
        if facts is not None and facts.kind == "view":
            return digest(self.rows_of[name], *(self.rows_in(p) for p in node.parents))
        return self.rows_of.get(name, "nothing")

    def rows_wanted(self, name: str) -> str:
        """What a rebuild of everything would give."""
        node = self.nodes[name]
        if node.type == "source":
            return self.rows_in(name)
        return digest(node.hashes.full, *(self.rows_wanted(p) for p in node.parents))

    def build(self, *select: str, **how: object) -> DbtPlan:  # type: ignore[override]
        before = dict(self.relations)
        plan = super().build(*select, **how)  # type: ignore[arg-type]
        for name in graph_of(self.nodes).order:
            if name not in plan.work or self.rows.get(name) is None:
                continue
            node = self.nodes[name]
            if self.rows[name].run != f"r{self._runs}" or not is_planned(node):
                continue
            if node.materialized == "view":
                self.rows_of[name] = node.hashes.full
            else:
                assert self.relations[name] != before.get(name)
                above = (self.rows_in(p) for p in node.parents)
                self.rows_of[name] = digest(node.hashes.full, *above)
        return plan

    def happen(self) -> None:
        """One thing that people do."""
        rng = self.rng
        some = rng.sample([STG, FACT, COUNTRY, CUSTOMERS, DIM_1, SEED, SNAP], rng.randrange(1, 4))
        one = some[0]
        what = rng.choice(
            ["edit", "config", "source", "write", "drop", "scoped", "scoped", "fail", "test", "run"]
        )
        self.happened.append(f"{what} {some}")
        if what == "edit":
            self.edit(text(one, " ", f"c{rng.randrange(100)}"))
        elif what == "config":
            self.edit(config(one, partition_by=f"p{rng.randrange(100)}"))
        elif what == "source":
            self.move_source(rng.choice([RAW, RAW_CUSTOMERS]))
        elif what == "write" and one in self.relations and self.relations[one].kind == "table":
            self.write(one)
            self.rows_of[one] = "of someone else"
        elif what == "drop" and one in self.relations:
            self.drop(one)
        elif what in ("scoped", "run"):
            with suppress(SqbError):  # an upstream may be missing
                self.build(*some, command="run" if what == "run" else "build")
        elif what == "fail":
            self.build(fails=[one])
        elif what == "test":
            self.build(outcomes={rng.choice([NOT_NULL, UNIQUE]): "fail"})


@pytest.mark.parametrize("seed", range(25))
def test_a_whole_build_brings_everything_up_to_date(seed: int) -> None:
    world = Living(seed)
    world.build()
    for _ in range(8):
        world.happen()
    world.build()
    for name, node in world.nodes.items():
        if is_planned(node):
            assert world.rows_in(name) == world.rows_wanted(name), (name, world.happened)
    assert world.plan().work == (), world.happened
