"""Seeds: a CSV file becomes a typed table, through the same staging and publishing as a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sqb.errors import SqbError
from sqb.execution.content_hash import quote
from sqb.execution.outcome import Layout, Outcome
from sqb.execution.run import Run
from sqb.execution.table import write_table
from sqb.identity.data_id import InputState
from sqb.project.seeds import Seed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def build_seed(
    run: Run, session: SparkSession, name: str, seed: Seed, states: Mapping[str, InputState]
) -> Outcome:
    """Load the file's rows, cast to the declared types."""
    import pyarrow as pa

    columns = [
        pa.array([row[i] for row in seed.rows], type=pa.string()) for i in range(len(seed.columns))
    ]
    names = [column for column, _ in seed.columns]
    raw = session.createDataFrame(pa.Table.from_arrays(columns, names=names))
    _check(raw, seed)
    typed = raw.selectExpr(
        *(f"CAST({quote(c)} AS {kind}) AS {quote(c)}" for c, kind in seed.columns)
    )
    return write_table(run, session, name, typed, states, Layout())


def _check(raw: DataFrame, seed: Seed) -> None:
    """Name the line of the first value that does not fit its type."""
    typed = [(c, kind) for c, kind in seed.columns if kind.upper() != "STRING"]
    if not typed or not seed.rows:
        return
    flags = [
        f"count_if({quote(c)} IS NOT NULL AND TRY_CAST({quote(c)} AS {kind}) IS NULL)"
        for c, kind in typed
    ]
    counts = raw.selectExpr(*flags).first()
    if counts is None or not any(counts):
        return
    column, kind = next(pair for pair, bad in zip(typed, counts, strict=True) if bad)
    condition = f"{quote(column)} IS NOT NULL AND TRY_CAST({quote(column)} AS {kind}) IS NULL"
    bad_values = {row[0] for row in raw.where(condition).selectExpr(quote(column)).collect()}
    index = [name for name, _ in seed.columns].index(column)
    for row, line in zip(seed.rows, seed.lines, strict=True):
        if row[index] in bad_values:
            raise SqbError(
                "X003",
                f"`{row[index]}` is not a {kind} (column `{column}`)",
                file=seed.file,
                line=line,
                help="correct the value, or declare another type in seeds/*.yml",
                exit_code=1,
            )
