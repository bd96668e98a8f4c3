"""The project's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sqb.errors import SqbError
from sqb.project.config import (
    CatalogConfig,
    Config,
    JanitorConfig,
    Settings,
    SparkConfig,
    TargetConfig,
    load_config,
)


def load(
    root: Path,
    project: str,
    local: str | None = None,
    *,
    target: str | None = None,
    cli_vars: Mapping[str, object] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Config:
    (root / "sqlbuild_project.toml").write_text(project)
    if local is not None:
        (root / "sqlbuild_local.toml").write_text(local)
    return load_config(root, target=target, cli_vars=cli_vars or {}, environ=environ or {})


def refused(root: Path, project: str, local: str | None = None, **options: object) -> SqbError:
    with pytest.raises(SqbError) as caught:
        load(root, project, local, **options)  # type: ignore[arg-type]
    return caught.value


def test_an_empty_file_is_a_whole_project(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Config(
        root=str(tmp_path),
        name=tmp_path.name,
        target=TargetConfig(name="dev", schema="dev"),
        target_names=("dev",),
        target_schemas={"dev": "dev"},
        catalog=CatalogConfig(
            uri=f"sqlite:///{tmp_path}/lake/catalog.db", warehouse=f"{tmp_path}/lake"
        ),
        spark=SparkConfig(),
        settings=Settings(),
        defaults={},
        path_defaults={},
        vars={},
        janitor=JanitorConfig(retention_days=30, max_checkpoints=20, exclude_patterns=()),
        dbt={},
        files=("sqlbuild_project.toml",),
    )


def test_every_section_is_read(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
name = "shop"
default_target = "prod"
[targets.prod]
schema = "main"
loader_schema = "raw"
database = "ice"
[targets.ci]
[catalog]
name = "ice"
uri = "sqlite:////data/c.db"
warehouse = "file:///data/w"
[catalog.properties]
"s3.endpoint" = "x"
s3.path-style = true
[spark]
master = "local[2]"
jars = ["jars/a.jar", "/abs/b.jar"]
packages = ["g:a:1"]
[spark.conf]
"spark.sql.shuffle.partitions" = 8
spark.ui.enabled = false
[settings]
concurrency = 2
[defaults]
materialized = "table"
partitioned_by = ["day(ts)"]
query_change_backfill = "full"
[path_defaults."models/staging/"]
tags = "daily"
[vars]
start = 2024-01-02
n = 3
[janitor]
retention_days = 7
[dbt]
project_dir = "../dbt"
replay_on_change = "full"
""",
    )
    assert config.name == "shop"
    assert config.target == TargetConfig(
        name="prod", schema="main", database="ice", loader_schema="raw"
    )
    assert config.target_names == ("prod", "ci")
    assert config.target_schemas == {"prod": "main", "ci": "ci"}
    assert config.catalog == CatalogConfig(
        name="ice",
        uri="sqlite:////data/c.db",
        warehouse="file:///data/w",
        properties={"s3.endpoint": "x", "s3.path-style": "true"},
    )
    assert config.spark.jars == (f"{tmp_path}/jars/a.jar", "/abs/b.jar")
    assert config.spark.packages == ("g:a:1",)
    assert config.spark.conf == {
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
    }
    assert config.settings.concurrency == 2
    assert config.defaults == {
        "materialized": "table",
        "partitioned_by": ["days(ts)"],
        "replay_on_change": "full",
    }
    assert config.path_defaults == {"staging": {"tags": ["daily"]}}
    assert config.vars == {"start": "2024-01-02", "n": 3}
    assert config.janitor.retention_days == 7
    assert config.dbt == {"project_dir": "../dbt", "replay_on_change": "full"}


PRECEDENCE = """
[targets.dev]
[targets.dev.vars]
b = "target"
c = "target"
d = "target"
[targets.dev.spark]
master = "target"
[targets.dev.spark.conf]
x = "target"
[spark]
master = "project"
[spark.conf]
x = "project"
y = "project"
[vars]
a = "project"
b = "project"
c = "project"
d = "project"
"""


