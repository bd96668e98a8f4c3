"""Records a first build of a generated project without running Spark.

Spark's part is played by paper: each table is a real, empty Iceberg table (metadata file, one
snapshot, an empty manifest list) under the alias where Spark would have staged it, each view's
columns are told by the generator instead of asked of Spark. Everything else is the product's own
code: compile, plan, stage, publish with stamp and definition, state rows. Sources are written by
pyiceberg. So a later ``sqb plan`` reads exactly what a build leaves, apart from the rows.

    python benchmarks/record.py --models 50 FOLDER
"""

from __future__ import annotations

import argparse
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from generate import RAW, SEED, SOURCE_COLUMNS, Layers, generate

from sqb.api import Project
from sqb.execution import build, content_hash, table
from sqb.execution.events import NodeResult, new_run_id
from sqb.execution.run import Run
from sqb.execution.table import Layout, Outcome
from sqb.execution.view import build_view
from sqb.identity.data_id import InputState
from sqb.lake.catalog import Point
from sqb.lake.io import local_path, write_new
from sqb.lake.staging import Lease, Staged, stage, stage_schema
from sqb.lake.types import iceberg_schema
from sqb.planning.plan import PlannedNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Columns = Mapping[str, tuple[tuple[str, str], ...]]


class _Schema:
    """The answer of ``DataFrame.schema``."""

    def __init__(self, columns: tuple[tuple[str, str], ...]) -> None:
        self._columns = columns

    def jsonValue(self) -> dict[str, Any]:  # noqa: N802 - pyspark's name
        fields = [
            {"name": name, "type": kind, "nullable": True, "metadata": {}}
            for name, kind in self._columns
        ]
        return {"type": "struct", "fields": fields}


class _Paper:
    """In Spark's place for one view: says which columns its query has."""

    def __init__(self, columns: tuple[tuple[str, str], ...]) -> None:
        self.schema = _Schema(columns)

    def sql(self, _: str) -> _Paper:
        return self


def write_sources(project: Project, layers: Layers) -> None:
    """Create every source with two rows."""
    from datetime import datetime, timezone
    from decimal import Decimal

    import pyarrow as pa

    kinds = {
        "long": pa.int64(),
        "integer": pa.int32(),
        "string": pa.string(),
        "decimal(12,2)": pa.decimal128(12, 2),
        "timestamp": pa.timestamp("us", tz="UTC"),
    }
    schema = pa.schema([(name, kinds[kind]) for name, kind in SOURCE_COLUMNS])
    now = datetime(2026, 1, 1, tzinfo=timezone.utc)
    rows = [
        dict(zip(schema.names, (i, i, "Tea ", "paid", Decimal("60.00"), 2, now, now), strict=True))
        for i in (1, 2)
    ]
    data = pa.Table.from_pylist(rows, schema=schema)
    # The product creates the catalog file in the form that all three clients share.
    project.catalog.ensure_namespace(RAW)
    iceberg = project.store.open()
    for source in layers.sources:
        iceberg.create_table((RAW, source), schema=schema).append(data)


def record(project: Project, columns: Columns) -> int:
    """Record a first build of everything that is not built yet; how many nodes that were."""
    observed = project.observe()
    plan, verdicts, situation, look = project._decide(
        frozenset(project.expected), observed, force=False, full_refresh=False
    )
    run = project._run(new_run_id(), situation, verdicts, observed, look)
    outcomes: dict[str, Outcome] = {}
    results: dict[str, NodeResult] = {}
    stages = [stage_schema(namespace) for namespace in project.namespaces()]
    manifests = _empty_manifest_list(project)
    with Lease(run.catalog, stages, run.id):
        for node in plan.work:
            states = run.input_states(node.name)
            outcome = _outcome(run, node, states, columns[node.name], manifests)
            outcomes[node.name] = outcome
            run.publish(node.name, outcome.published)
            results[node.name] = NodeResult(node.name, "success", node.reason)
    build._record(run, plan, project.store, outcomes, results, {})
    return len(outcomes)


