"""Identity: what counts as a change of a query, read from fixture files."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.errors import SqbError
from sqb.sql.tokens import canonical, tokenize

FIXTURES = Path(__file__).parent.parent / "fixtures"


def cases(name: str) -> list[tuple[str, str, str]]:
    found = []
    for block in (FIXTURES / name).read_text().split("-- # ")[1:]:
        title, _, body = block.partition("\n")
        one, _, other = body.partition("\n---\n")
        found.append((title, one.strip(), other.strip()))
    return found


SAME, DIFFERENT = cases("canonical_same.sql"), cases("canonical_different.sql")


@pytest.mark.parametrize(("one", "other"), [c[1:] for c in SAME], ids=[c[0] for c in SAME])
def test_the_same_query_in_other_clothes(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"), [c[1:] for c in DIFFERENT], ids=[c[0] for c in DIFFERENT]
)
def test_another_query(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize("text", [c[1] for c in SAME + DIFFERENT])
def test_canonical_text_is_its_own_canonical_form(text: str) -> None:
    assert canonical(canonical(text)) == canonical(text)


def test_spans_are_exact() -> None:
    sql = "SELECT 1L, `a b`, 'x''y' FROM raw.t -- end"
    for token in tokenize(sql):
        assert sql[token.start : token.end] == token.raw


@pytest.mark.parametrize(
    ("sql", "line"), [("SELECT\n'abc", 2), ("SELECT 1\n\n/* never closed", 3), ("SELECT `a", 1)]
)
def test_an_open_quote_is_named_with_its_line(sql: str, line: int) -> None:
    with pytest.raises(SqbError) as error:
        tokenize(sql, file="models/m.sql")
    assert (error.value.code, error.value.line) == ("P004", line)
