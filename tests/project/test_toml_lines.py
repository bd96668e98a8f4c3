"""Lines of keys in TOML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqb.errors import SqbError
from sqb.project.toml_lines import key_lines, parse_toml

TEXT = '''# name = "no"
name = "x"  # [not.a.table]
note = """
name = "inside"
[fake]
"""
raw = \'\'\'
[fake2]\'\'\'
list = [
  "a]", # ]
  {inner = 1},
]
a.b."c d" = { x = 1, y.z = "}" }

[targets.dev]
schema = "d"
[targets . 'q.r']
schema = "e"
[[many]]
k = 1
[spark.conf]
"spark.sql.x" = "8"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 2),
        (("note",), 3),
        (("raw",), 7),
        (("list",), 9),
        (("list", "inner"), 11),
        (("a", "b", "c d"), 13),
        (("a", "b", "c d", "y", "z"), 13),
        (("targets", "dev"), 15),
        (("targets", "dev", "schema"), 16),
        (("targets", "q.r", "schema"), 18),
        (("many", "k"), 20),
        (("spark", "conf", "spark.sql.x"), 22),
        (("fake",), None),
        (("fake2",), None),
    ],
)
def test_the_line_of_a_key_is_where_it_was_written(path: tuple[str, ...], line: int | None) -> None:
    assert key_lines(TEXT).get(path) == line


def test_a_missing_key_has_the_line_of_the_table_around_it() -> None:
    assert parse_toml(TEXT.encode(), "f").line(("targets", "dev", "zzz")) == 15


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = \n", 2), ("a = 1\na = 2", 2), ("[x\n", 1), ('a = "\n', 1), ("a = [1,", 1)],
)
def test_bad_toml_is_reported_with_its_line(text: str, line: int) -> None:
    with pytest.raises(SqbError) as caught:
        parse_toml(text.encode(), "f.toml")
    assert (caught.value.code, caught.value.file, caught.value.line) == ("C002", "f.toml", line)


def test_bytes_that_are_no_text_are_reported() -> None:
    with pytest.raises(SqbError, match="UTF-8") as caught:
        parse_toml(b'a = 1\nb = "\xff"', "f.toml")
    assert caught.value.line == 2


@given(st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), st.text(), max_size=6))
def test_every_key_of_a_written_table_is_found(values: dict[str, str]) -> None:
    import json

    # The escapes of JSON strings are those of TOML, DEL aside.
    lines = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    found = key_lines("\n".join(["[t]", *lines]).replace("\x7f", ""))
    assert found == {("t",): 1} | {("t", key): n for n, key in enumerate(values, 2)}
