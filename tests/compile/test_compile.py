"""Files in, compiled project out: what is read, what is cached, what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sqb.api import Project
from sqb.errors import SqbError


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    (root / "sqlbuild_project.toml").touch()
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root


def project(root: Path, files: Mapping[str, str | bytes], **environ: str) -> Project:
    return Project(write(root, files), environ=environ)


GOOD = {
    "models/staging/stg_orders.sql": "SELECT id, @cents('amount') AS amount FROM orders",
    "models/daily.sql": (
        "MODEL (\n  materialized table,\n  tags [mart],\n);\n"
        "SELECT s.id, n.name, s.amount FROM stg_orders s JOIN names n ON n.id = s.id\n"
        "WHERE s.amount > @@smallest AND n.region = '@@region' AND r = @@ENV:REGION"
    ),
    "macros/money.py": "def cents(column):\n    return f'({column} / 100)'\n",
    "sources/raw.yml": "sources:\n  - name: orders\n    schema: raw\n",
    "seeds/names.csv": "id,name,region\n1,Anna,eu\n",
    "sqlbuild_project.toml": "[vars]\nsmallest = 5\n",
}


def test_a_whole_project(tmp_path: Path) -> None:
    found = project(tmp_path, GOOD, REGION="'eu'")
    compiled = found.compiled
    assert compiled.models["stg_orders"].sql == "SELECT id, (amount / 100) AS amount FROM orders"
    assert compiled.parents == {
        "stg_orders": ("orders",),
        "daily": ("stg_orders", "names"),
        "names": (),
        "orders": (),
    }
    assert "s.amount > 5 AND n.region = '@@region' AND r = 'eu'" in compiled.models["daily"].sql
    assert found.graph.order == ["names", "orders", "stg_orders", "daily"]
    assert found.expected["daily"].materialized == "table"


REUSED = """
import sys
from sqb.api import Project
found = Project(sys.argv[1])
assert set(found.expected) == {"stg_orders", "daily", "names"}
loaded = {m.partition(".")[0] for m in sys.modules}
print(sorted(loaded & {"sqlglot", "yaml", "pyspark", "pyiceberg", "pyarrow", "rich", "csv"}))
"""


def test_unchanged_files_are_never_tokenised_again(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    for expected in ("['csv', 'sqlglot', 'yaml']", "[]"):
        out = subprocess.run(
            [sys.executable, "-c", REUSED, str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
            env={"REGION": "'eu'", "PYTHONPATH": ":".join(sys.path)},
        )
        assert out.stdout.strip() == expected


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("models/daily.sql", "SELECT s.id FROM stg_orders s"),
        ("macros/money.py", "def cents(column):\n    return f'({column} / 10)'\n"),
        ("sqlbuild_project.toml", "[vars]\nsmallest = 6\n"),
        ("seeds/names.csv", "id,name,region\n1,Anne,eu\n"),
        (
            "seeds/names.yml",
            "seeds:\n  - name: names\n    columns:\n      - {name: id, type: STRING}\n",
        ),
    ],
)
def test_every_edit_reaches_the_identity_through_the_cache(
    tmp_path: Path, path: str, content: str
) -> None:
    before = {n: e.version for n, e in project(tmp_path, GOOD, REGION="'eu'").expected.items()}
    after = {
        n: e.version for n, e in project(tmp_path, {path: content}, REGION="'eu'").expected.items()
    }
    assert before["daily"] != after["daily"]
    assert (before["names"] != after["names"]) == path.startswith("seeds/")


def test_an_environment_value_reaches_the_identity_through_the_cache(tmp_path: Path) -> None:
    before = project(tmp_path, GOOD, REGION="'eu'").expected
    after = project(tmp_path, {}, REGION="'us'").expected
    assert before["daily"].query != after["daily"].query
    assert before["stg_orders"].query == after["stg_orders"].query


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SELECT 1 AS a", "select 1 as a -- one", True),
        ("SELECT 1 AS a", "SELECT 1 AS a;;\n-- one;\n/* two */ ;\n", True),
        (
            "MODEL (tags [x]);\nSELECT 1 AS a",
            "MODEL (tags [y], description 'd');\nSELECT 1 AS a",
            True,
        ),
        ("SELECT 1 AS a", "MODEL (materialized table);\nSELECT 1 AS a", False),
        (
            "MODEL (materialized table);\nSELECT 1 AS a",
            "MODEL (materialized table, partitioned_by [a]);\nSELECT 1 AS a",
            False,
        ),
        ("SELECT 1 AS a", "SELECT 2 AS a", False),
    ],
)
def test_what_is_part_of_the_identity(tmp_path: Path, one: str, other: str, same: bool) -> None:
    first = project(tmp_path, {"models/m.sql": one}).expected["m"].local
    second = project(tmp_path, {"models/m.sql": other}).expected["m"].local
    assert (first == second) == same


def test_session_settings_that_change_results_are_part_of_the_identity(tmp_path: Path) -> None:
    def local(toml: str) -> str:
        files = {"models/m.sql": "SELECT 1 AS a", "sqlbuild_project.toml": toml}
        return project(tmp_path, files).expected["m"].local

    plain = local("")
    assert local('[spark.conf]\n"spark.sql.session.timeZone" = "UTC"\n') == plain
    assert local('[spark.conf]\n"spark.sql.shuffle.partitions" = "9"\n') == plain
    assert local('[spark.conf]\n"spark.sql.session.timeZone" = "Europe/Berlin"\n') != plain
    assert local('[spark.conf]\n"spark.sql.ansi.enabled" = "false"\n') != plain
    assert local('[spark.conf]\n"spark.sql.legacy.charVarcharAsString" = "true"\n') != plain


def test_the_version_is_the_same_in_every_target(tmp_path: Path) -> None:
    write(tmp_path, {**GOOD, "sqlbuild_project.toml": "[vars]\nsmallest = 5\n[targets.prod]\n"})
    environ = {"REGION": "'eu'"}
    dev, prod = (Project(tmp_path, target=t, environ=environ) for t in (None, "prod"))
    assert [e.version for e in dev.expected.values()] == [e.version for e in prod.expected.values()]
    assert (dev.expected["daily"].namespace, prod.expected["daily"].namespace) == ("dev", "prod")


BAD: list[tuple[str, dict[str, str | bytes], str, str | None, int | None, str | None]] = [
    (
        "an unknown reference",
        {"models/a.sql": "SELECT 1 AS x", "models/b.sql": "SELECT *\nFROM aa"},
        "P005",
        "models/b.sql",
        2,
        "did you mean `a`?",
    ),
    (
        "a circle",
        {"models/a.sql": "SELECT * FROM b", "models/b.sql": "SELECT * FROM a"},
        "P006",
        "models/a.sql",
        1,
        None,
    ),
    (
        "a model that reads itself",
        {"models/a.sql": "SELECT * FROM a"},
        "P006",
        "models/a.sql",
        1,
        None,
    ),
    (
        "two models with one name",
        {"models/x/a.sql": "SELECT 1 AS i", "models/y/a.sql": "SELECT 1 AS i"},
        "P007",
        "models/y/a.sql",
        1,
        None,
    ),
    (
        "names that differ in case only",
        {"models/a.sql": "SELECT 1 AS i", "models/A.sql": "SELECT 1 AS i"},
        "P007",
        None,
        1,
        None,
    ),
    (
        "a model and a seed with one name",
        {"models/a.sql": "SELECT 1 AS i", "seeds/a.csv": "x\n1\n"},
        "P007",
        "seeds/a.csv",
        1,
        None,
    ),
    (
        "a model named by its schema",
        {"models/a.sql": "SELECT 1 AS i", "models/b.sql": "SELECT * FROM dev.a"},
        "P014",
        "models/b.sql",
        1,
        "write just a",
    ),
    (
        "a model named by its alias and schema",
        {
            "models/a.sql": "MODEL (schema marts, alias z);\nSELECT 1 AS i",
            "models/b.sql": "SELECT * FROM dev_marts.z",
        },
        "P014",
        "models/b.sql",
        1,
        "write just a",
    ),
    (
        "a source that is a model's own table",
        {
            "models/a.sql": "SELECT 1 AS i",
            "sources/s.yml": "sources:\n  - name: s\n    schema: dev\n    table: a\n",
        },
        "P014",
        "sources/s.yml",
        2,
        None,
    ),
    (
        "a macro file that exits",
        {"macros/m.py": "raise SystemExit(3)\n", "models/a.sql": "SELECT 1 AS a"},
        "P008",
        "macros/m.py",
        1,
        None,
    ),
    (
        "a seed called as a model",
        {"seeds/s.csv": "x\n1\n", "models/b.sql": 'SELECT * FROM __ref("s")'},
        "P015",
        "models/b.sql",
        1,
        'write __seed("s") or just s',
    ),
    (
        "a disabled model",
        {
            "models/a.sql": "MODEL (enabled false);\nSELECT 1 AS i",
            "models/b.sql": "SELECT * FROM a",
        },
        "P005",
        "models/b.sql",
        1,
        None,
    ),
    (
        "an unknown key",
        {"models/a.sql": "MODEL (\n  materialised table\n);\nSELECT 1 AS i"},
        "P002",
        "models/a.sql",
        2,
        "did you mean `materialized`?",
    ),
    ("broken SQL", {"models/a.sql": "MODEL ();\n\nSELECT FROM"}, "P004", "models/a.sql", 3, None),
    ("an untyped column", {"models/a.sql": "SELECT NULL AS x"}, "P013", "models/a.sql", 1, None),
    (
        "a later kind",
        {"models/a.sql": "MODEL (\n materialized incremental, cursor a);\nSELECT 1 AS a"},
        "C011",
        "models/a.sql",
        2,
        None,
    ),
    (
        "bytes that are no text",
        {"models/a.sql": b"SELECT\n'\xff'"},
        "P017",
        "models/a.sql",
        2,
        None,
    ),
    ("a broken seed", {"seeds/s.csv": "a,b\n1\n"}, "P012", "seeds/s.csv", 2, None),
    (
        "broken YAML",
        {"sources/s.yml": "sources:\n  - name: [\n"},
        "P011",
        "sources/s.yml",
        None,
        None,
    ),
    (
        "broken TOML",
        {"sqlbuild_project.toml": "name = \n"},
        "C002",
        "sqlbuild_project.toml",
        1,
        None,
    ),
    (
        "a macro that can't be imported",
        {"macros/m.py": "x = 1\nraise ValueError('no')\n", "models/a.sql": "SELECT 1 AS a"},
        "P008",
        "macros/m.py",
        2,
        None,
    ),
    (
        "two tables of one name",
        {"models/a.sql": "SELECT 1 AS i", "models/b.sql": "MODEL (alias a);\nSELECT 1 AS i"},
        "P007",
        "models/b.sql",
        1,
        None,
    ),
    ("a function, too early", {"functions/f.sql": "x"}, "C011", "functions/f.sql", 1, None),
]


@pytest.mark.parametrize(
    ("files", "code", "file", "line", "help_"), [c[1:] for c in BAD], ids=[c[0] for c in BAD]
)
def test_bad_input_is_a_clear_error_and_touches_nothing(
    tmp_path: Path,
    files: dict[str, str | bytes],
    code: str,
    file: str | None,
    line: int | None,
    help_: str | None,
) -> None:
    with pytest.raises(SqbError) as caught:
        _ = project(tmp_path, files).plan()
    error = caught.value
    assert (error.code, error.exit_code) == (code, 2)
    assert file is None or error.file == file
    assert line is None or error.line == line
    assert help_ is None or error.help == help_
    assert not (tmp_path / "lake").exists()


def test_a_plan_writes_nothing_into_the_lake(tmp_path: Path) -> None:
    project(tmp_path, {"models/a.sql": "SELECT 1 AS i"}).plan()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".sqb", "models", "sqlbuild_project.toml"]
    assert (tmp_path / ".sqb" / ".gitignore").read_text() == "*\n"


def test_a_module_that_a_macro_imports_reaches_the_identity_through_the_cache(
    tmp_path: Path,
) -> None:
    files = {
        "helpers.py": "COLUMN = 'a'\n",
        "macros/m.py": "from helpers import COLUMN\n\ndef column():\n    return COLUMN\n",
        "models/x.sql": "SELECT 1 AS @column()",
    }
    assert project(tmp_path, files).compiled.models["x"].sql == "SELECT 1 AS a"
    assert project(tmp_path, {}).compiled.models["x"].sql == "SELECT 1 AS a"
    changed = project(tmp_path, {"helpers.py": "COLUMN = 'long'\n"})
    assert changed.compiled.models["x"].sql == "SELECT 1 AS long"
