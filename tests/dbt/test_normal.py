"""Which edits of a model's text are formatting, and which are not."""

from __future__ import annotations

import pytest

from sqb.dbt.normal import normalised

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
