"""Finding a dbt project, the dbt that runs it and its versions, without running it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqb.dbt.locate import find_dbt, find_project, interpreter_of, versions_of
from sqb.errors import SqbError


def test_the_nearest_project_is_found(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: a\n")
    deep = tmp_path / "models" / "staging"
    deep.mkdir(parents=True)
    assert find_project(deep, None, {}) == tmp_path
    assert find_project(Path("/"), str(tmp_path), {}) == tmp_path
    assert find_project(Path("/"), None, {"DBT_PROJECT_DIR": str(tmp_path)}) == tmp_path
    for given in (None, str(deep)):
        with pytest.raises(SqbError) as caught:
            find_project(Path("/"), given, {})
        assert caught.value.code == "B001"


def executable(path: Path, first: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(first)
    path.chmod(0o755)
    return path


def test_which_dbt_runs(tmp_path: Path) -> None:
    named = executable(tmp_path / "named" / "my-dbt")
    beside = executable(tmp_path / "venv" / "bin" / "dbt")
    on_path = executable(tmp_path / "path" / "dbt")
    python = str(beside.parent / "python")
    environ = {"PATH": str(on_path.parent), "DBT_EXECUTABLE": str(named)}
    assert find_dbt(environ, python) == named
    del environ["DBT_EXECUTABLE"]
    assert find_dbt(environ, python) == beside
    beside.unlink()
    assert find_dbt(environ, python) == on_path
    assert find_dbt({**environ, "DBT_EXECUTABLE": "dbt"}, python) == on_path
    for missing in ({"PATH": ""}, {**environ, "DBT_EXECUTABLE": "/nowhere/dbt"}):
        with pytest.raises(SqbError) as caught:
            find_dbt(missing, python)
        assert caught.value.code == "B002"


def environment(root: Path, **packages: str) -> Path:
    folder = root / "lib" / "python3.11" / "site-packages"
    for name, version in packages.items():
        (folder / f"{name}-{version}.dist-info").mkdir(parents=True)
    (root / "bin").mkdir(parents=True, exist_ok=True)
    (root / "pyvenv.cfg").write_text("")
    return root / "bin" / "python"


@pytest.mark.parametrize(
    "first",
    [
        "#!{python}\n",
        "#!{python} -E\n",
        "#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n",
        '#!/bin/sh\n\'\'\'exec\' "{python}" "$0" "$@"\n',
        "#!/usr/bin/env python\n",
    ],
)
def test_versions_are_read_beside_the_interpreter(tmp_path: Path, first: str) -> None:
    python = environment(tmp_path / "v", dbt_core="1.11.16", dbt_spark="1.11.0", click="8.1")
    executable(python)
    dbt = executable(tmp_path / "v" / "bin" / "dbt", first.format(python=python))
    environ = {"PATH": str(python.parent)}
    assert interpreter_of(dbt, environ) == python
    assert versions_of(dbt, environ) == {"dbt-core": "1.11.16", "dbt-spark": "1.11.0"}


@pytest.mark.parametrize("first", ["#!/bin/bash\nexec poetry run dbt\n", "\x7fELF", "", "#!\n"])
def test_a_wrapper_stands_for_its_versions(tmp_path: Path, first: str) -> None:
    dbt = executable(tmp_path / "dbt", first)
    before = versions_of(dbt, {})
    assert versions_of(dbt, {}) == before
    assert list(before) == ["dbt"]
    os.utime(dbt, (1, 1))
    assert versions_of(dbt, {}) != before
