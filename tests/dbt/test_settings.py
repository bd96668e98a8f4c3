"""``[dbt]``: its defaults, its values, and when a config file counts at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.dbt.settings import DbtSettings, Found, read_settings
from sqb.errors import SqbError


def found(root: Path, toml: str | None) -> Found:
    if toml is not None:
        (root / "sqlbuild_project.toml").write_text(toml)
    return read_settings(root, variables={}, environ={})


def test_without_a_config_everything_has_a_default(tmp_path: Path) -> None:
    assert found(tmp_path, None) == Found(DbtSettings())
    assert DbtSettings().replay_on_change == "forward_only"
    assert DbtSettings().identity == "full"


def test_a_config_of_another_project_above_does_not_count(tmp_path: Path) -> None:
    assert found(tmp_path, 'name = "other"\n') == Found(DbtSettings())
    (tmp_path / "dbt_project.yml").write_text("name: a\n")
    assert found(tmp_path, 'name = "own"\n').config is not None


def test_values_are_taken_with_folders_made_absolute(tmp_path: Path) -> None:
    read = found(
        tmp_path,
        'default_target = "dev"\n[targets.dev]\n[targets.lake]\n[dbt]\nproject_dir = "shop"\n'
        'profiles_dir = "p"\ntarget_path = "out"\ntarget = "prod"\nsqb_target = "lake"\n'
        'replay_on_change = "full"\nidentity = "normalised"\nreplace_views = true\n',
    )
    assert read.settings == DbtSettings(
        project_dir=str(tmp_path / "shop"),
        profiles_dir=str(tmp_path / "p"),
        target_path="out",
        target="prod",
        sqb_target="lake",
        replay_on_change="full",
        identity="normalised",
        replace_views=True,
    )
    assert read.config is not None
    assert read.config.target.name == "lake"
    assert read.files == (str(tmp_path / "sqlbuild_project.toml"),)


@pytest.mark.parametrize(
    ("toml", "named"),
    [
        ("[dbt]\n", False),
        ('[dbt]\n[catalog]\nname = "lake"\n', True),
        ('[dbt]\n[targets.dev.catalog]\nname = "lake"\n', True),
        ('[dbt]\n[targets.prod.catalog]\nname = "lake"\n', False),
    ],
)
def test_a_catalog_counts_only_where_it_is_written_down(
    tmp_path: Path, toml: str, named: bool
) -> None:
    assert (found(tmp_path, toml).catalog is not None) == named


@pytest.mark.parametrize(
    "line",
    ['replay_on_change = "bounded-3d"', 'identity = "hash"', "replace_views = 1", 'projekt = "x"'],
)
def test_wrong_values_are_refused_when_read(tmp_path: Path, line: str) -> None:
    with pytest.raises(SqbError) as caught:
        found(tmp_path, f"[dbt]\n{line}\n")
    assert caught.value.code in {"C003", "C004"}
    assert caught.value.line == 2
