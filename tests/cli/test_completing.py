"""Completion: names of the project, in the shells themselves where they are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sqb.cli.completing import selectors
from sqb.graph.selectors import Selectable

SOURCE = Path(__file__).parents[2] / "src"

NODES = [
    Selectable("raw_orders", "seed", "seeds/raw_orders.csv", ()),
    Selectable("stg_orders", "model", "models/staging/eu/stg_orders.sql", ("daily",)),
    Selectable("mart", "model", "models/mart.sql", ("daily", "finance")),
    Selectable("payments", "source", "sources/a.yml", ()),
]


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("st", ["stg_orders"]),
        ("+st", ["+stg_orders"]),
        ("2+st", ["2+stg_orders"]),
        ("mart,ta", ["mart,tag:daily", "mart,tag:finance"]),
        ("stg_orders~m", ["stg_orders~mart"]),
        ("mart +ra", ["mart +raw_orders"]),
        ("tag:f", ["tag:finance"]),
        ("path:", ["path:staging", "path:staging/eu"]),
        ("pay", []),
        ("source:", ["source:payments+"]),
        ("nothing", []),
    ],
)
def test_the_last_name_of_a_selector_is_completed(typed: str, offered: list[str]) -> None:
    assert [value for value, _ in selectors(NODES, typed)] == offered


def ask(line: str, cwd: Path, **variables: str) -> tuple[list[str], str]:
    """What the program answers when a shell asks how ``line`` goes on."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("SQB_")}
    environ |= {"PYTHONPATH": str(SOURCE), "COMP_WORDS": line, "_SQB_COMPLETE": "bash_complete"}
    done = subprocess.run(
        [sys.executable, "-m", "sqb"],
        cwd=cwd,
        env=environ | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return [row.partition(",")[2] for row in done.stdout.split()], done.stderr


def test_models_sources_tags_and_targets_are_offered(shop: Path) -> None:
    assert ask("sqb explain m", shop) == (["mart"], "")
    assert ask("sqb build -s tag:", shop) == (["tag:daily"], "")
    assert ask("sqb plan --target=", shop) == (["dev"], "")


def test_a_broken_project_offers_its_files_and_no_error(shop: Path, tmp_path: Path) -> None:
    (shop / "models/mart.sql").write_text("MODEL (nonsense yes);\nSELECT 1 AS x")
    assert ask("sqb explain m", shop) == (["mart"], "")
    (shop / "sqlbuild_project.toml").write_text("][")
    assert ask("sqb explain m", shop) == ([], "")
    assert ask("sqb explain m", tmp_path) == ([], "")


def in_shell(shell: str, tmp_path: Path, shop: Path, script: str) -> str:
    """The answer of a real shell that has read the completion script."""
    path = tmp_path / "bin"
    path.mkdir()
    (path / "sqb").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m sqb "$@"\n')
    (path / "sqb").chmod(0o755)
    environ = {k: v for k, v in os.environ.items() if not k.startswith("SQB_")}
    environ |= {"PYTHONPATH": str(SOURCE), "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [shell, "-c", script],
        cwd=shop,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout


def test_bash_completes_behind_a_colon(tmp_path: Path, shop: Path) -> None:
    script = """
source <(sqb completion bash)
COMP_LINE='sqb plan -s tag:da' COMP_POINT=18
_sqb_completion sqb
printf '%s\\n' "${COMPREPLY[@]}"
COMP_LINE='sqb plan --select=+m' COMP_POINT=20
_sqb_completion sqb
printf '%s\\n' "${COMPREPLY[@]}"
"""
    assert in_shell("bash", tmp_path, shop, script).split() == ["daily", "+mart"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_names(tmp_path: Path, shop: Path) -> None:
    script = "sqb completion fish | source; complete -C 'sqb build -s mart,tag:'"
    assert in_shell("fish", tmp_path, shop, script).split() == ["mart,tag:daily", "tag"]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_reads_the_script(tmp_path: Path, shop: Path) -> None:
    script = "autoload -Uz compinit; compinit -u; source <(sqb completion zsh); echo ${_comps[sqb]}"
    assert in_shell("zsh", tmp_path, shop, script).strip() == "_sqb_completion"