def _outcome(
    run: Run,
    node: PlannedNode,
    states: dict[str, InputState],
    columns: tuple[tuple[str, str], ...],
    manifests: str,
) -> Outcome:
    if node.materialized == "view":
        return build_view(run, cast("SparkSession", _Paper(columns)), node.name, states)
    expected = run.expected(node.name)
    staged = stage(run.catalog, expected.namespace, expected.relation, run.id)
    alias = _write_empty(run, staged, columns, manifests)
    shape = table.columns_id(run.facts.get(alias).columns)
    settings = run.compiled.models[node.name].settings
    layout = Layout(settings.partitioned_by, settings.sorted_by, settings.table_properties)
    data = content_hash.data_id(shape, 0, 0, 0)
    return table.publish(run, node.name, states, staged, layout, data, shape, 0)


def _write_empty(
    run: Run, staged: Staged, columns: tuple[tuple[str, str], ...], manifests: str
) -> str:
    """What a CREATE TABLE AS SELECT without rows leaves under the alias; the metadata location."""
    target = staged.name.rpartition("__")[0]
    location = run.catalog.default_location(staged.namespace.removesuffix("__sqb_stage"), target)
    now, snapshot = run.now_us // 1000, uuid.uuid4().int >> 66
    schema = iceberg_schema(_Schema(columns).jsonValue())
    document = {
        "format-version": 2,
        "table-uuid": str(uuid.uuid4()),
        "location": location,
        "last-sequence-number": 1,
        "last-updated-ms": now,
        "last-column-id": len(columns),
        "current-schema-id": 0,
        "schemas": [{**schema, "schema-id": 0}],
        "default-spec-id": 0,
        "partition-specs": [{"spec-id": 0, "fields": []}],
        "last-partition-id": 999,
        "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}],
        "properties": {},
        "current-snapshot-id": snapshot,
        "refs": {"main": {"snapshot-id": snapshot, "type": "branch"}},
        "snapshots": [
            {
                "sequence-number": 1,
                "snapshot-id": snapshot,
                "timestamp-ms": now,
                "summary": {"operation": "append", "total-records": "0"},
                "manifest-list": manifests,
                "schema-id": 0,
            }
        ],
        "snapshot-log": [{"timestamp-ms": now, "snapshot-id": snapshot}],
        "metadata-log": [],
    }
    file = f"{location}/metadata/00000-{uuid.uuid4()}.metadata.json"
    write_new(file, msgspec.json.encode(document))
    run.catalog.commit([Point(staged.namespace, staged.name, "table", file, expected=None)])
    return file


def _empty_manifest_list(project: Project) -> str:
    """One real manifest list without manifests, which all recorded snapshots share."""
    from pyiceberg.io.pyarrow import PyArrowFileIO
    from pyiceberg.manifest import write_manifest_list

    file = f"{project.catalog.warehouse.rstrip('/')}/empty-manifest-list.avro"
    if not local_path(file).exists():
        with write_manifest_list(2, PyArrowFileIO().new_output(file), 1, None, 1, "null") as out:
            out.add_manifests([])
    return file


@contextmanager
def _quick() -> Iterator[None]:
    """Durable writes cost most of the time and prove nothing here."""
    import os
    import sqlite3

    sync, connect = os.fsync, sqlite3.connect

    def careless(*args: Any, **options: Any) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(*args, **options)
        db.execute("PRAGMA synchronous = OFF")
        return db

    os.fsync = lambda _: None  # type: ignore[assignment]
    sqlite3.connect = careless  # type: ignore[assignment]
    try:
        yield
    finally:
        os.fsync, sqlite3.connect = sync, connect


def record_generated(folder: Path, layers: Layers) -> int:
    """Create the sources of a generated project and record a build of its models."""
    project = Project(folder)
    with _quick():
        write_sources(project, layers)
        count = record(project, {model.name: model.columns for model in layers.models})
    # What a real build leaves at its end, and the first plan completes.
    project.facts.save()
    left = Project(folder).plan().work
    if left:
        raise AssertionError(f"{left[0].name} is not recorded as built: {left[0].reason}")
    return count


def main() -> None:
    """Record the generated project in a folder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, required=True)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    started = time.perf_counter()
    count = record_generated(options.folder, generate(options.models, options.seed))
    print(f"recorded {count} nodes in {time.perf_counter() - started:.1f} s, without Spark")


if __name__ == "__main__":
    main()
