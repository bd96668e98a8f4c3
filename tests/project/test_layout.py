"""Finding a project and reading its files."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from sqb.errors import SqbError
from sqb.project.layout import ProjectFiles, find_project, read_files


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def test_the_project_is_the_nearest_folder_above_that_holds_the_toml(tmp_path: Path) -> None:
    write(tmp_path, "sqlbuild_project.toml", "models/a/b/c.sql")
    assert find_project(tmp_path / "models" / "a" / "b") == tmp_path
    assert find_project(tmp_path) == tmp_path


def test_no_project_names_sqb_init(tmp_path: Path) -> None:
    with pytest.raises(SqbError) as caught:
        find_project(tmp_path)
    assert caught.value.code == "C001"
    assert "sqb init" in str(caught.value.help)


def test_every_kind_of_file_is_found_where_the_contract_says(tmp_path: Path) -> None:
    write(
        tmp_path,
        *("models/b.sql", "models/a/z.sql", "models/lake/m.sql", "models/p.py", "models/x.md"),
        *("sources/s.yml", "sources/t.yaml", "sources/u.txt"),
        *("seeds/c.csv", "seeds/d/e.csv", "seeds/c.yml"),
        *("macros/m.py", "macros/sub/n.py", "functions/f.sql", "tests/unit/t.sql", "tests/x.sql"),
        *("hooks/h.py", "audits/a.sql", "materializations/k.py", "loaders/__init__.py"),
        *("models/.hidden.sql", "models/.git/x.sql", "models/__pycache__/x.sql"),
        *(".sqb/compiled/b.sql", "lake/x.sql", ".venv/y.sql"),
    )
    found = read_files(tmp_path)
    assert list(found.models) == ["models/a/z.sql", "models/b.sql", "models/lake/m.sql"]
    assert found.models["models/b.sql"] == b"models/b.sql"
    assert list(found.sources) == ["sources/s.yml", "sources/t.yaml"]
    assert list(found.seeds) == ["seeds/c.csv", "seeds/d/e.csv"]
    assert list(found.seed_yaml) == ["seeds/c.yml"]
    assert list(found.macros) == ["macros/m.py"]
    assert found.later == (
        "audits/a.sql",
        "functions/f.sql",
        "hooks/h.py",
        "materializations/k.py",
        "models/p.py",
        "tests/unit/t.sql",
    )


def test_an_empty_project_has_no_files(tmp_path: Path) -> None:
    assert read_files(tmp_path) == ProjectFiles({}, {}, {}, {}, {}, ())


def test_large_files_are_read_whole(tmp_path: Path) -> None:
    content = os.urandom(65_536 * 3 + 17)
    (tmp_path / "seeds").mkdir()
    (tmp_path / "seeds" / "big.csv").write_bytes(content)
    (tmp_path / "seeds" / "edge.csv").write_bytes(content[:65_536])
    found = read_files(tmp_path)
    assert found.seeds["seeds/big.csv"] == content
    assert found.seeds["seeds/edge.csv"] == content[:65_536]


def test_linked_folders_are_followed_once(tmp_path: Path) -> None:
    write(tmp_path, "models/a.sql", "shared/s.sql")
    (tmp_path / "models" / "loop").symlink_to(tmp_path / "models")
    (tmp_path / "models" / "shared").symlink_to(tmp_path / "shared")
    (tmp_path / "shared" / "again").symlink_to(tmp_path / "shared")
    assert list(read_files(tmp_path).models) == ["models/a.sql", "models/shared/s.sql"]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "gone.sql").symlink_to(tmp_path / "nowhere")
    with pytest.raises(SqbError) as caught:
        read_files(tmp_path)
    assert (caught.value.code, caught.value.file) == ("P018", "models/gone.sql")


def test_thousands_of_models_are_read_in_a_moment(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for number in range(2_000):
        (tmp_path / "models" / f"m{number}.sql").write_text("SELECT 1 AS a")
    started = time.perf_counter()
    assert len(read_files(tmp_path).models) == 2_000
    assert time.perf_counter() - started < 2


def test_in_the_folder_of_a_dbt_project_all_files_are_dbts(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "a.sql").write_text("select {{ ref('b') }}")
    assert read_files(tmp_path).models
    (tmp_path / "dbt_project.yml").write_text("name: shop")
    assert read_files(tmp_path) == ProjectFiles({}, {}, {}, {}, {}, ())