def test_flag_beats_local_beats_target_beats_project(tmp_path: Path) -> None:
    local = '[vars]\nc = "local"\nd = "local"\n[spark.conf]\ny = "local"\n'
    config = load(tmp_path, PRECEDENCE, local, cli_vars={"d": "flag", "e": [1]})
    assert config.vars == {"a": "project", "b": "target", "c": "local", "d": "flag", "e": [1]}
    assert config.spark.master == "target"
    assert config.spark.conf == {"x": "target", "y": "local"}
    assert config.files == ("sqlbuild_project.toml", "sqlbuild_local.toml")


@pytest.mark.parametrize(
    ("flag", "variable", "local", "expected"),
    [
        ("a", "b", "c", "a"),
        (None, "b", "c", "b"),
        (None, None, "c", "c"),
        (None, "", "c", "c"),
        (None, None, None, "d"),
    ],
)
def test_the_target_is_chosen_by_flag_then_environment_then_local_then_project(
    tmp_path: Path, flag: str | None, variable: str | None, local: str | None, expected: str
) -> None:
    project = 'default_target = "d"\n[targets.a]\n[targets.b]\n[targets.c]\n[targets.d]\n'
    environ = {} if variable is None else {"SQB_TARGET": variable}
    own = None if local is None else f'default_target = "{local}"'
    assert load(tmp_path, project, own, target=flag, environ=environ).target.name == expected


def test_dev_exists_without_being_declared_beside_others(tmp_path: Path) -> None:
    config = load(tmp_path, "[targets.prod]\n")
    assert (config.target.name, config.target_names) == ("dev", ("prod", "dev"))


@pytest.mark.parametrize(
    ("project", "target", "line"),
    [
        ('name = "x"\ndefault_target = "prod"\n[targets.dev]', None, 2),
        ("[targets.prod]", "prdo", None),
        ('default_target = "prod"\n[targets.prod]', "dev", None),
    ],
)
def test_an_unknown_target_lists_the_known_ones(
    tmp_path: Path, project: str, target: str | None, line: int | None
) -> None:
    error = refused(tmp_path, project, target=target)
    assert (error.code, error.line) == ("C006", line)
    assert "the targets are" in error.message


@pytest.mark.parametrize(
    ("project", "line", "near"),
    [
        ('\nnmae = "x"', 2, "name"),
        ("[setings]", 1, "settings"),
        ("[settings]\nconcurency = 1", 2, "concurrency"),
        ("[targets.dev]\nshema = 'x'", 2, "schema"),
        ("[targets.other.catalog]\ntyp = 'sql'", 2, "type"),
        ("[catalog]\nwarehose = 'x'", 2, "warehouse"),
        ("[defaults]\nmaterialised = 'table'", 2, "materialized"),
        ("[path_defaults.staging]\ntag = ['x']", 2, "tags"),
        ("[janitor]\nretention = 3", 2, "retention_days"),
        ("[dbt]\nprofile_dir = 'x'", 2, "profiles_dir"),
        ("[targets.dev.state]\nbackened = 'duckdb'", 2, "backend"),
    ],
)
def test_an_unknown_key_names_its_line_and_the_nearest(
    tmp_path: Path, project: str, line: int, near: str
) -> None:
    error = refused(tmp_path, project)
    assert (error.code, error.file, error.line) == ("C003", "sqlbuild_project.toml", line)
    assert f"`{near}`" in str(error.help)


