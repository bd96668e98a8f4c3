"""Seeds: their CSV files and what YAML says about them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqb.errors import SqbError
from sqb.project.seed_specs import CsvSettings, SeedSpec
from sqb.project.seeds import (
    Seed,
    infer_type,
    load_seed_specs,
    match_specs,
    read_seed,
    seed_identity,
)


def read(content: str | bytes, spec: SeedSpec | None = None) -> Seed:
    encoded = content.encode() if isinstance(content, str) else content
    return read_seed("seeds/x/s.csv", encoded, spec)


def spec(**settings: object) -> SeedSpec:
    return SeedSpec("s", "seeds/s.yml", 2, csv_settings=CsvSettings(**settings))  # type: ignore[arg-type]


def test_rows_have_types_nulls_and_lines() -> None:
    found = read('id,name,at\n1,"a\nb",2024-01-01\n\n2,,\n3,"",2024-01-02 10:00\n')
    assert found.name == "s"
    assert found.columns == (("id", "BIGINT"), ("name", "STRING"), ("at", "TIMESTAMP"))
    assert found.rows == (
        ("1", "a\nb", "2024-01-01"),
        ("2", None, None),
        ("3", None, "2024-01-02 10:00"),
    )
    assert found.lines == (2, 5, 6)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["0", "-5", "9223372036854775807"], "BIGINT"),
        (["9223372036854775808"], "STRING"),
        (["007"], "STRING"),
        (["+5"], "STRING"),
        (["1", "2.5"], "DOUBLE"),
        (["-0.5", ".5", "1e-3", "1.5E10"], "DOUBLE"),
        (["12e5"], "STRING"),
        (["00.5"], "STRING"),
        (["NaN"], "STRING"),
        (["true", "FALSE"], "BOOLEAN"),
        (["true", "1"], "STRING"),
        (["2024-02-29"], "DATE"),
        (["2023-02-29"], "STRING"),
        (["2024-1-1"], "STRING"),
        (
            ["2024-01-01 10:00", "2024-01-01T10:00:00.123Z", "2024-01-01 10:00:00+02:00"],
            "TIMESTAMP",
        ),
        (["2024-01-01 25:00"], "STRING"),
        (["2024-01-01 "], "STRING"),
        ([None, "1"], "BIGINT"),
        ([None, None], "STRING"),
        ([], "STRING"),
        ([" 1"], "STRING"),
        (["٣"], "STRING"),
    ],
)
def test_a_type_is_inferred_only_if_no_value_loses_by_it(
    values: list[str | None], expected: str
) -> None:
    assert infer_type(values) == expected


PLAIN = "id,name\n1,a\n2,\n"


@pytest.mark.parametrize(
    "noise",
    [
        PLAIN.encode("utf-8-sig"),
        PLAIN.replace("\n", "\r\n").encode(),
        PLAIN.rstrip().encode(),
        b'"id","name"\n"1","a"\n"2",""\n',
        b"id,name\n\n1,a\n2,\n\n",
    ],
)
def test_noise_that_parses_equally_is_no_change(noise: bytes) -> None:
    assert seed_identity(read(noise)) == seed_identity(read(PLAIN))


def test_crlf_inside_a_field_is_no_change() -> None:
    assert seed_identity(read(b'a\r\n"x\r\ny"\r\n')) == seed_identity(read(b'a\n"x\ny"\n'))


@pytest.mark.parametrize(
    "other",
    [
        read("id,name\n1,b\n2,\n"),
        read("id,name\n2,\n1,a\n"),
        read("id,nom\n1,a\n2,\n"),
        read(PLAIN, SeedSpec("s", "f", 1, columns=(("id", "INT"),))),
        read(PLAIN, spec(keep_default_na=True)),
    ],
)
def test_rows_columns_types_and_settings_are_the_identity(other: Seed) -> None:
    assert seed_identity(other) != seed_identity(read(PLAIN))


def test_the_name_and_the_line_ending_setting_are_not() -> None:
    renamed = read_seed("seeds/t.csv", PLAIN.encode(), spec(lineterminator="\r\n"))
    assert seed_identity(renamed) == seed_identity(read(PLAIN))


@pytest.mark.parametrize(
    ("content", "settings", "rows"),
    [
        ("a;b\n1;'x;y'\n", {"delimiter": ";", "quotechar": "'"}, (("1", "x;y"),)),
        ("a,b\n1, x\n", {"skipinitialspace": True}, (("1", "x"),)),
        ('a,b\n1,"x\\"y"\n', {"escapechar": "\\", "doublequote": False}, (("1", 'x"y'),)),
        ("a,b\nNA,-\n", {"na_values": ("-",)}, (("NA", None),)),
        ("a,b\n-,-\n", {"na_values": {"B": ("-",)}}, (("-", None),)),
        ("a,b\nNA,null\n", {"keep_default_na": True}, ((None, None),)),
        ("a,b\nä,1\n".encode("latin-1"), {"encoding": "latin-1"}, (("ä", "1"),)),
    ],
)
def test_csv_settings_are_obeyed(
    content: str | bytes, settings: dict[str, object], rows: tuple[tuple[str | None, ...], ...]
) -> None:
    assert read(content, spec(**settings)).rows == rows


def test_declared_types_win_and_match_without_case() -> None:
    declared = SeedSpec("s", "f", 1, columns=(("ID", "STRING"),))
    assert read("id,n\n1,2\n", declared).columns == (("id", "STRING"), ("n", "BIGINT"))


def test_a_header_alone_is_an_empty_seed() -> None:
    found = read("a,b\n")
    assert (found.columns, found.rows) == ((("a", "STRING"), ("b", "STRING")), ())


def test_a_field_may_be_longer_than_the_csv_modules_limit() -> None:
    assert len(read("a\n" + "x" * 200_000).rows[0][0] or "") == 200_000


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("", 1, "empty"),
        ("\n\n", 1, "empty"),
        ("a,A\n1,2\n", 1, "two columns"),
        ("a,\n1,2\n", 1, "no name"),
        ("a,b\n1,2\n\n3\n", 4, "1 fields, the header 2"),
        ("a,b\n1,2,3\n", 2, "3 fields"),
        ('a,b\n1,"x\n', 2, "unexpected end"),
        ('a,b\n1,"x"y\n', 2, "expected after"),
        (b"a\nx\n\xff\n", 3, "not valid utf-8"),
    ],
)
def test_a_file_that_can_not_be_read_names_the_line(
    content: str | bytes, line: int, message: str
) -> None:
    with pytest.raises(SqbError, match=message) as caught:
        read(content)
    assert (caught.value.code, caught.value.file) == ("P012", "seeds/x/s.csv")
    assert caught.value.line == line


def test_a_declared_column_must_be_in_the_file() -> None:
    with pytest.raises(SqbError, match="`idd`") as caught:
        read("id\n1\n", SeedSpec("s", "f", 1, columns=(("idd", "INT"),)))
    assert (caught.value.code, caught.value.help) == ("P012", "did you mean `id`?")


def test_a_seed_needs_a_usable_name() -> None:
    with pytest.raises(SqbError) as caught:
        read_seed("seeds/my-seed.csv", b"a\n", None)
    assert caught.value.code == "P016"


SPEC = b"""seeds:
  - name: s
    description: d
    tags: [t]
    schema: ref
    columns:
      - {name: id, type: integer}
      - {name: p, type: "decimal(10,2)"}
    csv_settings:
      delimiter: ";"
      na_values: {id: ["-"]}
