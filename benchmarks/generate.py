"""Writes a project of N models in five layers, for sqb and, with the same queries, for SQLMesh.

The layers are sources, staging, intermediate, marts and reports; queries have 15 to 40 lines with
CTEs, joins, windows and aggregates. The same size and seed give the same files. Each model casts
what it computes, so its columns are known here and a build can be recorded without running it.

    python benchmarks/generate.py --models 50 FOLDER [--sqlmesh FOLDER]
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

RAW = "raw"
SCHEMA = "dev"
SEED = 7

#: The columns of every source, in Spark's types.
SOURCE_COLUMNS: tuple[tuple[str, str], ...] = (
    ("id", "long"),
    ("account_id", "long"),
    ("category", "string"),
    ("status", "string"),
    ("amount", "decimal(12,2)"),
    ("quantity", "integer"),
    ("created_at", "timestamp"),
    ("updated_at", "timestamp"),
)
_STAGED: tuple[tuple[str, str], ...] = (
    ("id", "long"),
    ("account_id", "long"),
    ("category", "string"),
    ("status", "string"),
    ("amount", "decimal(18,2)"),
    ("quantity", "long"),
    ("day", "date"),
)
_JOINED: tuple[tuple[str, str], ...] = (
    *_STAGED,
    ("other_amount", "decimal(18,2)"),
    ("share", "double"),
)
_MART: tuple[tuple[str, str], ...] = (
    ("account_id", "long"),
    ("category", "string"),
    ("first_day", "date"),
    ("last_day", "date"),
    ("events", "long"),
    ("amount", "decimal(18,2)"),
    ("average", "double"),
)
_REPORT: tuple[tuple[str, str], ...] = (
    ("category", "string"),
    ("accounts", "long"),
    ("events", "long"),
    ("amount", "decimal(18,2)"),
    ("position", "long"),
)
_SUBJECTS = ("orders", "payments", "refunds", "visits", "shipments", "tickets", "invoices", "carts")
_STATUSES = ("open", "paid", "closed", "cancelled", "returned")

Place = Callable[[str], str]


class Model(msgspec.Struct, frozen=True):
    """One model: ``query(place)`` is its SQL, ``place`` says how a model is named in it."""

    name: str
    layer: str
    materialized: str
    inputs: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    query: Callable[[Place], str]


class Layers(msgspec.Struct, frozen=True):
    """A generated project: source tables of the schema ``raw``, and models, parents first."""

    sources: tuple[str, ...]
    models: tuple[Model, ...]


def generate(size: int, seed: int = SEED) -> Layers:
    """A project of ``size`` models; at least ten, so that every layer has one."""
    if size < 10:
        raise ValueError("a generated project has at least 10 models")
    dice = random.Random(f"{seed}/{size}")
    staging, joined, marts = size * 40 // 100, size * 30 // 100, size * 20 // 100
    sources = tuple(f"{_SUBJECTS[i % len(_SUBJECTS)]}_{i:04d}" for i in range(max(4, staging // 8)))
    models: list[Model] = []
    names: list[str] = []
    for i in range(staging):
        names.append(f"stg_{sources[i % len(sources)].partition('_')[0]}_{i:04d}")
        models.append(_staging(names[i], sources[i % len(sources)], dice))
    for i in range(joined):
        name = f"int_{_SUBJECTS[dice.randrange(len(_SUBJECTS))]}_{i:04d}"
        models.append(_intermediate(name, _near(names[:staging], i, joined, 3, dice), dice))
        names.append(name)
    for i in range(marts):
        name = f"mart_{_SUBJECTS[dice.randrange(len(_SUBJECTS))]}_{i:04d}"
        first = _near(names[staging : staging + joined], i, marts, 1, dice)
        second = _near(names[:staging], i, marts, 1, dice)
        models.append(_mart(name, (*first, *second), dice))
        names.append(name)
    reports = size - staging - joined - marts
    for i in range(reports):
        inputs = _near(names[staging + joined : staging + joined + marts], i, reports, 3, dice)
        models.append(_report(f"rpt_{i:04d}", inputs, dice))
    return Layers(sources, tuple(models))


def _near(names: Sequence[str], i: int, of: int, most: int, dice: random.Random) -> tuple[str, ...]:
    """Some of the layer above, near one's own place: an edit wakes a branch, not the world."""
    window, count = min(len(names), 12), dice.randint(1, most) if most > 1 else 1
    start = min(len(names) - window, max(0, i * len(names) // of - window // 2))
    return tuple(dice.sample(names[start : start + window], min(max(count, 1), window)))


def _staging(name: str, source: str, dice: random.Random) -> Model:
    least, unknown = dice.randint(0, 50), dice.choice(_STATUSES)
    kept = ", ".join(f"'{status}'" for status in sorted(dice.sample(_STATUSES, 3)))

    def query(_: Place) -> str:
        return f"""\
-- The newest version of each row of {source}, with clean names and types.
WITH ranked AS (
  SELECT
    s.id,
    s.account_id,
    lower(trim(s.category)) AS category,
    coalesce(s.status, '{unknown}') AS status,
    s.amount,
    s.quantity,
    s.created_at,
    row_number() OVER (PARTITION BY s.id ORDER BY s.updated_at DESC) AS version
  FROM {RAW}.{source} AS s
  WHERE s.id IS NOT NULL
),
newest AS (
  SELECT * FROM ranked WHERE version = 1 AND status IN ({kept}, '{unknown}')
)
SELECT
  n.id,
  n.account_id,
  n.category,
  n.status,
  CAST(n.amount AS DECIMAL(18, 2)) AS amount,
  CAST(coalesce(n.quantity, 0) AS BIGINT) AS quantity,
  CAST(n.created_at AS DATE) AS day
FROM newest AS n
WHERE n.amount >= {least}
"""

    kind = "view" if dice.random() < 0.5 else "table"
    return Model(name, "staging", kind, (), _STAGED, query)


def _intermediate(name: str, inputs: tuple[str, ...], dice: random.Random) -> Model:
    status, weight = dice.choice(_STATUSES), dice.randint(2, 9)
    base, others = inputs[0], inputs[1:]

    def query(place: Place) -> str:
        parts = "\n  UNION ALL\n".join(
            f"  SELECT account_id, amount, quantity FROM {place(other)}"
            for other in (others or (base,))
        )
        return f"""\
/* What an account did elsewhere, beside each of its rows. */
WITH elsewhere AS (
{parts}
),
by_account AS (
  SELECT
    e.account_id,
    sum(e.amount) AS other_amount,
    sum(e.quantity) AS other_quantity
  FROM elsewhere AS e
  GROUP BY e.account_id
  HAVING sum(e.quantity) < {weight}000
)
SELECT
  b.id,
  b.account_id,
  b.category,
  b.status,
  b.amount,
  b.quantity,
  b.day,
  CAST(coalesce(a.other_amount, 0) AS DECIMAL(18, 2)) AS other_amount,
  CAST(
    CASE WHEN coalesce(a.other_amount, 0) = 0 THEN 0
    ELSE b.amount / a.other_amount * {weight} END AS DOUBLE
  ) AS share -- weighted
FROM {place(base)} AS b
LEFT JOIN by_account AS a ON a.account_id = b.account_id
WHERE b.status <> '{status}'
"""

    return Model(name, "intermediate", "table", inputs, _JOINED, query)


def _mart(name: str, inputs: tuple[str, ...], dice: random.Random) -> Model:
    least, status = dice.randint(1, 3), dice.choice(_STATUSES)
    joined, staged = inputs

    def query(place: Place) -> str:
        return f"""\
WITH facts AS (
  SELECT
    f.account_id,
    f.category,
    f.day,
    f.amount,
    f.share
  FROM {place(joined)} AS f
  WHERE f.share >= 0
),
accounts AS (
  SELECT DISTINCT account_id
  FROM {place(staged)}
  WHERE status <> '{status}'
)
-- one row per account and category
SELECT
  f.account_id,
  f.category,
  min(f.day) AS first_day,
  max(f.day) AS last_day,
  count(*) AS events,
  CAST(sum(f.amount) AS DECIMAL(18, 2)) AS amount,
  CAST(avg(f.amount) AS DOUBLE) AS average
FROM facts AS f
JOIN accounts AS a ON a.account_id = f.account_id
GROUP BY f.account_id, f.category
HAVING count(*) >= {least}
"""

    return Model(name, "marts", "table", inputs, _MART, query)


def _report(name: str, inputs: tuple[str, ...], dice: random.Random) -> Model:
    top = dice.randint(5, 50)

    def query(place: Place) -> str:
        parts = "\n  UNION ALL\n".join(
            f"  SELECT account_id, category, events, amount FROM {place(mart)}" for mart in inputs
        )
        return f"""\
WITH everything AS (
{parts}
),
by_category AS (
  SELECT
    e.category,
    count(DISTINCT e.account_id) AS accounts,
    CAST(sum(e.events) AS BIGINT) AS events,
    CAST(sum(e.amount) AS DECIMAL(18, 2)) AS amount
  FROM everything AS e
  GROUP BY e.category
),
ranked AS (
  SELECT
    c.*,
    CAST(row_number() OVER (ORDER BY c.amount DESC, c.category) AS BIGINT) AS position
  FROM by_category AS c
)
SELECT
  r.category,
  r.accounts,
  r.events,
  r.amount,
  r.position
FROM ranked AS r
WHERE r.position <= {top}
"""

    return Model(name, "reports", "table", inputs, _REPORT, query)


def write_sqb(layers: Layers, folder: Path) -> None:
    """The project as sqb reads it."""
    _write(
        folder / "sqlbuild_project.toml",
        f'name = "generated"\n\n[targets.dev]\nschema = "{SCHEMA}"\n\n'
        '[defaults]\nmaterialized = "table"\n\n[spark.conf]\n'
        '"spark.sql.shuffle.partitions" = "2"\n',
    )
    lines = ["sources:"]
    for source in layers.sources:
        lines += [f"  - name: {source}", f"    schema: {RAW}", f"    table: {source}"]
        lines += ["    description: Written by someone else."]
    _write(folder / "sources" / "raw.yml", "\n".join(lines) + "\n")
    for model in layers.models:
        header = ["MODEL ("]
        if model.materialized != "table":
            header.append(f"  materialized {model.materialized},")
        header += [f"  tags [{model.layer}],", ");"]
        text = "\n".join(header) + "\n\n" + model.query(lambda name: name)
        _write(model_file(folder, model), text)


def model_file(folder: Path, model: Model) -> Path:
    """Where a model of a generated project lies."""
    return folder / "models" / model.layer / f"{model.name}.sql"


def write_sqlmesh(layers: Layers, folder: Path) -> None:
    """The same models as SQLMesh reads them, on DuckDB."""
    _write(
        folder / "config.yaml",
        "gateways:\n  local:\n    connection:\n      type: duckdb\n"
        f"      database: {folder.absolute() / 'lake.db'}\n"
        "    state_connection:\n      type: duckdb\n"
        f"      database: {folder.absolute() / 'state.db'}\n"
        "default_gateway: local\nmodel_defaults:\n  dialect: spark\n  start: '2026-01-01'\n"
        "disable_anonymized_analytics: true\n",
    )
    lines: list[str] = []
    for source in layers.sources:
        lines += [f"- name: {RAW}.{source}", "  columns:"]
        lines += [f"    {name}: {_sql_type(kind)}" for name, kind in SOURCE_COLUMNS]
    _write(folder / "external_models.yaml", "\n".join(lines) + "\n")
    for model in layers.models:
        kind = "VIEW" if model.materialized == "view" else "FULL"
        header = f"MODEL (\n  name {SCHEMA}.{model.name},\n  kind {kind},\n);\n\n"
        _write(model_file(folder, model), header + model.query(lambda name: f"{SCHEMA}.{name}"))


def source_ddl(layers: Layers) -> str:
    """Statements that create the sources, empty, in another database."""
    columns = ", ".join(f"{name} {_sql_type(kind)}" for name, kind in SOURCE_COLUMNS)
    tables = (f"CREATE TABLE {RAW}.{source} ({columns});" for source in layers.sources)
    return f"CREATE SCHEMA {RAW};\n" + "\n".join(tables) + "\n"


def _sql_type(kind: str) -> str:
    return {"long": "BIGINT", "integer": "INT", "string": "TEXT"}.get(kind, kind.upper())


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", type=int, required=True)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--sqlmesh", type=Path, help="also write the SQLMesh project there")
    options = parser.parse_args()
    layers = generate(options.models, options.seed)
    write_sqb(layers, options.folder)
    if options.sqlmesh:
        write_sqlmesh(layers, options.sqlmesh)
        _write(options.sqlmesh / "sources.ddl", source_ddl(layers))


if __name__ == "__main__":
    main()