def test_an_error_in_the_local_file_names_that_file(tmp_path: Path) -> None:
    error = refused(tmp_path, "", "[settings]\nconcurrency = 0")
    assert (error.code, error.file, error.line) == ("C004", "sqlbuild_local.toml", 2)


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ("name = 3", "a text"),
        ("name = ''", "a text"),
        ("settings = 1", "a table"),
        ("[settings]\nconcurrency = '4'", "whole number"),
        ("[settings]\nconcurrency = true", "whole number"),
        ("[settings]\ncascade = 'none'", '"all"'),
        ("[settings]\ndefault_audit_severity = 'fatal'", '"error" or "warn"'),
        ("[settings]\nvirtual_environments = 'no'", "true or false"),
        ("[targets]\ndev = 1", "a table"),
        ("[targets.dev]\nschema = 'a-b'", "schema name"),
        ("[targets.dev]\nschema = 'a__sqb_stage'", "schema name"),
        ("[targets.pr-1]\n", None),
        ("[spark]\njars = 'a.jar'", "list of texts"),
        ("[spark.conf]\nx = [1]", "a text, a number"),
        ("[catalog]\nname = 'a b'", "name of letters"),
        ("[defaults]\nmaterialized = 3", "a kind"),
        ("[defaults]\nrefresh = 'fast'", "auto, rows or full"),
        ("[path_defaults]\nstaging = 1", "a table"),
        ("[dbt]\nreplay_on_change = 'bounded-3d'", "forward_only"),
        ("[janitor]\nmax_checkpoints = 0", "at least 1"),
        ("[targets.dev.state]\nconnection = {hots = 'x'}", "host"),
        ("[targets.dev]\ndatabase = 'other'", "the catalog's name"),
        ("[targets.dev]\nreuse_from = 'p'\ndefer_sources_to = 'p'\n[targets.p]", "no `reuse_from`"),
    ],
)
def test_a_wrong_value_says_what_is_expected(
    tmp_path: Path, project: str, expected: str | None
) -> None:
    if expected is None:
        assert load(tmp_path, project).target.name == "dev"
        return
    error = refused(tmp_path, project)
    assert error.code == "C004"
    assert expected in error.message
    assert error.line is not None


def test_a_target_whose_name_is_no_identifier_needs_a_schema(tmp_path: Path) -> None:
    assert refused(tmp_path, "[targets.pr-1]", target="pr-1").code == "C004"
    assert load(tmp_path, "[targets.pr-1]\nschema='pr_1'", target="pr-1").target.schema == "pr_1"


@pytest.mark.parametrize(
    ("environ", "warehouse"), [({"W": "/w"}, "/w/x"), ({}, "/d/x"), ({"W": ""}, "/d/x")]
)
def test_environment_variables_are_filled_in(
    tmp_path: Path, environ: dict[str, str], warehouse: str
) -> None:
    project = '[catalog]\nwarehouse = "${ENV:W:-/d}/x"'
    assert load(tmp_path, project, environ=environ).catalog.warehouse == warehouse


def test_an_unset_variable_names_file_and_key_but_only_for_the_target_in_use(
    tmp_path: Path,
) -> None:
    project = '[targets.prod]\nschema = "${ENV:PROD_SCHEMA}"\n'
    config = load(tmp_path, project)
    assert config.target_schemas == {"dev": "dev"}
    error = refused(tmp_path, project, target="prod")
    assert (error.code, error.file, error.line) == ("C005", "sqlbuild_project.toml", 2)
    assert "targets.prod.schema" in error.message
    assert "PROD_SCHEMA" in error.message


