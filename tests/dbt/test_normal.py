"""Which edits of a model's text are formatting, and which are not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from sqb.dbt.normal import normalised
from sqb.errors import SqbError
from sqb.sql.tokens import tokenize

SAME = [
    ("select a, b from t", "select a,b\nfrom   t"),
    ("select a -- note\nfrom t", "select a from t"),
    ("select a /* note */ from t", "select a\nfrom t"),
    ("select a from t {# note #}", "select a from t"),
    ("select a from {{ ref('x') }} o", "select a\nfrom {{ref('x')}}\n  o"),
    (
        "from {{ ref('x') }}, {{ source('a', 'b') }}",
        "from {{ ref('x') }}\n, {{ source('a', 'b') }}",
    ),
    ("select max(a) from {{ this }}", "select max( a ) from {{ this }}"),
    (
        "{{ config(meta={'a': {'b': 1}}) }}\nselect 1",
        "{{ config(meta={'a': {'b': 1}}) }}\n\nselect 1",
    ),
    ("select '{{ var(\"it's\") }}' as a", "select   '{{ var(\"it's\") }}'   as a"),
    ("select r'\\' as a, 1 as b", "select r'\\' as a,1 as b"),
    ("select `a b` from t", "select `a b`  from t"),
]
DIFFERENT = [
    ("select 'a  b'", "select 'a b'"),
    ("select '-- a'", "select '-- b'"),
    ("select a from stg_{{ x }}", "select a from stg_ {{ x }}"),
    ("select a from stg_{{ ref('x') }}", "select a from stg_ {{ ref('x') }}"),
    ("select {{ f('a') }}", "select {{ f('b') }}"),
    ("select {{ f('a  b') }}", "select {{ f('a b') }}"),
    # a macro may end in a line comment
    ("select {{ f() }} from t", "select {{ f() }}\nfrom t"),
    ("select a -- {{ f() }}", "select a"),
    ("select a -- {{ f(\n) }} b", "select a -- {{ f(\n) }}"),
    ("select a /* {{ f() }} */", "select a"),
    ("select a < = b", "select a <= b"),
    ("select a - -b", "select a --b"),
    ("select r 'x'", "select r'x'"),
    ("select 'a' 'b'", "select 'a''b'"),
    ("select 1 .5", "select 1.5"),
    ("select 1e -5", "select 1e-5"),
    ("select /*+ broadcast(a) */ 1", "select 1"),
    ("select a b", "select ab"),
    ("select ä b", "select äb"),
    ("select a\u00a0b", "select a b"),
    # a text that is a value, or no Jinja at all
    ("{% set x %}a  b{% endset %}", "{% set x %}a b{% endset %}"),
    ("{%- set x -%}a  b{% endset %}", "{%- set x -%}a b{% endset %}"),
    ("{% raw %}a  b{% endraw %}", "{% raw %}a b{% endraw %}"),
    ("{% call f() %}a  b{% endcall %}", "{% call f() %}a b{% endcall %}"),
    # a comment that eats the white space beside it
    ("select a {#- x -#} b", "select a b"),
    ("select a{# x #}b", "select a b"),
    # a minus eats white space up to a comment, or the end of its line
    ("a -- x\n{%- if t %} b {% endif %}", "a\n{%- if t %} b {% endif %}"),
    ("a {# x #} {{- f() }}", "a {{- f() }}"),
    ("{{ f() -}} /* x */ a", "{{ f() -}} a"),
    # a comment that a tag touches keeps it apart from what follows
    ("{{ f() }}{# x #} a", "{{ f() }}a"),
    ("{{ f() }}/* x */ a", "{{ f() }}a"),
    # what can't be read stays as it is
    ("select 'a  b", "select 'a b"),
    ("select a /* b", "select  a /* b"),
    ("select {{ a", "select  {{ a"),
    ("select a /* x /* y */ z */ b", "select  a /* x /* y */ z */ b"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_formatting_does_not_count(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_everything_else_counts(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{{ {'a': '}}'}['a'] }} b",
        "{% if a %} b {% endif %}",
        "{{ '%}' }}",
        "{% set a = {} %} b",
    ],
)
def test_tags_end_where_jinja_ends_them(text: str) -> None:
    assert normalised(text).count("b") == text.count("b")
    assert "\n" not in normalised(text).strip() or normalised(text) != text


PIECES = (
    *("a", "b1", "1", "1.5", "1e", "5", ".", "'x'", "'x -- y'", '"q"', "`n m`", "r", "r'\\'"),
    *("'it''s'", "<", "=", ">", "-", "+", "/", "*", "|", "(", ")", ",", "$", "::", "as", ";", "é"),
    *("--c\n", "-- {{ f() }}\n", "/*c*/", "/* {{ g() }} */", "{{ f() }}", "{{ g() }}", "{{ h() }}"),
    *("{{ ref('x') }}", "{{ this }}", "{# n #}", "{#- n -#}", "{{- f() }}", "{{ f() -}}"),
    *("'{{ f() }}'", "'{{ q() }}'", "x{{ f() }}y", "{%- set v = 1 -%}", "{% set v = 1 %}"),
)
VALUES: list[dict[str, object]] = [
    {"f": lambda: "x", "g": lambda: "1", "h": lambda: "'a'", "ref": lambda _: "s.t", "this": "s.u"},
    {"f": lambda: "z", "g": lambda: "-", "h": lambda: "b", "ref": lambda _: "`a b`", "this": "u"},
]
SPACE = st.sampled_from(["", " ", "\n", "  ", "\n\n"])


def _sql(text: str, values: dict[str, object]) -> list[str] | None:
    """The tokens of what a text becomes; None if Spark would not even read them."""
    try:
        found = tokenize(Environment().from_string(text).render(q=lambda: "--", **values))
    except SqbError:
        return None
    raws = []
    for i, token in enumerate(found):
        glued = i > 0 and found[i - 1].raw[-1] == token.raw[0] == "'"
        apart = glued and found[i - 1].end < token.start
        raws.append(f"{'_' if apart else ''}{token.raw}")
    return raws


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(SPACE, st.sampled_from(PIECES), SPACE, st.booleans()), max_size=9))
def test_texts_that_are_the_same_become_the_same_sql(
    pieces: list[tuple[str, str, str, bool]],
) -> None:
    one = "".join(space + piece for space, piece, _, _ in pieces)
    comments = ("--c\n", "/*c*/", "{# n #}")
    other = "".join(
        space + ("" if dropped and piece in comments else piece)
        for _, piece, space, dropped in pieces
    )
    if normalised(one) == normalised(other):
        for values in VALUES:
            assert _sql(one, values) == _sql(other, values)
