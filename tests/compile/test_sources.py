"""Sources beyond the catalog as compiled projects hold them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.api import Project
from sqb.errors import SqbError

CATALOGS = '[spark.conf]\n"spark.sql.catalog.crm" = "x.Y"\n"spark.sql.catalog.crm.url" = "z"\n'


def project(root: Path, sources: str, toml: str = "", **models: str) -> Project:
    files = {f"models/{name}.sql": text for name, text in models.items()}
    files |= {"sources/s.yml": f"sources:\n{sources}", "sqlbuild_project.toml": toml}
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return Project(root, environ={})


def test_queries_inside_sources_are_resolved(tmp_path: Path) -> None:
    sources = (
        "  - {name: s, schema: raw}\n"
        "  - name: e\n"
        "    expression: SELECT a FROM s JOIN raw.other AS o ON o.a = s.a\n"
        "    freshness: {strategy: column, column: a, type: integer, filter: 'a > 1;'}\n"
        "  - name: q\n"
        "    schema: raw\n"
        "    freshness: {strategy: sql, type: string, query: 'SELECT max(v) FROM raw.loads;'}\n"
    )
    sources = sources.replace("'a > 1;'", "a > 1")
    compiled = project(tmp_path, sources, m="SELECT * FROM e").compiled
    assert [b.name for b in compiled.expressions["e"].bindings] == ["s", "raw.other"]
    assert [b.name for b in compiled.probes["e"].bindings] == ["e"]
    assert compiled.probes["q"].sql == "SELECT max(v) FROM raw.loads"
    # what only they read is observed too
    assert {"raw.other", "raw.loads"} <= compiled.sources.keys()
    assert compiled.parents["m"] == ("e",)
    # and all of it comes back from the cache
    again = Project(tmp_path, environ={}).compiled
    assert again == compiled


def test_tables_of_other_catalogs_are_sources(tmp_path: Path) -> None:
    sources = (
        "  - {name: c, catalog: crm, schema: a}\n  - {name: own, catalog: lake, schema: raw}\n"
    )
    compiled = project(
        tmp_path, sources, CATALOGS, m="SELECT 1 FROM crm.a.c, crm.a.d, lake.raw.own, raw.x"
    ).compiled
    assert compiled.parents["m"] == ("c", "crm.a.d", "own", "raw.x")
    assert compiled.sources["crm.a.d"].catalog == "crm"
    assert compiled.sources["own"].in_lake
    assert not compiled.sources["c"].in_lake


FILES = "  - {name: f, path: d, format: csv}\n"


@pytest.mark.parametrize(
    ("sources", "model", "code", "message"),
    [
        (FILES, "MODEL (materialized view);\nSELECT 1 FROM f", "P019", "a view can't read"),
        (
            FILES + "  - {name: e, expression: SELECT a FROM f}\n",
            "MODEL (materialized view);\nSELECT 1 FROM e",
            "P019",
            "source `f`",
        ),
        ("  - {name: e, expression: SELECT a FROM m}\n", "SELECT 1", "P015", "only read sources"),
        ("  - {name: e, expression: SELECT a FROM dev.m}\n", "SELECT 1", "P015", "dev.m"),
        ("  - {name: e, expression: SELECT a FROM}\n", "SELECT 1", "P004", "parsed"),
        ("  - {name: e, expression: SELECT a FROM nope}\n", "SELECT 1", "P005", "nope"),
        (
            (
                "  - {name: a, expression: SELECT x FROM b}\n"
                "  - {name: b, expression: SELECT x FROM a}\n"
            ),
            "MODEL (materialized view);\nSELECT 1 FROM a",
            "P006",
            "a -> b -> a",
        ),
        (
            (
                "  - name: s\n    schema: raw\n"
                "    freshness: {strategy: sql, type: integer, query: SELECT max(id) FROM m}\n"
            ),
            "SELECT 1",
            "P015",
            "which this project builds",
        ),
        (
            (
                "  - name: s\n    schema: raw\n"
                "    freshness: {strategy: column, column: a, type: integer, filter: a >}\n"
            ),
            "SELECT 1",
            "P004",
            "parsed",
        ),
        ("  - {name: s, catalog: crn, schema: a}\n", "SELECT 1", "P005", "no catalog `crn`"),
        ("  - {name: s, schema: a}\n", "SELECT 1 FROM nope.a.b", "P005", "no catalog `nope`"),
        ("  - {name: s, schema: a}\n", "SELECT 1 FROM a.b.c.d", None, ""),
    ],
)
def test_what_makes_no_sense_is_refused(
    tmp_path: Path, sources: str, model: str, code: str | None, message: str
) -> None:
    with pytest.raises(SqbError) as error:
        _ = project(tmp_path, sources, CATALOGS, m=model).compiled
    told = f"{error.value.message} {error.value.help}"
    assert message in told
    assert code is None or error.value.code == code
    assert error.value.exit_code == 2
    assert error.value.file in ("models/m.sql", "sources/s.yml")


def test_a_server_knows_its_own_catalogs(tmp_path: Path) -> None:
    """With Spark Connect the catalogs are configured on the server: any name may be one."""
    from sqb.compile.compiler import other_catalogs
    from sqb.project.config import Config

    config = project(tmp_path, "", CATALOGS, m="SELECT 1").config
    assert isinstance(config, Config)
    assert other_catalogs(config) == {"crm", "spark_catalog"}
