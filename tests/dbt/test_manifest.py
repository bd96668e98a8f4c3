"""Manifests of dbt: the versions that are read, and what is said of the others."""

from __future__ import annotations

import json

import pytest
from dbt_manifests import VERSIONS, nodes_of, recorded

from sqb.dbt.manifest import decode_manifest
from sqb.errors import SqbError


@pytest.mark.parametrize("version", VERSIONS)
def test_every_recorded_version_is_read(version: str) -> None:
    nodes = nodes_of(version=version)
    assert {node.type for node in nodes.values()} == {
        *("model", "seed", "snapshot", "test", "unit_test", "source")
    }
    assert "model.little.off" not in nodes
    assert not any(name.startswith(("analysis.", "exposure.")) for name in nodes)


def test_relations_are_those_that_dbt_makes() -> None:
    nodes = nodes_of()
    assert {name: node.relation for name, node in nodes.items() if node.relation} == {
        "model.little.by_country": ("little", "by_country"),
        "model.little.dim_customers.v1": ("little", "dim_customers_v1"),
        "model.little.dim_customers.v2": ("little", "dim_customers_v2"),
        "model.little.fct_orders": ("little", "fct_orders"),
        "model.little.stg_customers": ("little", "stg_customers"),
        "model.little.stg_orders": ("little", "stg_orders"),
        "model.little_pkg.pkg_days": ("little", "pkg_days"),
        "seed.little.countries": ("little", "countries"),
        "snapshot.little.customers_snap": ("little", "customers_snap"),
        "source.little.raw.customers": ("raw", "customers_v1"),
        "source.little.raw.orders": ("raw", "orders"),
    }


def test_parents_are_seen_through_ephemeral_models() -> None:
    fact = nodes_of()["model.little.fct_orders"]
    assert fact.reads[0] == "model.little.paid_orders"
    assert fact.parents == (
        "model.little.stg_orders",
        "model.little.stg_customers",
        "seed.little.countries",
    )


def test_tests_know_what_they_check_and_how_much_they_matter() -> None:
    tests = {n.name: n for n in nodes_of().values() if n.type in {"test", "unit_test"}}
    assert {name: (node.attached, node.severity) for name, node in tests.items()} == {
        "no_negative": ("model.little.fct_orders", "error"),
        "not_null_fct_orders_id": ("model.little.fct_orders", "error"),
        "unique_fct_orders_id": ("model.little.fct_orders", "error"),
        "relationships_fct_orders_country__code__ref_countries_": (
            "model.little.fct_orders",
            "warn",
        ),
        "few_by_country": ("model.little.by_country", "error"),
    }


def test_sources_keep_how_their_age_is_told() -> None:
    nodes = nodes_of()
    orders = nodes["source.little.raw.orders"].freshness
    assert orders is not None
    assert (orders.loaded_at_field, orders.error_after) == ("loaded_at", (2, "day"))
    assert nodes["source.little.raw.customers"].freshness is None


def test_parents_come_first() -> None:
    seen: set[str] = set()
    for node in nodes_of().values():
        assert set(node.reads) <= seen
        seen.add(node.unique_id)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("https://schemas.getdbt.com/dbt/manifest/v11.json", "version 11"),
        ("https://schemas.getdbt.com/dbt/manifest/v20.json", "version 20"),
        ("something else", "`something else`"),
    ],
)
def test_another_schema_version_is_refused_by_its_number(schema: str, words: str) -> None:
    manifest = recorded()
    manifest["metadata"]["dbt_schema_version"] = schema
    # another version may have another form
    for form in (manifest, {**manifest, "nodes": []}):
        with pytest.raises(SqbError, match=words) as caught:
            decode_manifest(json.dumps(form).encode())
        assert caught.value.code == "B005"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"metadata": {}}', b"\xff"])
def test_what_is_no_manifest_is_refused(content: bytes) -> None:
    with pytest.raises(SqbError) as caught:
        decode_manifest(content)
    assert caught.value.code == "B005"


def test_a_fixture_may_hold_what_only_python_calls_json() -> None:
    manifest = recorded()
    test = manifest["unit_tests"]["unit_test.little.by_country.few_by_country"]
    test["given"][0]["rows"][0]["amount"] = float("nan")
    assert b"NaN" in (content := json.dumps(manifest).encode())
    assert decode_manifest(content).unit_tests