"""


def test_a_spec_is_read() -> None:
    assert load_seed_specs({"seeds/s.yml": SPEC}, {}) == {
        "s": SeedSpec(
            name="s",
            file="seeds/s.yml",
            line=2,
            columns=(("id", "INT"), ("p", "DECIMAL(10,2)")),
            csv_settings=CsvSettings(delimiter=";", na_values={"id": ("-",)}),
            description="d",
            tags=("t",),
            schema="ref",
        )
    }


@pytest.mark.parametrize(
    ("text", "code", "line", "message"),
    [
        ("seed: []", "P011", 1, "unknown key"),
        ("seeds:\n- nmae: x", "P011", 2, "needs `name`"),
        ("seeds:\n- name: x\n  colums: []", "P011", 3, "unknown key `colums`"),
        ("seeds:\n- name: x\n  columns:\n  - {name: a, type: text}", "P011", 4, "Spark SQL type"),
        ("seeds:\n- name: x\n  columns:\n  - {name: a}", "P011", 4, "needs `type`"),
        ("seeds:\n- name: x\n  csv_settings: {delimiter: ab}", "P011", 3, "one character"),
        ("seeds:\n- name: x\n  csv_settings: {encoding: utf-99}", "P011", 3, "encoding"),
        ("seeds:\n- name: x\n  csv_settings: {encoding: base64}", "P011", 3, "encoding"),
        ("seeds:\n- name: x\n  csv_settings: {quotechar: ','}", "P011", 3, "must differ"),
        ("seeds:\n- name: x\n- name: x", "P007", 3, "twice"),
        ("seeds:\n- name: 1x", "P016", 2, "can't be the name"),
    ],
)
def test_a_wrong_spec_is_refused_with_its_line(
    text: str, code: str, line: int, message: str
) -> None:
    with pytest.raises(SqbError, match=message) as caught:
        load_seed_specs({"seeds/s.yml": text.encode()}, {})
    assert (caught.value.code, caught.value.line) == (code, line)


def test_a_project_loads_its_seeds_with_their_specs() -> None:
    specs = load_seed_specs({"seeds/s.yml": SPEC}, {})
    found = read_seed("seeds/a/s.csv", b"id;p\n-;1\n", specs["s"])
    assert found.rows == ((None, "1"),)
    assert (found.schema, found.tags) == ("ref", ("t",))


def test_a_spec_without_a_file_is_refused() -> None:
    with pytest.raises(SqbError, match=r"no seeds/s\.csv") as caught:
        match_specs(load_seed_specs({"seeds/s.yml": SPEC}, {}), ["seeds/ss.csv"])
    assert (caught.value.code, caught.value.line) == ("P011", 2)


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_any_rows_that_the_csv_module_writes_are_read_back(rows: list[tuple[str, str]]) -> None:
    import csv
    import io

    kept = [tuple(value.replace("\r", "").replace("\0", "") for value in row) for row in rows]
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerows([("a", "b"), *kept])
    try:
        content = out.getvalue().encode()
    except UnicodeEncodeError:
        return
    found = read(content)
    assert found.rows == tuple(tuple(value or None for value in row) for row in kept)
    assert json.loads(seed_identity(found))["rows"] == [list(row) for row in found.rows]
