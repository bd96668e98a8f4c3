"""``sqb janitor`` on a lake that was built without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from small_lakes import SmallLake

Sqb = Callable[..., Any]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[SmallLake]:
    """The model ``t``, and the table of a model that is gone."""
    made = SmallLake(tmp_path)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "t.sql").write_text("MODEL (materialized table);\nSELECT 1L AS id")
    (tmp_path / "sqlbuild_project.toml").write_text(
        f'name = "small"\n[catalog]\nuri = "{made.catalog.uri}"\n'
        f'warehouse = "{made.catalog.warehouse}"\n'
    )
    made.build("t", [1])
    made.build("gone", [1, 2])
    yield made
    made.close()


@pytest.mark.parametrize("json", [True, False])
def test_it_asks_before_it_removes(lake: SmallLake, sqb: Sqb, json: bool) -> None:
    result = sqb("janitor", *(["--json"] if json else []), cwd=lake.folder)
    assert result.code == 2
    assert "C010" in (result.out if json else result.err)
    assert lake.catalog.head("dev", "gone") is not None


def test_a_dry_run_shows_and_removes_nothing(lake: SmallLake, sqb: Sqb) -> None:
    before = lake.files()
    result = sqb("janitor", "--dry-run", cwd=lake.folder)
    assert result.code == 0
    assert "Relations that no model or seed makes: 1 relation" in result.out
    assert "dev.gone" in result.out
    assert "Would remove" in result.out.splitlines()[-1]
    document = sqb("janitor", "--dry-run", "--json", cwd=lake.folder).json("janitor")
    assert document["dry_run"] is True
    assert [(r["kind"], r["relation"]) for r in document["removed"]] == [("relation", "dev.gone")]
    assert lake.files() == before


def test_it_removes_and_then_has_nothing_to_do(lake: SmallLake, sqb: Sqb) -> None:
    result = sqb("janitor", "--yes", "--json", cwd=lake.folder)
    document = result.json("janitor")
    (removed,) = document["removed"]
    assert (removed["kind"], removed["relation"]) == ("relation", "dev.gone")
    assert document["summary"]["files"] == removed["files"] > 0
    assert lake.catalog.head("dev", "gone") is None
    assert lake.read("t") == [1]
    assert sqb("janitor", "--yes", cwd=lake.folder).out == "Nothing to remove\n"
    assert sqb("janitor", "--yes", "--json", cwd=lake.folder).json("janitor")["removed"] == []


def test_what_the_patterns_name_is_left_alone(lake: SmallLake, sqb: Sqb) -> None:
    with (lake.folder / "sqlbuild_project.toml").open("a") as file:
        file.write('[janitor]\nexclude_patterns = ["gone*"]\n')
    result = sqb("janitor", "--dry-run", cwd=lake.folder)
    assert "left alone: dev.gone: exclude_patterns names it" in result.out
    assert result.out.endswith("Nothing to remove\n")


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('reader_grace = "10s"', "at least a minute"),
        ('orphan_age = "10m"', "at least 60 minutes"),
        ("keep_snapshots = 0", "a whole number of at least 1"),
        ("keep_snapshot = 3", "did you mean `keep_snapshots`?"),
    ],
)
def test_settings_that_would_be_dangerous_are_refused(
    lake: SmallLake, sqb: Sqb, line: str, text: str
) -> None:
    with (lake.folder / "sqlbuild_project.toml").open("a") as file:
        file.write(f"[janitor]\n{line}\n")
    result = sqb("janitor", "--yes", cwd=lake.folder)
    assert result.code == 2
    assert text in result.err
