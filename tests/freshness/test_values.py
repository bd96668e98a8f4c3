"""Values in one form, and one bad query beside good ones."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sqb.freshness.values import Probe, evaluate, moment_us, normal

MICROS = "1769839200000000"
SIX = "2026-01-31T06:00:00+00:00"


@pytest.mark.parametrize(
    ("kind", "typed", "text", "value"),
    [
        ("timestamp", "timestamp", MICROS, SIX),
        ("timestamp", "timestamp_ntz", MICROS, SIX),
        ("timestamp", "date", MICROS, SIX),
        ("timestamp", "timestamp", "1769839200000001", "2026-01-31T06:00:00.000001+00:00"),
        ("timestamp", "timestamp", "-1", "1969-12-31T23:59:59.999999+00:00"),
        ("timestamp", "timestamp", "999999999999999999", None),
        ("timestamp", "bigint", "7000000", None),
        ("timestamp", "string", MICROS, None),
        ("timestamp", "timestamp", None, None),
        ("integer", "bigint", "9223372036854775807", "9223372036854775807"),
        ("integer", "decimal(38,0)", "12345678901234567890", "12345678901234567890"),
        ("integer", "decimal(10,2)", "1.00", None),
        ("integer", "boolean", "true", None),
        ("integer", "double", "1.0", None),
        ("integer", "int", None, None),
        ("string", "string", " a:b ", " a:b "),
        ("string", "int", "7", "7"),
    ],
)
def test_values_have_one_form(kind: str, typed: str, text: str | None, value: str | None) -> None:
    answer = normal(kind, typed, text)
    assert answer.value == value
    assert bool(answer.why) is (value is None)


def test_the_moment_of_a_value() -> None:
    assert moment_us(SIX) == int(MICROS)


def test_all_values_come_from_one_query() -> None:
    asked: list[str] = []

    def run(sql: str) -> Sequence[Sequence[str | None]]:
        asked.append(sql)
        return [("a", "int", "1"), ("b", "string", None)]

    found = evaluate({"a": Probe("qa", "integer"), "b": Probe("qb", "string")}, run, str)
    assert len(asked) == 1
    assert found["a"].value == "1"
    assert "NULL" in found["b"].why
    assert found["b"].lasting


def test_one_bad_query_spoils_no_other() -> None:
    def run(sql: str) -> Sequence[Sequence[str | None]]:
        if "bad" in sql:
            raise ValueError("no such column")
        return [("good", "int", "1")] if "'good'" in sql else [("fine", "int", "2")]

    probes = {name: Probe(name, "integer") for name in ("good", "bad", "fine")}
    found = evaluate(probes, run, str)
    assert {name: answer.value for name, answer in found.items()} == {
        "good": "1",
        "bad": None,
        "fine": "2",
    }
    assert found["bad"].why == "no such column"
    assert not found["bad"].lasting
