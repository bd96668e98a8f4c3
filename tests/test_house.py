"""Rules of the house that no linter knows."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import sqb

ROOT = Path(sqb.__file__).parent
MODULES = sorted(
    info.name for info in pkgutil.walk_packages([str(ROOT)], "sqb.") if info.name != "sqb.__main__"
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is(path: Path) -> None:
    assert "templates" in path.parts or ast.get_docstring(ast.parse(path.read_text()))
