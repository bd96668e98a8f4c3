"""When dbt need not be asked: every kind of change to what it reads moves the key."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sqb.dbt.reads import Reading, env_names, look

FILES = {
    "dbt_project.yml": "name: shop\nmodel-paths: [models]\n",
    "packages.yml": "packages: [{local: pkg}]\n",
    "selectors.yml": "selectors: []\n",
    "models/a.sql": "select '{{ env_var(\"SHOP_LABEL\", 'x') }}' as a",
    "models/staging/b.sql": "select 2 as b",
    "models/schema.yml": "version: 2\n",
    "seeds/s.csv": "a\n1\n",
    "macros/m.sql": "{% macro m() %}1{% endmacro %}",
    "pkg/dbt_project.yml": "name: pkg\nmodel-paths: [code]\n",
    "pkg/code/p.sql": "select 1 as p",
    "pkg/unread/p.sql": "select 1 as p",
    "target/manifest.json": "{}",
    "logs/dbt.log": "",
    "lake/data.parquet": "x",
    ".git/HEAD": "x",
    "outside/profiles.yml": "shop: {}",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "dbt_packages").mkdir()
    (root / "dbt_packages" / "pkg").symlink_to(root / "pkg")
    old = time.time_ns() - 60_000_000_000
    for path in root.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(old, old))
    return root


def reading(root: Path, **given: Any) -> Reading:
    fields: dict[str, Any] = {
        "environ": {},
        "variables": {},
        "settings": {"target": "dev"},
        "extra": [root / "outside" / "profiles.yml"],
    }
    return look(root, root / ".sqb" / "dbt" / "files.mp", **{**fields, **given})


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda root: (root / name).write_text(text)


MOVES: list[tuple[str, Callable[[Path], object]]] = [
    ("a model", write("models/a.sql", "select 2 as a")),
    ("a model of the same size", write("models/staging/b.sql", "select 3 as b")),
    ("a new model", write("models/c.sql", "select 1")),
    ("a model that went", lambda root: (root / "models/staging/b.sql").unlink()),
    ("a YAML file", write("models/schema.yml", "version: 2 # x\n")),
    ("a seed", write("seeds/s.csv", "a\n2\n")),
    ("a macro", write("macros/m.sql", "{% macro m() %}2{% endmacro %}")),
    (
        "the project's file",
        write("dbt_project.yml", "name: shop\nmodel-paths: [models]\nvars: {}\n"),
    ),
    ("variables in a file of their own", write("vars.yml", "vars: {a: 1}\n")),
    ("the selectors", write("selectors.yml", "selectors: [{name: a}]\n")),
    ("the packages", write("packages.yml", "packages: []\n")),
    ("the lock of the packages", write("package-lock.yml", "sha1_hash: x\n")),
    ("what dbt shall ignore", write(".dbtignore", "*.tmp")),
    ("a model of a package", write("pkg/code/p.sql", "select 2 as p")),
    ("a package's file", write("pkg/dbt_project.yml", "name: pkg\nmodel-paths: [unread]\n")),
    ("a package that went", lambda root: (root / "dbt_packages" / "pkg").unlink()),
    ("the profile", write("outside/profiles.yml", "shop: {target: prod}")),
    ("the profile that went", lambda root: (root / "outside/profiles.yml").unlink()),
]


@pytest.mark.parametrize("move", [case[1] for case in MOVES], ids=[case[0] for case in MOVES])
def test_what_dbt_reads_moves_the_key(project: Path, move: Callable[[Path], object]) -> None:
    before = reading(project).key
    assert reading(project).key == before
    move(project)
    assert reading(project).key != before


STAYS: list[tuple[str, Callable[[Path], object]]] = [
    ("artifacts of dbt", write("target/manifest.json", "{1}")),
    ("logs", write("logs/dbt.log", "x")),
    ("tables beside the project", write("lake/data.parquet", "y")),
    ("git", write(".git/HEAD", "y")),
    ("a folder that a package does not name", write("pkg/unread/p.sql", "select 2")),
    ("a note at the top", write("README.md", "x")),
    ("a touched file", lambda root: (root / "models/a.sql").touch()),
    ("sqb's own folder", lambda root: (root / ".sqb" / "x.yml").write_text("x")),
]


@pytest.mark.parametrize("move", [case[1] for case in STAYS], ids=[case[0] for case in STAYS])
def test_what_dbt_does_not_read_leaves_the_key(
    project: Path, move: Callable[[Path], object]
) -> None:
    before = reading(project).key
    move(project)
    assert reading(project).key == before


@pytest.mark.parametrize(
    "given",
    [
        {"environ": {"SHOP_LABEL": "y"}},
        {"environ": {"DBT_ANYTHING": "y"}},
        {"environ": {"COMPUTED": "y"}, "met": ["COMPUTED"]},
        {"variables": {"start": "2026-01-01"}},
        {"settings": {"target": "prod"}},
        {"settings": {"target": "dev", "dbt": "1.12"}},
    ],
)
def test_what_dbt_is_called_with_moves_the_key(project: Path, given: dict[str, Any]) -> None:
    assert reading(project, **given).key != reading(project).key


def test_other_variables_of_the_environment_leave_the_key(project: Path) -> None:
    assert reading(project, environ={"HOME": "/x"}).key == reading(project).key


def test_variables_that_dbt_met_are_remembered(project: Path) -> None:
    reading(project, met=["COMPUTED"])
    found = reading(project, environ={"COMPUTED": "1", "SHOP_LABEL": "2", "OTHER": "3"})
    assert found.env == {"COMPUTED": "1", "SHOP_LABEL": "2"}


def test_only_moved_files_are_hashed(project: Path) -> None:
    # The change times are those of the fixture: what is that young is hashed again.
    store = project / ".sqb" / "dbt" / "files.mp"
    assert reading(project).hashed > 8
    _age(store)
    assert reading(project).hashed == 0
    (project / "models/a.sql").write_text("select 7")
    assert reading(project).hashed == 1


def test_a_file_that_was_just_written_is_hashed_again(project: Path) -> None:
    count = reading(project).hashed
    assert reading(project).hashed == count


def test_an_edit_that_keeps_size_and_time_is_seen(project: Path) -> None:
    path = project / "models/staging/b.sql"
    before = reading(project).key
    _age(project / ".sqb" / "dbt" / "files.mp")
    found = path.stat()
    path.write_text("select 9 as b")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert reading(project).key != before


def test_a_folder_that_leads_back_to_itself_is_walked_once(project: Path) -> None:
    (project / "models" / "again").symlink_to(project / "models")
    assert reading(project).key


def test_a_damaged_table_costs_only_time(project: Path) -> None:
    before = reading(project).key
    (project / ".sqb" / "dbt" / "files.mp").write_bytes(b"\x01garbage")
    assert reading(project).key == before


def test_folders_may_be_named_by_variables(project: Path) -> None:
    (project / "dbt_project.yml").write_text(
        "name: shop\nmodel-paths: [\"{{ env_var('FOLDER', 'models') }}\"]\n"
    )
    plain = reading(project)
    other = reading(project, environ={"FOLDER": "pkg"})
    assert other.layout.packages[0].folders[0] == "pkg"
    assert plain.layout.packages[0].folders[0] == "models"


def test_dbt_says_which_variables_it_met(tmp_path: Path) -> None:
    path = tmp_path / "partial_parse.msgpack"
    path.write_bytes(msgspec.msgpack.encode({"nodes": {}, "env_vars": {"A": "1", "B": "2"}}))
    assert env_names(path) == ("A", "B")
    path.write_bytes(b"garbage")
    assert env_names(path) == ()
    assert env_names(tmp_path / "absent") == ()


def _age(store: Path) -> None:
    """Make the table believe that its files were hashed long after they were written."""
    from sqb import cachefile
    from sqb.dbt.reads import _VERSION, Table

    table = cachefile.read(store, Table, _VERSION)
    assert table is not None
    later = msgspec.structs.replace(table, looked=time.time_ns() + 3_600_000_000_000)
    cachefile.write(store, later, _VERSION)
