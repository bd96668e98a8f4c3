"""What is remembered of a dbt project, and that a plan without change imports next to nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from dbt_manifests import nodes_of

from sqb.dbt.known import Known, Memory, Place
from sqb.project.config_values import CatalogConfig


def known() -> Known:
    catalog = CatalogConfig(uri="sqlite:////lake/catalog.db", warehouse="/lake")
    place = Place("little", "dev", "little", "session", catalog)
    return Known("little", "1.11.16", tuple(nodes_of().values()), ("model.little.off",), place)


def test_a_state_comes_back_as_it_was(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    assert memory.recall("k" * 64) is None
    memory.remember("k" * 64, known())
    assert memory.recall("k" * 64) == known()
    assert memory.recall("l" * 64) is None
    found = memory.latest()
    assert found is not None
    assert found.by_id() == nodes_of()


def test_selections_belong_to_a_state(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.remember("a" * 64, known())
    memory.remember_selection("a" * 64, ["--select", "x+"], ["model.little.x"])
    assert memory.recall_selection("a" * 64, ["--select", "x+"]) == ("model.little.x",)
    assert memory.recall_selection("a" * 64, ["--select", "y"]) is None
    assert memory.recall_selection("b" * 64, ["--select", "x+"]) is None


def test_only_some_states_are_kept_and_the_used_ones_stay(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    keys = [f"{i:02d}" * 32 for i in range(20)]
    for i, key in enumerate(keys):
        memory.remember(key, known())
        # the clock may be too coarse to tell them apart
        os.utime(tmp_path / "known" / key[:32], (i, i))
    memory.recall(keys[-12])
    memory.remember("x" * 64, known())
    kept = [key for key in keys if memory.recall(key) is not None]
    assert keys[-12] in kept
    assert len(kept) == 11


def test_a_damaged_state_is_none(tmp_path: Path) -> None:
    memory = Memory(tmp_path)
    memory.remember("a" * 64, known())
    (tmp_path / "known" / ("a" * 32) / "nodes.mp").write_bytes(b"\x01garbage")
    assert memory.recall("a" * 64) is None
    assert memory.latest() is None


def test_knowing_without_change_imports_nothing_heavy(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    (tmp_path / "models").mkdir()
    script = """
import sys
from pathlib import Path
from sqb.dbt.known import Memory
from sqb.dbt.locate import find_dbt, versions_of
from sqb.dbt.reads import look
root = Path(sys.argv[1])
key = look(root, root / ".sqb/dbt/files.mp", environ={}, variables={}, settings={}).key
Memory(root / ".sqb/dbt").recall(key)
heavy = {"yaml", "jinja2", "pyiceberg", "sqlglot", "pyspark", "pyarrow", "rich", "dbt"}
print(sorted(heavy & set(sys.modules)))
"""
    for expected in ("['yaml']", "[]"):
        done = subprocess.run(
            [sys.executable, "-c", script, str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == expected
