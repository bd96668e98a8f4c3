"""The projects of the benchmarks: what is generated compiles, what is recorded is like a build."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from sqb.api import Project

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sqb.spark.session import SparkSettings

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a script of the benchmarks, which find each other by their folder."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))

    def load(name: str) -> ModuleType:
        import importlib

        return importlib.import_module(name)

    return load


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SQB_")]:
        if name != "SQB_CACHE_DIR":
            monkeypatch.delenv(name)


@pytest.mark.usefixtures("environ")
@pytest.mark.parametrize("size", [10, 50, 120])
def test_a_generated_project_has_the_asked_size_and_compiles(
    size: int, tmp_path: Path, benchmark: Any
) -> None:
    generate = benchmark("generate")
    layers = generate.generate(size)
    generate.write_sqb(layers, tmp_path)
    project = Project(tmp_path)
    assert len(project.expected) == size
    for model in layers.models:
        parents = {p for p in project.compiled.parents[model.name] if p in project.expected}
        assert parents == set(model.inputs)
        assert project.expected[model.name].materialized == model.materialized


def test_the_same_seed_gives_the_same_project(tmp_path: Path, benchmark: Any) -> None:
    generate = benchmark("generate")
    texts = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        generate.write_sqb(generate.generate(30), folder)
        files = sorted(p for p in folder.rglob("*") if p.is_file())
        texts.append([(p.relative_to(folder), p.read_text()) for p in files])
    assert texts[0] == texts[1]


def test_both_tools_get_the_same_queries(tmp_path: Path, benchmark: Any) -> None:
    generate = benchmark("generate")
    layers = generate.generate(20)
    generate.write_sqb(layers, tmp_path / "sqb")
    generate.write_sqlmesh(layers, tmp_path / "mesh")
    for model in layers.models:
        ours, theirs = (
            generate.model_file(tmp_path / tool, model).read_text().partition(");\n\n")[2]
            for tool in ("sqb", "mesh")
        )
        assert ours == theirs.replace(f"{generate.SCHEMA}.", "")


@pytest.mark.usefixtures("environ")
def test_a_recorded_build_leaves_nothing_to_do(tmp_path: Path, benchmark: Any) -> None:
    generate, record = benchmark("generate"), benchmark("record")
    layers = generate.generate(20)
    generate.write_sqb(layers, tmp_path)
    assert record.record_generated(tmp_path, layers) == 20
    assert Project(tmp_path).build().run_id is None
    # also for one who has only the lake
    (tmp_path / ".sqb").rename(tmp_path / "gone")
    assert not Project(tmp_path).plan().work


@pytest.mark.usefixtures("environ")
def test_an_edit_of_a_recorded_project_wakes_what_is_below(tmp_path: Path, benchmark: Any) -> None:
    generate, record = benchmark("generate"), benchmark("record")
    layers = generate.generate(20)
    generate.write_sqb(layers, tmp_path)
    record.record_generated(tmp_path, layers)
    model = layers.models[0]
    file = generate.model_file(tmp_path, model)
    file.write_text(file.read_text().replace("n.amount >=", "n.amount + 1 >="))
    plan = Project(tmp_path).plan()
    work = {node.name: node.reason for node in plan.work}
    assert work[model.name] == "query_changed"
    assert 1 < len(work) < 20


@pytest.mark.usefixtures("environ")
def test_no_change_imports_nothing_heavy(tmp_path: Path, benchmark: Any) -> None:
    generate, record = benchmark("generate"), benchmark("record")
    layers = generate.generate(10)
    generate.write_sqb(layers, tmp_path)
    record.record_generated(tmp_path, layers)
    heavy = ("pyspark", "pyiceberg", "pyarrow", "sqlglot", "sqlglotc", "yaml", "pandas", "rich")
    script = (
        "import sys; from sqb.cli.main import run; code = run(sys.argv[1:]); "
        f"print(code, sorted({{m.partition('.')[0] for m in sys.modules}} & set({heavy!r})))"
    )
    for command in ("plan", "build"):
        done = subprocess.run(
            [sys.executable, "-c", script, command, "--project-dir", str(tmp_path)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.splitlines()[-1] == "0 []", done.stdout + done.stderr


@pytest.mark.usefixtures("environ")
def test_a_recorded_relation_is_like_the_one_that_spark_builds(
    tmp_path: Path, benchmark: Any, spark: SparkSession, spark_settings: SparkSettings
) -> None:
    """The generated queries run, and have the columns that recording relies on."""
    generate, record = benchmark("generate"), benchmark("record")
    layers = generate.generate(10)
    generate.write_sqb(layers, tmp_path)
    toml = tmp_path / "sqlbuild_project.toml"
    toml.write_text(
        toml.read_text().replace('schema = "dev"', 'schema = "generated"')
        + f'[catalog]\nuri = "{spark_settings.catalog_uri}"\n'
        f'warehouse = "{spark_settings.warehouse}"\n'
    )
    project = Project(tmp_path, spark=spark)
    record.write_sources(project, layers)
    columns = {model.name: model.columns for model in layers.models}
    result = project.build()
    assert [node.error for node in result.nodes if node.status != "success"] == []
    built = Project(tmp_path).observe()
    toml.write_text(toml.read_text().replace('"generated"', '"recorded"'))
    recorded_project = Project(tmp_path)
    record.record(recorded_project, columns)
    recorded = Project(tmp_path).observe()
    for model in layers.models:
        one, other = built.relations[model.name], recorded.relations[model.name]
        assert [(c.name, c.type) for c in one.columns] == [(c.name, c.type) for c in other.columns]
        assert one.properties.keys() >= other.properties.keys()
        first, second = built.recorded[model.name], recorded.recorded[model.name]
        assert first.schema == second.schema
        assert first.version == second.version
        assert [i.name for i in first.inputs] == [i.name for i in second.inputs]
        assert spark.table(f"lake.recorded.{model.name}").columns == [n for n, _ in model.columns]
    assert spark.table(f"lake.recorded.{layers.models[-1].name}").count() == 0
