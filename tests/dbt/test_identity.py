"""What makes a dbt node another: every change that dbt's checksum misses is seen and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dbt_manifests import VARS, VERSIONS, nodes_of

from sqb.dbt.changes import changes
from sqb.dbt.identity import large_seeds
from sqb.dbt.manifest import Manifest, decode_manifest
from sqb.dbt.nodes import DbtNode

STG = "model.little.stg_orders"
CUSTOMERS = "model.little.stg_customers"
EPHEMERAL = "model.little.paid_orders"
FACT = "model.little.fct_orders"
DAYS = "model.little_pkg.pkg_days"
COUNTRY = "model.little.by_country"
SEED = "seed.little.countries"

Edit = Callable[[dict[str, Any]], object]


def macro(name: str, text: str) -> Edit:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["macros"][name]["macro_sql"] += text

    return edit


def node(name: str, **fields: Any) -> Edit:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["nodes"][name].update(fields)

    return edit


def config(name: str, **keys: Any) -> Edit:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["nodes"][name]["config"].update(keys)

    return edit


def source(name: str, **fields: Any) -> Edit:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["sources"][name].update(fields)

    return edit


def moved(edit: Edit | None, **around: Any) -> dict[str, tuple[DbtNode, DbtNode]]:
    """The built nodes whose own identity differs after an edit."""
    before, after = nodes_of(), nodes_of(edit, **around)
    return {
        name: (before[name], after[name])
        for name in before
        if before[name].type in {"model", "seed", "snapshot"}
        and before[name].hashes.full != after[name].hashes.full
    }


def causes(pair: tuple[DbtNode, DbtNode]) -> list[str]:
    return [f"{c.kind} {c.name}" for c in changes(pair[0].hashes.parts, pair[1].hashes.parts)]


OTHER_DATE = {"vars": {**VARS, "little": {**VARS["little"], "start_date": '"2026-02-01"'}}}
OTHER_RATE = {"vars": {**VARS, "little_pkg": {**VARS["little_pkg"], "rate": "3"}}}

#: Changes that leave every checksum as it was: what differs itself, and the cause that is told.
MISSED: list[tuple[str, Edit | None, dict[str, Any], dict[str, list[str]]]] = [
    (
        "a macro two levels down",
        macro("macro.little.divided", " {# x #}"),
        {},
        {STG: ["macro divided"]},
    ),
    ("a variable in dbt_project.yml or --vars", None, OTHER_DATE, {STG: ["var start_date"]}),
    ("a variable in the macro of a package", None, OTHER_RATE, {DAYS: ["var rate"]}),
    (
        "a variable of the environment in a body",
        None,
        {"env": {"LITTLE_LABEL": "x"}},
        {CUSTOMERS: ["env LITTLE_LABEL"]},
    ),
    (
        "a variable of the environment that is set to nothing",
        None,
        {"env": {"LITTLE_LABEL": ""}},
        {CUSTOMERS: ["env LITTLE_LABEL"]},
    ),
    (
        "a source's schema",
        source("source.little.raw.orders", schema="raw2", relation_name="raw2.orders"),
        {},
        {STG: ["source raw.orders"]},
    ),
    (
        "a source's identifier",
        source("source.little.raw.orders", identifier="o2", relation_name="raw.o2"),
        {},
        {STG: ["source raw.orders"]},
    ),
    (
        "a local package's macro",
        macro("macro.little_pkg.scaled", " "),
        {},
        {DAYS: ["macro little_pkg.scaled"]},
    ),
    (
        "another alias",
        node(CUSTOMERS, alias="people", relation_name="little.people"),
        {},
        {
            CUSTOMERS: ["config relation"],
            FACT: ["ref stg_customers"],
            "model.little.dim_customers.v1": ["ref stg_customers"],
            "model.little.dim_customers.v2": ["ref stg_customers"],
            "snapshot.little.customers_snap": ["ref stg_customers"],
        },
    ),
    (
        "table properties in YAML",
        config(COUNTRY, tblproperties={"write.format.default": "orc"}),
        {},
        {COUNTRY: ["config tblproperties"]},
    ),
    (
        "another materialization",
        config(CUSTOMERS, materialized="table"),
        {},
        {CUSTOMERS: ["config materialized", "macro spark__create_table_as"]},
    ),
    (
        "a contract's column",
        lambda m: m["nodes"][COUNTRY]["columns"]["n"].update(data_type="int"),
        {},
        {COUNTRY: ["config contract"]},
    ),
    (
        "a macro that replaces one of the materialization's",
        macro("macro.little.spark__create_table_as", " "),
        {},
        {
            name: ["macro spark__create_table_as"]
            for name in (
                *(DAYS, FACT, COUNTRY, "model.little.dim_customers.v1"),
                *("model.little.dim_customers.v2", "snapshot.little.customers_snap"),
            )
        },
    ),
    (
        "a macro of dbt that the text calls",
        macro("macro.dbt.is_incremental", " "),
        {},
        {FACT: ["macro dbt"]},
    ),
    (
        "a hook",
        config(COUNTRY, **{"post-hook": [{"sql": "analyze table {{ this }}", "index": None}]}),
        {},
        {COUNTRY: ["config post-hook"]},
    ),
    (
        "permissions, which only a run of the model changes",
        config(COUNTRY, grants={"select": ["someone"]}),
        {},
        {COUNTRY: ["config grants"]},
    ),
    (
        "how a seed is loaded",
        config(SEED, column_types={"code": "string"}),
        {},
        {SEED: ["config column_types"]},
    ),
]


@pytest.mark.parametrize(
    ("edit", "around", "expected"), [case[1:] for case in MISSED], ids=[case[0] for case in MISSED]
)
def test_what_a_checksum_misses_is_seen_and_named(
    edit: Edit | None, around: dict[str, Any], expected: dict[str, list[str]]
) -> None:
    found = moved(edit, **around)
    assert {name: causes(pair) for name, pair in found.items()} == expected
    assert all(b.hashes.checksum == a.hashes.checksum for b, a in found.values())


#: Changes that are none: words for people, order, and what a new version of dbt adds.
FREE: list[tuple[str, Edit]] = [
    ("description", node(FACT, description="other words")),
    ("tags", lambda m: (node(FACT, tags=["a"])(m), config(FACT, tags=["a"])(m))),
    ("meta", config(FACT, meta={"owner": "someone"})),
    ("docs", config(FACT, docs={"show": False})),
    ("group and access", config(FACT, group="finance", access="private")),
    (
        "a description of a column",
        lambda m: m["nodes"][COUNTRY]["columns"]["n"].update(description="how many"),
    ),
    ("a macro that nothing calls", macro("macro.little.unused", " ")),
    ("a macro whose effect is in names", macro("macro.little.generate_alias_name", " ")),
    ("a new key without a value", config(FACT, something_new=None, other_new={"a": None})),
    ("age limits of a source", source("source.little.raw.orders", freshness=None)),
    ("another version of dbt", lambda m: m["metadata"].update(dbt_version="1.11.99")),
    ("a test's severity", config("test.little.no_negative", severity="warn")),
]


@pytest.mark.parametrize("edit", [case[1] for case in FREE], ids=[case[0] for case in FREE])
def test_what_can_not_matter_changes_no_identity(edit: Edit) -> None:
    assert moved(edit) == {}


def test_an_upgrade_of_dbt_makes_nothing_stale() -> None:
    older, newer = (nodes_of(version=version) for version in VERSIONS)
    assert {n: h.hashes.full for n, h in older.items()} == {
        n: h.hashes.full for n, h in newer.items()
    }


def test_tags_count_where_code_reads_them() -> None:
    reading = macro("macro.little.divided", "{{ model.tags }}")

    def both(manifest: dict[str, Any]) -> None:
        reading(manifest)
        config(STG, tags=["pii"])(manifest)

    before, after = nodes_of(reading), nodes_of(both)
    pair = before[STG], after[STG]
    assert causes(pair) == ["config tags"]


@pytest.mark.parametrize(
    "body",
    [
        "{% if is_incremental() %}{{ unused('x') }}{% endif %}",
        "{% if execute %}{{ little.unused('x') }}{% endif %}",
    ],
)
def test_macros_that_dbt_did_not_meet_while_parsing_count(body: str) -> None:
    edit = node(COUNTRY, raw_code=body)

    def both(manifest: dict[str, Any]) -> None:
        edit(manifest)
        macro("macro.little.unused", " ")(manifest)

    assert causes((nodes_of(edit)[COUNTRY], nodes_of(both)[COUNTRY])) == ["macro unused"]


def test_macros_and_variables_of_hooks_count() -> None:
    hook = [{"sql": "{{ unused(var('start_date')) }}", "transaction": True, "index": None}]
    edit = config(COUNTRY, **{"pre-hook": hook})
    parts = nodes_of(edit)[COUNTRY].hashes.parts
    assert {"macro:unused", "var:start_date", "config:pre-hook"} <= set(parts)


def test_a_computed_name_reads_every_variable() -> None:
    edit = node(COUNTRY, raw_code="select {{ var(which) }}, '{{ env_var(which) }}'")
    parts = nodes_of(edit, env={"A": "1", "B": "2"})[COUNTRY].hashes.parts
    assert {"var:start_date", "var:rate", "env:A", "env:B"} <= set(parts)


def test_fields_of_the_target_count_where_they_are_read() -> None:
    edit = node(COUNTRY, raw_code="select '{{ target.name }}'")
    one, other = (
        nodes_of(edit, target={"name": name, "schema": schema})
        for name, schema in (("dev", "a"), ("prod", "b"))
    )
    assert causes((one[COUNTRY], other[COUNTRY])) == ["config target.name"]
    assert one[STG] == other[STG]


# Ephemeral models


def test_readers_of_an_ephemeral_model_carry_its_identity() -> None:
    found = moved(node(EPHEMERAL, checksum={"name": "sha256", "checksum": "ab"}))
    assert set(found) == {EPHEMERAL, FACT}
    assert causes(found[FACT]) == ["ref paid_orders"]
    before, after = found[FACT]
    assert before.hashes.checksum == after.hashes.checksum
    assert before.hashes.inlined != after.hashes.inlined


def test_what_an_ephemeral_model_reads_is_not_its_readers_own_change() -> None:
    found = moved(node(STG, checksum={"name": "sha256", "checksum": "ab"}))
    assert set(found) == {STG}


# Versions


def test_versions_carry_a_change_to_everything_below() -> None:
    before = nodes_of()
    after = nodes_of(macro("macro.little.divided", " "))
    differing = {
        name for name in before if before[name].hashes.versions[2] != after[name].hashes.versions[2]
    }
    assert differing == {STG, EPHEMERAL, FACT, COUNTRY}
    assert [n for n in before if before[n].hashes.versions[0] != after[n].hashes.versions[0]] == []


def test_a_formatted_text_is_the_same_when_normalised() -> None:
    before = nodes_of()
    text = before[STG]
    assert text.hashes.body

    def reformat(manifest: dict[str, Any]) -> None:
        raw = manifest["nodes"][STG]["raw_code"]
        tidy = raw.replace(" -- in units", "").replace("select id, ", "select\n  id,\n  ")
        assert tidy != raw
        node(STG, raw_code=tidy, checksum={"name": "sha256", "checksum": "ab"})(manifest)

    after = nodes_of(reformat)
    assert before[STG].hashes.full != after[STG].hashes.full
    assert before[STG].hashes.normalised == after[STG].hashes.normalised
    for below in (STG, FACT, COUNTRY):
        assert before[below].hashes.versions[1] == after[below].hashes.versions[1]
        assert before[below].hashes.versions[2] != after[below].hashes.versions[2]


def test_normalising_is_not_done_again_for_a_known_text() -> None:
    before = nodes_of()
    assert nodes_of(before=before) == before


# Seeds and tests


def _decoded(edit: Edit) -> Manifest:
    import json

    from dbt_manifests import recorded

    manifest = recorded()
    edit(manifest)
    return decode_manifest(json.dumps(manifest).encode())


def test_large_seeds_are_known_by_the_content_of_their_file() -> None:
    large = node(SEED, checksum={"name": "path", "checksum": "seeds/countries.csv"})
    assert large_seeds(_decoded(large)) == {SEED: ("/projects/little", "seeds/countries.csv")}
    one, other = (nodes_of(large, files={SEED: sha}) for sha in ("aa", "bb"))
    assert (one[SEED].hashes.checksum, other[SEED].hashes.checksum) == ("aa", "bb")
    assert one[SEED].hashes.full != other[SEED].hashes.full
    assert one[FACT].hashes.versions != other[FACT].hashes.versions


def test_generic_tests_are_told_apart_by_what_they_are_called_with() -> None:
    name = "test.little.relationships_fct_orders_country__code__ref_countries_.3f8548c59d"

    def edit(manifest: dict[str, Any]) -> None:
        manifest["nodes"][name]["test_metadata"]["kwargs"]["field"] = "name"

    before, after = nodes_of(), nodes_of(edit)
    assert before[name].hashes.full != after[name].hashes.full
    assert before[name].hashes.checksum not in {"", after[name].hashes.checksum}


@pytest.mark.parametrize("key", ["given", "expect"])
def test_unit_tests_are_their_rows(key: str) -> None:
    name = "unit_test.little.by_country.few_by_country"

    def edit(manifest: dict[str, Any]) -> None:
        manifest["unit_tests"][name][key] = []

    assert nodes_of()[name].hashes.full != nodes_of(edit)[name].hashes.full
