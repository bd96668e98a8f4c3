"""What a run of dbt leaves in the state table, and what later plans read of it."""

from __future__ import annotations

import msgspec
import pytest
from dbt_worlds import (
    COUNTRY,
    FACT,
    NOT_NULL,
    RAW,
    RAW_CUSTOMERS,
    SEED,
    SNAP,
    STG,
    UNIT,
    DbtWorld,
    text,
)
from records import STAMP

from sqb.dbt.nodes import TESTS
from sqb.dbt.recording import Run, fingerprints, observations, records_of_built
from sqb.identity.hashes import Hashes
from sqb.state.record import decode, encode
from sqb.state.tables import fingerprint_rows, record_of


def built() -> DbtWorld:
    world = DbtWorld()
    world.build()
    return world


@pytest.mark.parametrize("name", [FACT, STG, SEED, SNAP, NOT_NULL, UNIT])
def test_a_row_has_the_checksum_and_the_full_identity(name: str) -> None:
    world = built()
    node = world.nodes[name]
    row = fingerprint_rows(fingerprints({name: world.rows[name]}, world.nodes, "lake", "little"))[0]
    assert (row["node_type"], row["node_name"]) == ("dbt", name)
    assert row["definition_hash"] == node.hashes.checksum
    assert row["version_hash"] == (node.hashes.versions[-1] or node.hashes.full)
    assert record_of(row["metadata_json_b64"]) == world.rows[name]
    kept = None if node.type in TESTS else node.hashes
    assert world.rows[name].hashes == kept


def test_rows_stay_in_the_target_schema_whatever_schema_a_model_builds_in() -> None:
    world = built()
    nodes = {**world.nodes, FACT: msgspec.structs.replace(world.nodes[FACT], schema="marts")}
    found = fingerprints({FACT: world.rows[FACT]}, nodes, "lake", "little")
    assert [(f.home, f.schema, f.relation) for f in found] == [("little", "marts", "fct_orders")]


def test_old_rows_stay_readable_and_new_fields_cost_them_nothing() -> None:
    assert "hashes" not in encode(STAMP)
    assert "outcome" not in encode(STAMP)
    old = decode(encode(STAMP))
    assert old is not None
    assert (old.hashes, old.outcome) == (None, "")
    new = msgspec.structs.replace(STAMP, hashes=Hashes("c", parts={"var:a": "1"}), outcome="pass")
    assert decode(encode(new)) == new


def test_what_was_read_is_recorded_also_behind_views_and_ephemeral_models() -> None:
    record = built().rows[FACT]
    assert [item.name for item in record.inputs] == [STG, "model.little.stg_customers", SEED]
    assert sorted(record.through) == sorted((RAW, RAW_CUSTOMERS))


def test_only_what_succeeded_is_recorded() -> None:
    world = DbtWorld()
    world.build(fails=[FACT])
    assert FACT not in world.rows
    assert COUNTRY not in world.rows
    assert NOT_NULL not in world.rows
    assert STG in world.rows


def test_what_someone_dropped_at_once_is_not_recorded() -> None:
    world = built()
    world.drop(FACT)
    run = Run("r9", 9)
    made = records_of_built(
        world.nodes, {FACT, COUNTRY}, world.rows, world.relations, world.states(), run
    )
    assert list(made) == [COUNTRY]


def observed(world: DbtWorld, made: list[str], unfinished: list[str]) -> list[str]:
    run = Run("r9", 9)
    states = world.states()
    records = records_of_built(world.nodes, made, world.rows, world.relations, states, run)
    found = observations(
        world.nodes, records, unfinished, world.rows, world.sightings(), "lake", run
    )
    assert {(o.strategy, o.value_kind, o.schema) for o in found} <= {("adapter", "snapshot", "raw")}
    return [o.source for o in found]


def test_a_source_is_observed_when_all_below_it_succeeded() -> None:
    world = built().move_source().move_source(RAW_CUSTOMERS)
    assert observed(world, [STG, FACT, COUNTRY], []) == [RAW_CUSTOMERS, RAW]
    assert observed(world, [STG], [FACT, COUNTRY]) == []
    assert observed(world, [STG], []) == [RAW]


def test_a_source_that_did_not_move_is_not_observed_again() -> None:
    world = built().edit(text(STG, " limit 5", "c2"))
    assert observed(world, [STG, FACT, COUNTRY], []) == []
