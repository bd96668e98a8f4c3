"""Headers of models."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqb.errors import SqbError
from sqb.project.header import Call, parse_value, split_model


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("table", "table"),
        ("'table'", "table"),
        ('"ta""ble"', 'ta"ble'),
        ("'it''s'", "it's"),
        ("'two\nlines'", "two\nlines"),
        ("true", True),
        ("false", False),
        ("'true'", "true"),
        ("7", 7),
        ("-7", -7),
        ("1.5", 1.5),
        ("9" * 5_000, "9" * 5_000),
        ("٣", "٣"),
        ("3d", "3d"),
        ("bounded-14d", "bounded-14d"),
        ("2024-01-01", "2024-01-01"),
        ("a.b", "a.b"),
        ("[]", []),
        ("[a]", ["a"]),
        ("[a, 'b c', 3,]", ["a", "b c", 3]),
        ("[*]", ["*"]),
        ("[a -- one, two\n, b /* ] */]", ["a", "b"]),
        (
            "[a, b(c), d (severity warn)]",
            ["a", Call("b", ("c",)), Call("d", (), {}, {"severity": "warn"})],
        ),
        ("[unique(x, y) (severity warn)]", [Call("unique", ("x", "y"), {}, {"severity": "warn"})]),
        ("[bucket (16, id)]", [Call("bucket", (16, "id"))]),
        ('[sql("g", role: "x", n: 2)]', [Call("sql", ("g",), {"role": "x", "n": 2})]),
        ("[b DESC NULLS LAST, bucket(4,x) desc]", ["b DESC NULLS LAST", "bucket(4, x) desc"]),
        ("sample(0.1%)", Call("sample", ("0.1%",))),
        ("()", {}),
        ("(a 1, b (c d))", {"a": 1, "b": {"c": "d"}}),
        ("('write.x' 'y', z: 1, q = 2)", {"write.x": "y", "z": 1, "q": 2}),
        (
            "(id BIGINT, s STRUCT<a: INT, b: STRING>)",
            {"id": "BIGINT", "s": "STRUCT<a: INT, b: STRING>"},
        ),
        ("(id (type DECIMAL(10,2)))", {"id": {"type": Call("DECIMAL", (10, 2))}}),
    ],
)
def test_values_have_one_reading(written: str, value: object) -> None:
    found = split_model(f"MODEL (k {written});", "f.sql").values
    assert found == {"k": value}
    assert type(found["k"]) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1",
        "",
        "MODEL",
        "MODELS (a b); SELECT 1",
        "SELECT * FROM MODEL (a b);",
        "model.x (a)",
        "-- MODEL (a b);\nSELECT 1",
        "/* MODEL (a b); */ SELECT 1",
        "/* never closed",
        "'MODEL ('",
    ],
)
def test_a_file_without_a_header_is_all_body(text: str) -> None:
    found = split_model(text, "f.sql")
    assert (found.values, found.body, found.body_line, found.body_start) == ({}, text, 1, 0)


def test_comments_may_stand_before_inside_and_after_the_header() -> None:
    text = (
        "\ufeff-- a\n/* b /* nested */ ( */\nmodel -- c\n (\n"
        "  a 1, -- d )\n  b 2\n) /* e */ ;\n\nSELECT 1"
    )
    found = split_model(text, "f.sql")
    assert found.values == {"a": 1, "b": 2}
    assert found.lines == {"a": 5, "b": 6}
    assert (found.body, found.body_line) == ("\n\nSELECT 1", 7)
    assert text[found.body_start :] == found.body


def test_a_byte_order_mark_is_no_part_of_the_body() -> None:
    found = split_model("\ufeffSELECT 1", "f.sql")
    assert (found.body, found.body_start) == ("SELECT 1", 1)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("MODEL (", 1, "never closed"),
        ("MODEL (\n a b", 1, "never closed"),
        ("MODEL (a b)\nSELECT 1", 2, "expected `;`"),
        ("MODEL (\n a,\n);", 2, "`a` has no value"),
        ("MODEL (\n a);", 2, "`a` has no value"),
        ("MODEL (\n a b\n c d);", 3, "expected `,`"),
        ("MODEL (\n a b, a c);", 2, "given twice"),
        ("MODEL (\n a 'b);", 2, "no closing '"),
        ("MODEL (\n a [b, c);", 2, "expected `,` or `]`"),
        ("MODEL (a [b", 1, "list is never closed"),
        ("MODEL (,);", 1, "expected a key"),
        ("MODEL (a @x);", 1, "expected a value"),
        ("MODEL (a f(x: 1, x: 2));", 1, "given twice"),
        ("MODEL (a f(x: 1, y));", 1, "by position"),
        ("MODEL (a /* b);", 1, "comment"),
        ("MODEL (a STRUCT<b);", 1, "`<`"),
        ("MODEL (a " + "[" * 50, 1, "too deeply"),
    ],
)
def test_a_broken_header_says_what_was_expected_and_where(
    text: str, line: int, message: str
) -> None:
    with pytest.raises(SqbError, match=message) as caught:
        split_model(text, "f.sql")
    assert (caught.value.code, caught.value.file, caught.value.line) == ("P001", "f.sql", line)
    assert caught.value.help


def test_a_single_value_can_be_read_alone() -> None:
    assert parse_value('sql("g", r: 1)', "f") == Call("sql", ("g",), {"r": 1})
    with pytest.raises(SqbError):
        parse_value("a, b", "f")


@given(st.text(alphabet="MODEL ()[],;:'\"ab1-/*<>\n.", max_size=40))
def test_any_text_is_read_or_refused_cleanly(tail: str) -> None:
    with contextlib.suppress(SqbError):
        assert ("MODEL (" + tail).endswith(split_model("MODEL (" + tail, "f.sql").body)
