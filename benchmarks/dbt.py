"""How long sqb takes to see that a dbt project is current, and what it adds when it is not.

Every number is a fresh process of the command on a generated dbt project. Its first build is
recorded without Spark: each model is a real, empty Iceberg table that pyiceberg made, and the rows
are those that sqb writes when dbt says that all went well. dbt itself is a real one.

    python benchmarks/dbt.py --dbt PATH [--sizes 300 3000] [--repeat 7] [--markdown] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import Series, imported, run
from show import table

from sqb.dbt.nodes import TESTS
from sqb.dbt.outcome import NodeResult, Outcome
from sqb.dbt.project import DbtProject
from sqb.dbt.recording import Run
from sqb.dbt.request import Request
from sqb.execution.events import new_run_id
from sqb.spark.elsewhere import as_dbt
from sqb.spark.settings import SparkSettings

#: A run that finds nothing to do must not pay for these.
HEAVY = ("pyspark", "pyiceberg", "pyarrow", "sqlglot", "yaml", "jinja2", "dbt")
SQB = (sys.executable, "-m", "sqb", "dbt")
#: Seconds within which a build that has nothing to do should end, by models.
REACH = {300: 0.5, 3000: 1.0}

_PROJECT = """\
name: big
version: "1.0"
profile: sqb
models:
  +file_format: iceberg
  +materialized: table
flags:
  send_anonymous_usage_stats: false
"""
_MODEL = """\
select id, {{{{ cents('amount') }}}} as amount, '{{{{ var("day", "2026-01-01") }}}}' as day
from {above}
"""


def generate(root: Path, models: int) -> None:
    """A project: chains of ten models over fifty sources, two tests for each model."""
    (root / "models").mkdir(parents=True)
    (root / "macros").mkdir()
    (root / "dbt_project.yml").write_text(_PROJECT)
    (root / "macros" / "cents.sql").write_text(
        "{% macro cents(x) %}cast({{ x }} / 100 as decimal(12, 2)){% endmacro %}\n"
    )
    sources = "".join(f"      - name: t{i}\n" for i in range(50))
    lines = ["version: 2", "sources:", "  - name: raw", f"    tables:\n{sources}models:"]
    for number in range(models):
        above = f"{{{{ ref('m{number - 1}') }}}}"
        if number % 10 == 0:
            above = f"{{{{ source('raw', 't{number // 10 % 50}') }}}}"
        (root / "models" / f"m{number}.sql").write_text(_MODEL.format(above=above))
        lines += [
            f"  - name: m{number}",
            "    columns: [{name: id, data_tests: [unique, not_null]}]",
        ]
    (root / "models" / "all.yml").write_text("\n".join(lines) + "\n")
    lake = root / "lake"
    lake.mkdir()
    settings = SparkSettings("lake", f"sqlite:///{lake / 'catalog.db'}", str(lake))
    (root / "profiles.yml").write_text(as_dbt(settings, "dev", "dev"))


def record(root: Path) -> None:
    """Make every table, and record a build in which all went well."""
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog

    lake = root / "lake"
    columns = pa.schema([("id", pa.int64()), ("amount", pa.int64())])
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake / 'catalog.db'}", warehouse=str(lake))
    with DbtProject(Request(), directory=root) as project:
        nodes = project.reader.nodes
        for schema in ("dev", "raw"):
            catalog.create_namespace_if_not_exists(schema)
        for node in nodes.values():
            if node.relation is not None:
                catalog.create_table(node.relation, columns)
        catalog.engine.dispose()
        sight = project._look()
        plan = project.plan()
        results = {
            name: NodeResult(name, "ok", "pass" if nodes[name].type in TESTS else "success")
            for name in plan.work
        }
        run_ = Run(new_run_id(), time.time_ns() // 1000)
        project._record(sight, plan, Outcome(results), run_)


def measure(root: Path, models: int, repeat: int) -> list[Series]:
    """A build without changes; then a plan after one edit, beside what dbt alone takes for it."""
    current = "skipped: all planned dbt models are current"
    run([*SQB, "build"], root, says=current)
    heavy = sorted(imported("sqb", ["dbt", "build"], root) & set(HEAVY))
    if heavy:
        raise SystemExit(f"a no-change `sqb dbt build` imports {', '.join(heavy)}")
    idle = Series("sqb", "no-change build", models)
    for _ in range(repeat):
        idle.samples.append(run([*SQB, "build"], root, says=current))
    edited = Series("sqb", "plan after one edit", models)
    alone = Series("dbt", "parse after one edit", models)
    dbt = os.environ["DBT_EXECUTABLE"]
    file = root / "models" / f"m{models - 1}.sql"
    text = file.read_text()
    apart = root / "apart"
    words = [dbt, "parse", "--target-path", str(apart), "--log-path", str(apart)]
    for turn in range(max(2, repeat // 3)):
        file.write_text(f"{text}-- {turn}\n")
        edited.samples.append(run([*SQB, "plan"], root, says="1 run,"))
        file.write_text(f"{text}-- {turn} again\n")
        sample = run(words, root)
        if turn:
            # the first one has nothing to begin from
            alone.samples.append(sample)
    file.write_text(text)
    return [idle, edited, alone]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dbt", type=Path, required=True)
    parser.add_argument("--sizes", type=int, nargs="+", default=[300, 3000])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ["DBT_EXECUTABLE"] = str(options.dbt.absolute())
    for name in [name for name in os.environ if name.startswith(("SPARK_", "DBT_PROFILES"))]:
        del os.environ[name]
    found: list[Series] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            root = Path(folder) / f"big-{size}"
            generate(root, size)
            run([*SQB, "plan"], root)
            subprocess.run([sys.executable, __file__, "--record", str(root)], check=True)
            found += measure(root, size, options.repeat)
    head = ("tool", "case", "models", "best s", "median s", "CPU s", "peak MB", "goal")
    rows = [
        (
            *(s.tool, s.case, f"{s.models:,}", f"{s.wall_min:.2f}", f"{s.wall_median:.2f}"),
            *(f"{s.cpu_median:.2f}", f"{s.peak_mb:.0f}"),
            f"{REACH[s.models]} s" if s.case == "no-change build" and s.models in REACH else "",
        )
        for s in found
    ]
    print(table(head, rows, 2, markdown=options.markdown))
    if options.json:
        options.json.write_text(json.dumps([s.to_json() for s in found], indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        record(Path(sys.argv[2]))
    else:
        main()
