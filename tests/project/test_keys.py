"""The keys of a header and the config that they make."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from sqb.errors import SqbError
from sqb.project.header import split_model
from sqb.project.keys import ALIASES, KEYS, ModelConfig, check_available, model_config
from sqb.project.kind_keys import check_kind

NOTHING: dict[str, Mapping[str, object]] = {}


def config(
    header: str,
    defaults: Mapping[str, object] = NOTHING,
    path_defaults: Mapping[str, Mapping[str, object]] = NOTHING,
    path: str = "models/m.sql",
) -> ModelConfig:
    found = split_model(f"MODEL (\n{header}\n);", path)
    return model_config(found.values, found.lines, path, defaults, path_defaults, path)


def identity(header: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(config(header).identity)
    return found


def test_no_header_is_a_view() -> None:
    found = config("")
    assert found == ModelConfig(
        materialized="view",
        tags=(),
        description=None,
        schema=None,
        alias=None,
        enabled=True,
        partitioned_by=(),
        sorted_by=(),
        table_properties={},
        columns={},
        values={},
        identity="{}",
        layout="{}",
    )


def test_layers_are_defaults_then_the_nearest_folder_then_the_header() -> None:
    defaults = {"materialized": "table", "tags": ["a"], "schema": "d", "alias": "d"}
    folders = {
        "x": {"tags": ["never"]},
        "x/y": {"tags": ["b"], "schema": "p", "alias": "p"},
        "x/yy": {"schema": "other"},
    }
    found = config("tags [c, a], alias h", defaults, folders, "models/x/y/z/m.sql")
    assert found.tags == ("a", "b", "c")
    assert (found.materialized, found.schema, found.alias) == ("table", "p", "h")
    assert config("", defaults, folders, "models/m.sql").tags == ("a",)


@pytest.mark.parametrize(
    ("header", "key", "value"),
    [
        ("materialized table", "materialized", "table"),
        ("unique_key id", "unique_key", ["id"]),
        ("unique_key [a, b]", "unique_key", ["a", "b"]),
        ("group_key [a.b]", "group_key", ["a.b"]),
        ("cursor_start 2024-01-01", "cursor_start", "2024-01-01"),
        ("cursor_inputs (raw_orders ordered_at)", "cursor_inputs", {"raw_orders": "ordered_at"}),
        ("lookback 3d", "lookback", "3d"),
        ("lookback 100", "lookback", 100),
        ("append_from [raw.orders, stg]", "append_from", ["raw.orders", "stg"]),
        ("check_columns [*]", "check_columns", ["*"]),
        ("config (a 1, b [x, f(y)])", "config", {"a": 1, "b": ["x", "f(y)"]}),
        ("placeholders (p 'q')", "placeholders", {"p": "q"}),
        (
            "partitioned_by [DAY(ts), bucket( 16 ,id), truncate(4, s), identity(k), a.b]",
            "partitioned_by",
            ["days(ts)", "bucket(16, id)", "truncate(4, s)", "k", "a.b"],
        ),
        ("partitioned_by days(ts)", "partitioned_by", ["days(ts)"]),
        (
            "sorted_by [a, b asc, c DESC, d ASC NULLS LAST, bucket(4, e) desc nulls first]",
            "sorted_by",
            [
                "a",
                "b",
                "c DESC NULLS LAST",
                "d ASC NULLS LAST",
                "bucket(4, e) DESC NULLS FIRST",
            ],
        ),
        (
            "table_properties ('write.format.default' orc, n 3, f true)",
            "table_properties",
            {"write.format.default": "orc", "n": "3", "f": "true"},
        ),
        ("query_change_backfill bounded-7d", "replay_on_change", "bounded-7d"),
        ("materialized table, run_despite_unchanged 6h", "run_despite_unchanged", "6h"),
        ("row_audit every(20)", "row_audit", "every(20)"),
        ("row_audit sample(0.1%)", "row_audit", "sample(0.1%)"),
        (
            "audits [not_null(id), unique (severity warn)]",
            "audits",
            [
                {"name": "not_null", "args": ["id"]},
                {"name": "unique", "options": {"severity": "warn"}},
            ],
        ),
        (
            'post_hooks [inline_sql("GRANT x"), python("n", channel: "#a")]',
            "post_hooks",
            [
                {"name": "inline_sql", "args": ["GRANT x"]},
                {"name": "python", "args": ["n"], "named": {"channel": "#a"}},
            ],
        ),
        (
            "columns (id (type integer, nullable false), d DECIMAL(4,2), e (description 'x'))",
            "columns",
            {
                "id": {"type": "INT", "nullable": False},
                "d": {"type": "DECIMAL(4,2)"},
                "e": {"description": "x"},
            },
        ),
        ("enabled false", "enabled", False),
        ("description 'it is'", "description", "it is"),
    ],
)
def test_values_are_brought_into_normal_form_and_stay_there(
    header: str, key: str, value: object
) -> None:
    found = config(header).values[key]
    assert found == value
    assert KEYS[key].check(found) == found
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("materialized [a]", "a kind"),
        ("materialized 'my kind'", "a kind"),
        ("unique_key 'a b'", "list of columns"),
        ("unique_key [a, a]", "each once"),
        ("unique_key [id, ID]", "each once"),
        ("incremental_strategy upsert", "append, delete_insert or merge"),
        ("cursor_type date", "timestamp or integer"),
        ("lookback 3w", "a duration"),
        ("partitioned_by [week(ts)]", "transforms"),
        ("partitioned_by [bucket(id)]", "positive number"),
        ("partitioned_by [bucket(0, id)]", "positive number"),
        (f"partitioned_by [bucket({'9' * 5_000}, id)]", "columns or transforms"),
        ("partitioned_by [days(ts), day(ts)]", "each once"),
        ("sorted_by [a DOWN]", "columns or transforms"),
        ("table_properties x", "a map"),
        ("table_properties (a [b])", "a text"),
        ("table_properties ('sqb.stamp' x)", "sqb sets itself"),
        ("table_properties ('format-version' 3)", "stay 2"),
        ("table_properties ('write.merge.mode' 'merge-on-read')", "copy-on-write"),
        ("replay_on_change bounded-x", "forward, full or bounded"),
        ("materialized table, run_despite_unchanged 5s", "always"),
        ("refresh row", "auto, rows or full"),
        ("row_audit sample(200%)", "sample"),
        ("row_audit every(0)", "every"),
        ("audits [not_null(a) (severity fatal)]", "severity error or warn"),
        ("pre_hooks [bash('x')]", "inline_sql"),
        ("pre_hooks [sql(3)]", "one text first"),
        ("columns (id (tpye INT))", "type, nullable"),
        ("columns (id TEXT)", "a Spark SQL type"),
        ("columns [a]", "a map"),
        ("tags [a b]", "list of words"),
        ("description 3", "a text in quotes"),
        ("schema 'a.b'", "a name"),
        ("alias __x", "does not start with"),
        ("enabled yes", "true or false"),
        ("contract strict", "none or enforced"),
    ],
)
def test_a_wrong_value_says_what_is_expected(header: str, expected: str) -> None:
    with pytest.raises(SqbError) as caught:
        config(header)
    error = caught.value
    assert (error.code, error.file, error.line) == ("P003", "models/m.sql", 2)
    assert expected in error.message


def test_an_unknown_key_names_the_nearest() -> None:
    with pytest.raises(SqbError) as caught:
        config("tags [a],\nmaterialised table")
    error = caught.value
    assert (error.code, error.line) == ("P002", 3)
    assert error.help == "did you mean `materialized`?"


def test_a_key_and_its_other_word_can_not_both_stand() -> None:
    with pytest.raises(SqbError) as caught:
        config("replay_on_change full, query_change_backfill full")
    assert caught.value.code == "P003"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("materialized incremental", "needs `incremental_strategy` or `cursor`"),
        ("materialized incremental, incremental_strategy delete_insert", "needs `cursor`"),
        ("materialized merge", "needs `unique_key`"),
        ("materialized incremental, incremental_strategy merge, cursor c", "needs `unique_key`"),
        ("materialized snapshot", "needs `unique_key`"),
        ("materialized tracked", "needs `group_key`"),
        ("materialized scd2, unique_key a, snapshot_strategy timestamp", "needs `updated_at`"),
        ("run_despite_unchanged always", "`materialized table` only"),
        ("contract enforced", "needs `columns`"),
    ],
)
def test_kinds_say_what_they_need(header: str, message: str) -> None:
    with pytest.raises(SqbError, match=message) as caught:
        config(header)
    assert caught.value.code == "P003"


@pytest.mark.parametrize(
    ("header", "kind", "strategy"),
    [
        ("materialized append", "append", None),
        ("materialized incremental, incremental_strategy append", "append", None),
        ("materialized incremental, incremental_strategy merge, unique_key a", "merge", None),
        ("materialized snapshot, unique_key a", "scd2", None),
        ("materialized scd2, unique_key a", "scd2", None),
        ("materialized append, cursor c", "incremental", "append"),
        ("materialized incremental, cursor c", "incremental", "append"),
        (
            "materialized incremental, cursor c, incremental_strategy delete_insert",
            "incremental",
            "delete_insert",
        ),
        ("materialized my_kind", "my_kind", None),
    ],
)
def test_synonyms_are_one_kind_and_one_identity(
    header: str, kind: str, strategy: str | None
) -> None:
    found = identity(header)
    assert config(header).materialized == kind
    assert (found["materialized"], found.get("incremental_strategy")) == (kind, strategy)


NOT_IDENTITY = {
    "replay_on_change": "full",
    "run_despite_unchanged": "always",
    "refresh": "full",
    "row_state": "auto",
    "row_audit": "every(3)",
    "audits": "[unique(a)]",
    "columns": "(a INT)",
    "tags": "[t]",
    "description": "'d'",
    "schema": "s",
    "alias": "x",
    "enabled": "false",
}
IDENTITY = {
    "materialized": "tracked",
    "unique_key": "[a]",
    "group_key": "[b]",
    "incremental_strategy": "merge",
    "cursor": "c",
    "cursor_type": "integer",
    "cursor_grain": "day",
    "cursor_start": "5",
    "cursor_inputs": "(a b)",
    "lookback": "3d",
    "append_from": "[a]",
    "on_retraction": "error",
    "deletes": "keep",
    "merge_exclude_columns": "[a]",
    "on_schema_change": "fail",
    "full_refresh": "false",
    "snapshot_strategy": "timestamp",
    "updated_at": "u",
    "check_columns": "[a]",
    "invalidate_hard_deletes": "false",
    "valid_from_column": "f",
    "valid_to_column": "t",
    "contract": "enforced",
    "pre_hooks": "[sql('a')]",
    "post_hooks": "[sql('a')]",
    "config": "(a 1)",
    "placeholders": "(a 1)",
    "partitioned_by": "[a]",
    "sorted_by": "[a]",
    "table_properties": "(a b)",
}
#: What a key needs beside it to be accepted.
BASE = "group_key [g], unique_key [u], columns (q INT), updated_at v"


def with_base(key: str, value: str) -> tuple[str, str]:
    kind = {"incremental_strategy": "incremental, cursor c"}.get(key, "table")
    parts = [part for part in BASE.split(", ") if not part.startswith(key)]
    if key != "materialized":
        parts.append(f"materialized {kind}")
    return ", ".join(parts), ", ".join([*parts, f"{key} {value}"])


def test_every_key_of_the_contract_is_in_exactly_one_table() -> None:
    assert set(KEYS) == set(IDENTITY) | set(NOT_IDENTITY)
    assert set(ALIASES) == {"query_change_backfill"}
    assert {key for key, known in KEYS.items() if known.identity} == set(IDENTITY)


@pytest.mark.parametrize("key", IDENTITY)
def test_identity_keys_change_the_identity(key: str) -> None:
    without, beside = with_base(key, IDENTITY[key])
    assert identity(without) != identity(beside)


@pytest.mark.parametrize("key", NOT_IDENTITY)
def test_other_keys_do_not(key: str) -> None:
    without, beside = with_base(key, NOT_IDENTITY[key])
    assert identity(without) == identity(beside)


@pytest.mark.parametrize(
    "header",
    [
        "materialized view",
        "on_retraction append, deletes sync, contract none, audits []",
        "invalidate_hard_deletes true, check_columns [*], valid_from_column valid_from",
        "partitioned_by [], table_properties (), config ()",
    ],
)
def test_a_written_default_is_no_part_of_the_identity(header: str) -> None:
    assert identity(header) == {}


def test_declared_columns_count_only_under_a_contract() -> None:
    assert "columns" not in identity("columns (a INT)")
    one = identity("contract enforced, columns (a (type INT, description 'x'), b STRING)")
    assert one["columns"] == [["a", "INT", True], ["b", "STRING", True]]


def test_a_view_has_no_layout() -> None:
    header = "partitioned_by [a], sorted_by [b], table_properties (c d)"
    table = config(f"materialized table, {header}")
    assert json.loads(table.layout) == {
        "partitioned_by": ["a"],
        "sorted_by": ["b"],
        "table_properties": {"c": "d"},
    }
    view = config(header)
    assert (view.layout, view.identity, view.partitioned_by) == ("{}", "{}", ())


@pytest.mark.parametrize(
    "header",
    [
        "",
        "materialized view",
        "materialized table, partitioned_by [days(ts)], sorted_by [a], table_properties (a b)",
        "tags [a], description 'x', schema s, alias t, enabled false, columns (a INT)",
        "config (a 1), placeholders (b 2), replay_on_change full",
        "refresh auto, row_state off",
        "materialized table, row_state auto",
        "refresh full",
        "refresh rows, row_audit sample(0.1%)",
        "materialized append, append_from [a], on_retraction error, on_schema_change fail",
        "materialized merge, unique_key a, deletes keep, replay_on_change forward",
        "materialized incremental, incremental_strategy merge, unique_key a, full_refresh false",
        "materialized snapshot, unique_key a, snapshot_strategy timestamp, updated_at u",
        "materialized scd2, unique_key a, check_columns [b], valid_from_column f",
        "materialized tracked, group_key a",
        "row_audit off, contract none, audits [], deletes sync",
    ],
)
def test_what_works_now_is_available(header: str) -> None:
    found = split_model(f"MODEL ({header});", "m.sql")
    check_available(config(header), "m.sql", found.lines)
    check_kind(config(header), "m.sql", found.lines)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("materialized table, deletes keep", "for `merge`"),
        ("materialized merge, unique_key a, append_from [b]", "for `append`"),
        ("materialized append, check_columns [b]", "for `scd2`"),
        ("materialized table, group_key [b]", "for `tracked`"),
        ("materialized scd2, unique_key a, valid_from_column valid_to", "the same"),
        ("materialized append, replay_on_change bounded-7d", "`cursor`"),
    ],
)
def test_what_means_nothing_to_a_kind_is_refused(header: str, told: str) -> None:
    found = split_model(f"MODEL (\n{header});", "m.sql")
    with pytest.raises(SqbError, match=told) as caught:
        check_kind(config(header), "m.sql", found.lines)
    assert (caught.value.code, caught.value.line) == ("P003", 2)


@pytest.mark.parametrize(
    ("header", "release"),
    [
        ("materialized incremental, cursor c", "0.5"),
        ("materialized incremental, cursor c, incremental_strategy delete_insert", "0.5"),
        ("lookback 3d", "0.5"),
        ("materialized table, run_despite_unchanged always", "0.5"),
        ("contract enforced, columns (a INT)", "0.5"),
        ("audits [unique(a)]", "0.5"),
        ("columns (a (type INT, audits [unique]))", "0.5"),
        ("post_hooks [sql('x')]", "0.5"),
        ("materialized my_kind", "0.5"),
    ],
)
def test_what_comes_later_names_its_release_and_line(header: str, release: str) -> None:
    found = split_model(f"MODEL (\n{header});", "m.sql")
    with pytest.raises(SqbError) as caught:
        check_available(config(header), "m.sql", found.lines)
    error = caught.value
    assert (error.code, error.file, error.line) == ("C011", "m.sql", 2)
    assert f"arrives in release {release}" in error.message


def test_a_mistyped_kind_suggests_the_one_meant() -> None:
    with pytest.raises(SqbError) as caught:
        check_available(config("materialized tabel"), "m.sql", {"materialized": 2})
    assert caught.value.help == "did you mean `table`?"


def test_a_later_key_from_the_defaults_says_so() -> None:
    with pytest.raises(SqbError, match=r"\[defaults\]") as caught:
        check_available(config("", {"contract": "enforced", "columns": {"a": "INT"}}), "m.sql", {})
    assert caught.value.code == "C011"
