"""Declared sources."""

from __future__ import annotations

import pytest

from sqb.errors import SqbError
from sqb.project.source_specs import AgePolicy, Freshness
from sqb.project.sources import Source, check_sources_available, load_sources


def load(text: str) -> dict[str, Source]:
    return load_sources({"sources/s.yml": text.encode()}, {"RAW": "raw"})


def one(text: str) -> Source:
    """A source `s` in schema `raw` with more keys, given without indentation."""
    lines = "\n".join(f"    {line}" for line in text.splitlines())
    return load(f"sources:\n  - name: s\n    schema: raw\n{lines}\n")["s"]


def test_a_table_is_named_like_its_source_unless_it_says_otherwise() -> None:
    found = load(
        "sources:\n"
        "  - name: orders\n"
        "    schema: ${ENV:RAW}\n"
        "  - name: people\n"
        "    schema: crm\n"
        "    table: contacts\n"
        "    description: who\n"
        "    meta: {owner: me}\n"
        "    unique_key: id\n"
        "    columns: [{name: id, type: integer}]\n"
    )
    orders, people = found["orders"], found["people"]
    assert (orders.schema, orders.table, orders.line, orders.freshness) == (
        "raw",
        "orders",
        2,
        None,
    )
    assert (people.schema, people.table, people.description) == ("crm", "contacts", "who")
    assert (people.meta, people.unique_key) == ({"owner": "me"}, ("id",))
    assert people.columns == ({"name": "id", "type": "INT"},)
    check_sources_available(found)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("{strategy: adapter}", Freshness()),
        (
            "{strategy: column, column: ts, type: timestamp, filter: a > 1, lag_tolerance: 30m}",
            Freshness("column", "timestamp", "ts", None, "a > 1", 1800),
        ),
        (
            "{strategy: sql, query: SELECT 1, type: integer}",
            Freshness("sql", "integer", None, "SELECT 1"),
        ),
        (
            "{strategy: adapter, age_policy: {warn_after: 1h, error_after: 1d}}",
            Freshness(age_policy=AgePolicy(3600, 86_400)),
        ),
    ],
)
def test_freshness_is_read(written: str, expected: Freshness) -> None:
    assert one(f"freshness: {written}").freshness == expected


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{}", "needs `strategy`"),
        ("{strategy: metadata}", "one of adapter, column, sql"),
        ("{strategy: adapter, type: timestamp}", "takes no `type`"),
        ("{strategy: adapter, column: a}", "takes no `column`"),
        ("{strategy: column, type: timestamp}", "needs `column`"),
        ("{strategy: column, column: a}", "needs `type`"),
        ("{strategy: column, column: max(a), type: integer}", "plain column name"),
        ("{strategy: column, column: a, type: integer, query: x}", "takes no `query`"),
        ("{strategy: sql, type: integer}", "needs `query`"),
        ("{strategy: sql, query: x, type: integer, filter: y}", "takes no `filter`"),
        ("{strategy: sql, query: x, type: integer, lag_tolerance: 1h}", "type: timestamp"),
        ("{strategy: adapter, lag_tolerance: 1h}", "type: timestamp"),
        ("{strategy: sql, query: x, type: integer, age_policy: {warn_after: 1h}}", "age_policy"),
        ("{strategy: adapter, age_policy: {}}", "`warn_after` or `error_after`"),
        ("{strategy: adapter, age_policy: }", "`warn_after` or `error_after`"),
        ("{strategy: adapter, age_policy: {warn_after: 2h, error_after: 1h}}", "not be longer"),
        ("{strategy: adapter, age_policy: {warn_after: 5s}}", "a duration"),
        ("{strategy: adapter, age_policy: {warn_after: 5}}", "a duration"),
        ("{strategy: adapter, age_policy: {warn: 5m}}", "unknown key `warn`"),
        ("{stratgy: adapter}", "unknown key `stratgy`"),
        ("adapter", "must be a mapping"),
    ],
)
def test_freshness_that_makes_no_sense_is_refused(written: str, message: str) -> None:
    with pytest.raises(SqbError, match=message.replace("(", r"\(")) as caught:
        one(f"freshness: {written}")
    assert (caught.value.code, caught.value.line) == ("P011", 4)