@pytest.mark.parametrize(
    ("project", "code", "release", "line"),
    [
        ("[catalog]\ntype = 'hive'", "C007", None, 2),
        ("[catalog]\nuri = 'lake.db'", "C007", None, 2),
        ("[catalog]\nuri = 'sqlite:///:memory:'", "C007", None, 2),
        ("[catalog]\nuri = 'sqlite://'", "C007", None, 2),
        ("[catalog]\nwarehouse = 'gs://b/x'", "C007", None, 2),
        ("[catalog]\nwarehouse = 'hdfs://name/x'", "C007", None, 2),
        ("[catalog]\nwarehouse = 's3://'", "C007", None, 2),
        ("[catalog]\nwarehouse = 's3://b//x'", "C007", None, 2),
        ("[catalog]\nwarehouse = 's3://key:secret@b/x'", "C007", None, 2),
        ("[targets.dev.catalog]\ntype = 'rest'", "C007", None, None),
        ("[catalog]\nuri = 'mysql://h/d'", "C007", None, 2),
        ("[settings]\nvirtual_environments = true", "C011", "0.5", 2),
        ("[targets.dev]\nreuse_from = 'prod'\n[targets.prod]", "C011", "0.5", 2),
        ("[targets.dev]\ndefer_sources_to = 'prod'\n[targets.prod]", "C011", "0.5", 2),
        ("[targets.dev]\nreuse_from = 'prd'\n[targets.prod]", "C006", None, 2),
    ],
)
def test_what_can_not_be_served_is_refused_by_name(
    tmp_path: Path, project: str, code: str, release: str | None, line: int
) -> None:
    error = refused(tmp_path, project)
    assert (error.code, error.line) == (code, line)
    assert release is None or f"release {release}" in error.message


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", {}),
        ("'s3.region' = 'eu-west-1'", {"s3.region": "eu-west-1", "client.region": "eu-west-1"}),
        ("client.region = 'eu-west-1'", {"s3.region": "eu-west-1", "client.region": "eu-west-1"}),
        (
            "s3.endpoint = 'http://store:9000'",
            {
                "s3.endpoint": "http://store:9000",
                "s3.region": "us-east-1",
                "client.region": "us-east-1",
                "s3.path-style-access": "true",
                "s3.force-virtual-addressing": "false",
            },
        ),
        (
            "'s3.path-style-access' = false",
            {"s3.path-style-access": "false", "s3.force-virtual-addressing": "true"},
        ),
    ],
)
def test_a_warehouse_in_a_store_is_told_to_all_clients_in_their_words(
    tmp_path: Path, given: str, expected: dict[str, str]
) -> None:
    text = f"[catalog]\nwarehouse = 's3://bucket/tables/'\n[catalog.properties]\n{given}"
    catalog = load(tmp_path, text).catalog
    assert catalog.warehouse == "s3://bucket/tables"
    assert catalog.properties == expected


def test_another_targets_later_features_do_not_stand_in_the_way(tmp_path: Path) -> None:
    project = "[targets.prod.catalog]\ntype = 'rest'\n[targets.prod]\nreuse_from = 'dev'"
    assert load(tmp_path, project).target.name == "dev"


def test_other_catalogs_are_taken_as_they_are_written(tmp_path: Path) -> None:
    project = "[catalog]\nuri = 'postgresql+psycopg://me:${ENV:PW}@h/d'\nwarehouse = 'w'"
    catalog = load(tmp_path, project, environ={"PW": "x"}).catalog
    assert catalog.uri == "postgresql+psycopg://me:x@h/d"
    assert catalog.warehouse == str(tmp_path / "w")
    # the warehouse of a server is its own word, not a folder
    for written, read in (("", ""), ("warehouse = 'main'", "main")):
        project = f"[catalog]\ntype = 'rest'\nuri = 'https://h/c'\n{written}"
        assert load(tmp_path, project).catalog.warehouse == read


def test_an_error_never_shows_a_secret(tmp_path: Path) -> None:
    for project in (
        "[catalog.properties]\ntoken = ['hunter2']",
        "[catalog]\nuri = 'mysql://u:hunter2@h/d'",
        "[targets.dev.state]\nconnection = ['hunter2']",
    ):
        error = refused(tmp_path, project)
        assert "hunter2" not in f"{error.message}{error.help}"


def test_a_missing_project_file_is_c001(tmp_path: Path) -> None:
    with pytest.raises(SqbError) as caught:
        load_config(tmp_path, target=None, cli_vars={}, environ={})
    assert caught.value.code == "C001"
