"""Sources that can't be seen well are told one by one; nothing here starts Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.api import Project
from sqb.errors import SqbError
from sqb.execution.asking import _settled
from sqb.freshness.values import Answer
from sqb.lake.catalog import Point, SqlCatalog


def project(root: Path, sources: str) -> Project:
    conf = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{root / 'other.db'}",
    }
    lines = "".join(f'"spark.sql.catalog.other{k}" = "{v}"\n' for k, v in conf.items())
    (root / "sqlbuild_project.toml").write_text(f"[spark.conf]\n{lines}")
    (root / "models").mkdir()
    (root / "models/m.sql").write_text("MODEL (materialized table);\nSELECT 1 AS one FROM seen")
    (root / "sources").mkdir()
    (root / "sources/s.yml").write_text(f"sources:\n{sources}")
    return Project(root, environ={})


def test_metadata_that_only_spark_can_read_makes_one_source_unknown(tmp_path: Path) -> None:
    catalog = SqlCatalog("other", f"sqlite:///{tmp_path}/other.db", "")
    catalog.commit([Point("x", "seen", "table", "s3://nowhere/00000.metadata.json", None)])
    found = project(
        tmp_path,
        "  - {name: seen, catalog: other, schema: x}\n"
        "  - {name: gone, catalog: other, schema: x}\n"
        "  - {name: e, expression: SELECT a FROM seen}\n"
        "  - {name: r, expression: SELECT rand() AS a}\n",
    )
    told = {s.name: s.message for s in found.freshness()}
    assert "00000.metadata.json" in told["seen"]
    assert told["gone"] == "there is no table other.x.gone"
    assert told["e"].startswith("it reads seen, and ")
    assert told["r"] == "its expression may give other rows each time"
    plan = found.plan()
    assert [(n.name, n.action) for n in plan.nodes] == [("m", "run")]
    assert [(w.code, w.node) for w in plan.warnings] == [("S306", "seen")]


def test_a_catalog_that_can_t_be_opened_makes_its_sources_unknown(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("this is no database, however long it is" * 100)
    found = project(tmp_path, "  - {name: seen, catalog: other, schema: x}\n")
    (source,) = found.freshness()
    assert source.status == "unknown"
    assert "catalog `other` can't be opened" in source.message


def test_files_that_can_t_be_listed_are_told_of_their_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_: object) -> None:
        raise PermissionError(13, "Permission denied", "d/x")

    monkeypatch.setattr("sqb.execution.sources.list_files", locked)
    found = project(tmp_path, "  - {name: seen, path: d, format: csv}\n")
    (source,) = found.freshness()
    assert source.message.startswith("its files can't be listed: ")
    with pytest.raises(SqbError, match="can't be listed"):
        found.plan()


def test_a_value_of_files_that_changed_meanwhile_is_none(tmp_path: Path) -> None:
    """Kept with the version before it, it would hide the change when that version comes back."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d/a.csv").write_text("id\n1\n")
    found = project(tmp_path, "  - {name: seen, path: d, format: csv}\n")
    look = found.watch.look(found.observe())
    answer = Answer("1")
    assert _settled(look, ["seen"], answer) == answer
    (tmp_path / "d/a.csv").write_text("id\n12\n")
    changed = _settled(look, ["seen"], answer)
    assert (changed.value, changed.lasting) == (None, False)
