"""``row_state auto`` in a project: two nodes of one file, chosen and named as one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqb.api import Project
from sqb.errors import SqbError
from sqb.upkeep.upkeep import schemas_of

QUERY = "SELECT g,\n  SUM(x) AS s\nFROM raw.t\nGROUP BY g\nHAVING SUM(x) > 1"


def project(root: Path, files: Mapping[str, str]) -> Project:
    (root / "sqlbuild_project.toml").touch()
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Project(root, environ={})


def model(query: str, keys: str = "materialized table, row_state auto") -> str:
    return f"MODEL ({keys});\n{query}"


FILES = {
    "models/m.sql": model(QUERY),
    "models/below.sql": "SELECT g FROM m",
    "models/beside.sql": "SELECT g FROM raw.t",
}


def test_a_model_reads_its_groups_which_lie_in_a_schema_of_their_own(tmp_path: Path) -> None:
    found = project(tmp_path, FILES)
    assert found.compiled.parents["m"] == ("m__s1",)
    assert found.compiled.parents["m__s1"] == ("raw.t",)
    assert found.expected["m"].place == "dev.m"
    assert found.expected["m__s1"].place == "dev__sqb_state.m__s1"
    assert found.expected["m__s1"].state_of == "m"


def test_schema_and_alias_lead_the_groups_along(tmp_path: Path) -> None:
    keys = "materialized table, row_state auto, schema mart, alias sums"
    found = project(tmp_path, {"models/m.sql": model(QUERY, keys)})
    assert found.expected["m__s1"].place == "dev_mart__sqb_state.sums__s1"


@pytest.mark.parametrize(
    ("include", "exclude", "chosen"),
    [
        ((), (), {"m", "m__s1", "below", "beside"}),
        (("m",), (), {"m", "m__s1"}),
        (("m+",), (), {"m", "m__s1", "below"}),
        (("1+below",), (), {"m", "m__s1", "below"}),
        (("source:raw.t+1",), (), {"m", "m__s1", "beside"}),
        (("path:m.sql",), (), {"m", "m__s1"}),
        ((), ("m",), {"below", "beside"}),
        (("m*",), (), {"m", "m__s1"}),
    ],
)
def test_groups_are_chosen_with_their_model(
    tmp_path: Path, include: tuple[str, ...], exclude: tuple[str, ...], chosen: set[str]
) -> None:
    assert project(tmp_path, FILES).select(include, exclude) == chosen


def test_row_state_is_no_part_of_the_identity(tmp_path: Path) -> None:
    on = project(tmp_path, {"models/m.sql": model(QUERY)}).expected["m"]
    off = project(tmp_path, {"models/m.sql": model(QUERY, "materialized table")}).expected["m"]
    assert (on.query, on.config, on.local) == (off.query, off.config, off.local)


def test_an_edit_behind_the_groups_leaves_them(tmp_path: Path) -> None:
    before = project(tmp_path, {"models/m.sql": model(QUERY)}).expected
    after = project(tmp_path, {"models/m.sql": model(QUERY.replace("> 1", "> 2"))}).expected
    assert before["m__s1"].version == after["m__s1"].version
    assert before["m"].local != after["m"].local
    other = project(tmp_path, {"models/m.sql": model(QUERY.replace("raw.t", "raw.t WHERE y"))})
    assert before["m__s1"].version != other.expected["m__s1"].version


REUSED = """
import sys
from sqb.api import Project
found = Project(sys.argv[1])
assert "m__s1" in found.expected
print("sqlglot" in sys.modules)
"""


def test_the_cache_gives_the_same_project_without_a_parser(tmp_path: Path) -> None:
    first = project(tmp_path, FILES).compiled
    assert project(tmp_path, FILES).compiled == first
    out = subprocess.run(
        [sys.executable, "-c", REUSED, str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert out.stdout.strip() == "False"


def test_upkeep_looks_at_row_state_also_where_it_ended(tmp_path: Path) -> None:
    files = {"models/a.sql": "MODEL (schema mart);\nSELECT 1 AS a"}
    found = project(tmp_path, files)
    assert schemas_of(found.config, found.expected) == (
        "dev",
        "dev__sqb_state",
        "dev_mart",
        "dev_mart__sqb_state",
    )


def test_definition_and_lines_are_those_of_the_file(tmp_path: Path) -> None:
    found = project(tmp_path, {"models/m.sql": model(QUERY)}).compiled.models
    assert found["m"].definition.strip() == QUERY
    groups, over = found["m__s1"], found["m"]
    assert groups.line_of(groups.sql.index("SUM(x)")) == 3
    assert groups.line_of(groups.sql.index("raw.t")) == 4
    assert over.line_of(over.sql.index("> 1")) == 6
    assert [reference.line for reference in groups.analysis.references] == [4]


def test_macros_are_followed_to_their_lines(tmp_path: Path) -> None:
    files = {
        "macros/m.py": "def more(c):\n    return f'({c} +\\n 1)'\n",
        "models/m.sql": model("SELECT g, SUM(@more('x')) / 2 AS s\nFROM raw.t\nGROUP BY g"),
    }
    groups = project(tmp_path, files).compiled.models["m__s1"]
    assert "SUM((x +\n 1))" in groups.sql
    assert groups.line_of(groups.sql.index("+")) == 2
    assert groups.line_of(groups.sql.index("raw.t")) == 3
    assert groups.line_of(groups.sql.index("GROUP")) >= 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (model("SELECT g FROM raw.t"), "does not end in GROUP BY"),
        (model("SELECT g, MEDIAN(x) AS a FROM raw.t GROUP BY g"), "MEDIAN"),
        (model(QUERY, "row_state auto"), "it is a view"),
        (model(QUERY.replace("raw.t", "raw.t WHERE d < now()")), "now"),
    ],
)
def test_a_model_that_stays_whole_says_why(tmp_path: Path, text: str, why: str) -> None:
    found = project(tmp_path, {"models/m.sql": text})
    assert list(found.expected) == ["m"]
    assert why in found.expected["m"].stateless
    # a project's default asks nothing of models that it does not help
    quiet = {
        "models/m.sql": text.replace("row_state auto", "tags [x]"),
        "sqlbuild_project.toml": '[defaults]\nrow_state = "auto"\n',
    }
    assert project(tmp_path, quiet).expected["m"].stateless == ""


def test_a_disabled_model_takes_its_groups_along(tmp_path: Path) -> None:
    keys = "materialized table, row_state auto, enabled false"
    found = project(tmp_path, {"models/m.sql": model(QUERY, keys), "models/a.sql": "SELECT 1 AS a"})
    assert found.compiled.disabled == {"m", "m__s1"}
    assert list(found.expected) == ["a"]


def test_a_name_that_groups_need_is_taken(tmp_path: Path) -> None:
    with pytest.raises(SqbError) as caught:
        _ = project(tmp_path, {**FILES, "models/m__s1.sql": "SELECT 1 AS a"}).compiled
    assert caught.value.code == "P007"