@pytest.mark.parametrize(
    ("text", "code", "line", "message"),
    [
        ("source:\n", "P011", 1, "unknown key `source`"),
        ("sources: x", "P011", 1, "list of mappings"),
        ("sources:\n  - a", "P011", 1, "list of mappings"),
        ("sources:\n  - schema: x", "P011", 2, "needs `name`"),
        ("sources:\n  - name: s", "P011", 2, "needs `schema`"),
        ("sources:\n  - name: a-b\n    schema: x", "P016", 2, "can't be the name"),
        ("sources:\n  - name: __a\n    schema: x", "P016", 2, "reserved"),
        ("sources:\n  - name: a\n    shema: x", "P011", 3, "unknown key `shema`"),
        ("sources:\n  - name: a\n    schema: 3", "P011", 3, "must be a text"),
        ("sources:\n  - name: a\n    schema: x.y", "P011", 3, "must be a name"),
        ("sources:\n  - name: a\n    path: x", "P011", 3, "needs `format`"),
        ("sources:\n  - name: a\n    schema: x\n    format: csv", "P011", 4, "belongs to `path`"),
        ("sources:\n  - name: a\n    path: x\n    expression: y", "P011", 4, "both"),
        ("sources:\n  - {name: a, path: 's3://b/c', format: csv}", "P011", 2, "only local"),
        ("sources:\n  - {name: a, schema: x, options: {a: b}}", "P011", 2, "belongs to `path`"),
        (
            "sources:\n  - {name: a, path: x, format: csv, options: {basePath: b}}",
            "P011",
            2,
            "set by sqb",
        ),
        ("sources:\n  - {name: a, path: x, format: csv, options: {a: []}}", "P011", 2, "a text"),
        (
            "sources:\n  - {name: a, expression: SELECT 1, freshness: {strategy: adapter}}",
            "P011",
            2,
            "needs a table",
        ),
        ("sources:\n  - {name: a, schema: x}\n  - {name: A, schema: y}", "P007", 3, "twice"),
        (
            "sources:\n  - name: a\n    schema: x\n    columns:\n    - {name: b, type: txt}",
            "P011",
            5,
            "not a Spark SQL type",
        ),
        ("sources:\n  - {name: a, schema: x, cursor_column: c}", "P011", 2, "managed"),
        (
            "sources:\n  - {name: a, managed: true, write_strategy: merge, unique_key: i}",
            "P011",
            2,
            "needs `cursor_column`",
        ),
    ],
)
def test_wrong_entries_are_refused_with_their_line(
    text: str, code: str, line: int, message: str
) -> None:
    with pytest.raises(SqbError, match=message) as caught:
        load(text)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert caught.value.file == "sources/s.yml"


@pytest.mark.parametrize(
    ("entry", "release", "line"),
    [
        ("managed: true", "0.5", 3),
        ("schema: x\n    audits: [unique]", "0.5", 4),
    ],
)
def test_what_comes_later_names_its_release(entry: str, release: str, line: int) -> None:
    found = load(f"sources:\n  - name: a\n    {entry}\n")
    with pytest.raises(SqbError, match=f"release {release}") as caught:
        check_sources_available(found)
    assert (caught.value.code, caught.value.line) == ("C011", line)


def test_options_of_a_reader_are_texts() -> None:
    found = load(
        "sources:\n  - {name: a, path: d, format: csv, options: {header: false, sep: ';', n: 3}}"
    )
    assert found["a"].options == {"header": "false", "sep": ";", "n": "3"}


def test_a_table_of_another_catalog_may_lie_in_no_schema() -> None:
    found = load("sources:\n  - {name: a, catalog: app}")["a"]
    assert (found.catalog, found.schema, found.table) == ("app", None, "a")
