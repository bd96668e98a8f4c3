"""Macros, variables and environment values, and the way back to the user's own line."""

from __future__ import annotations

import pytest

from sqb.errors import SqbError
from sqb.sql.expand import Scope, expand
from sqb.sql.splice import Edit, splice

SCOPE = Scope(
    macros={
        "cents": lambda column: f"({column} / 100)",
        "pick": lambda *names, sep=", ": sep.join(names),
        "joined": ", ".join,
        "both": lambda: "@cents('a') + @@rate",
        "endless": lambda: "@endless()",
        "number": lambda: 1,
        "broken": lambda: {}["x"],
    },
    vars={"rate": 2, "name": "x", "on": True, "none": None, "list": [1], "columns": ["a", "b"]},
    environ={"REGION": "eu"},
)

EXPANSIONS = [
    ("SELECT @cents('amount') AS a", "SELECT (amount / 100) AS a"),
    ("SELECT @pick('a', 'b', sep=' + ')", "SELECT a + b"),
    ("SELECT @cents(@cents('a'))", "SELECT ((a / 100) / 100)"),
    ("SELECT @joined(@@columns)", "SELECT a, b"),
    ("SELECT @pick(@@name, @@ENV:REGION)", "SELECT x, eu"),
    ("SELECT @both()", "SELECT (a / 100) + 2"),
    ("SELECT @@rate, @@name, @@on, '@@name' -- @@none", "SELECT 2, x, true, '@@name' -- @@none"),
    ("SELECT '@@ENV:REGION', @@ENV:REGION.x", "SELECT '@@ENV:REGION', eu.x"),
    ("SELECT `@cents(1)`", "SELECT `@cents(1)`"),
    ("SELECT 1", "SELECT 1"),
]


@pytest.mark.parametrize(("sql", "expanded"), EXPANSIONS)
def test_expansion(sql: str, expanded: str) -> None:
    assert expand(sql, SCOPE, file="m.sql", first_line=1).spliced.text == expanded


BAD = [
    ("SELECT\n@cent('a')", "P008", "did you mean `cents`?"),
    ("SELECT\n@cents(column)", "P008", None),
    ("SELECT\n@cents", "P008", None),
    ("SELECT\n@number()", "P008", None),
    ("SELECT\n@broken()", "P008", None),
    ("SELECT\n@endless()", "P008", None),
    ("SELECT\n@@rats", "P009", "did you mean `rate`?"),
    ("SELECT\n@@list", "P009", None),
    ("SELECT\n@@ENV:NOPE", "P010", None),
    ("SELECT\n@@ENV:SQB_SECRET_X", "P010", None),
]


@pytest.mark.parametrize(("sql", "code", "help_"), BAD)
def test_what_does_not_exist_or_fails_is_named_with_its_line(
    sql: str, code: str, help_: str | None
) -> None:
    with pytest.raises(SqbError) as error:
        expand(sql, SCOPE, file="models/m.sql", first_line=5)
    assert (error.value.code, error.value.line) == (code, 6)
    if help_:
        assert error.value.help == help_


def test_the_environment_that_was_read_is_remembered() -> None:
    assert expand("SELECT @@ENV:REGION", SCOPE, file="m", first_line=1).env == {"REGION": "eu"}


def test_every_position_leads_back_to_where_it_came_from() -> None:
    spliced = splice("0123456789", [Edit(2, 4, "abcdef"), Edit(6, 6, "x"), Edit(8, 10, "")])
    assert spliced.text == "01abcdef45x67"
    origins = {
        spliced.text[i] if i < len(spliced.text) else "": spliced.origin(i) for i in range(13)
    }
    assert origins["1"] == 1
    assert origins["a"] == origins["f"] == 2
    assert origins["4"] == 4
    assert origins["x"] == 6
    assert origins["7"] == 7
