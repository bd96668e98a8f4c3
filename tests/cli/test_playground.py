"""The playground: a project that plans at once, and a till that writes the same rows every time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sqb.dbt.catalog import catalog_from_conf
from sqb.dbt.profile import read_profile


@pytest.fixture
def waffles(sqb, tmp_path: Path) -> Path:
    assert sqb("playground", "waffles", cwd=tmp_path).code == 0
    return tmp_path / "waffles"


def next_day(root: Path, *arguments: str) -> str:
    return subprocess.run(
        [sys.executable, "raw/next_day.py", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_a_playground_is_planned_at_once(sqb, waffles: Path) -> None:
    plan = sqb("plan", "--json", cwd=waffles).json("plan")
    assert plan["summary"]["run"] == plan["summary"]["selected"] == 15
    assert plan["warnings"] == []
    assert {node["materialized"] for node in plan["nodes"]} == {"seed", "view", "table"}


def test_the_till_goes_on_where_it_stopped(waffles: Path) -> None:
    assert next_day(waffles) == "the till wrote 13 orders with 25 items of 2026-03-16\n"
    assert next_day(waffles, "2").endswith("of 2026-03-17 to 2026-03-18\n")


def test_the_next_commands_are_named(sqb, tmp_path: Path) -> None:
    shown = sqb("playground", "my waffles", cwd=tmp_path).out
    assert "12 models, 3 seeds\n  the till wrote 171 orders" in shown
    assert max(map(len, shown.replace(sys.executable, "python").splitlines())) <= 80
    assert "  cd 'my waffles'\n" in shown


def test_json_lists_what_was_written(sqb, tmp_path: Path) -> None:
    made = sqb("playground", "waffles", "--json", cwd=tmp_path).json("playground")
    assert "raw/next_day.py" in made["written"]


def test_what_is_there_is_left_alone(sqb, waffles: Path, tmp_path: Path) -> None:
    before = sorted(waffles.rglob("*"))
    again = sqb("playground", "waffles", cwd=tmp_path)
    assert (again.code, again.err.splitlines()[0][:12]) == (2, "error[C009]:")
    assert sorted(waffles.rglob("*")) == before
    (waffles / "sqlbuild_project.toml").unlink()
    assert "already holds tables" in sqb("playground", "waffles", cwd=tmp_path).err


def test_the_shop_as_a_dbt_project(sqb, tmp_path: Path) -> None:
    made = sqb("playground", "x", "--template", "dbt", cwd=tmp_path)
    assert made.code == 0
    assert "sqb dbt build" in made.out
    root = tmp_path / "x"
    written = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert written >= {
        *("dbt_project.yml", "profiles.yml", "raw/next_day.py", "seeds/menu.csv", ".gitignore"),
        *("models/marts/fct_orders.sql", "lake/catalog.db"),
    }
    profile = read_profile(root / "profiles.yml", "sqb", target=None, environ={}, variables={})
    catalog = catalog_from_conf(profile.conf, root)
    assert catalog is not None
    assert (catalog.uri, profile.method) == (f"sqlite:///{root / 'lake' / 'catalog.db'}", "session")
    again = sqb("playground", "x", "--template", "dbt", cwd=tmp_path)
    assert again.code == 2


@pytest.mark.parametrize(("template", "release"), [("virtual", "0.5"), ("python", "0.5")])
def test_other_templates_name_their_release(
    sqb, tmp_path: Path, template: str, release: str
) -> None:
    refused = sqb("playground", "x", "--template", template, cwd=tmp_path)
    assert refused.code == 2
    assert f"arrives in release {release}" in refused.err
    assert not (tmp_path / "x").exists()
