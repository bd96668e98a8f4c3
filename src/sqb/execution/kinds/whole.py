"""All rows of a query against the table that stands: compared, aligned, written as one change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqb.errors import SqbError
from sqb.execution.content_hash import quote
from sqb.execution.kinds.job import Job
from sqb.execution.outcome import Outcome
from sqb.execution.signed_write import Alter, Work, measured, write_change
from sqb.execution.steps import Steps
from sqb.execution.table import refuse_layout, stored_columns
from sqb.lake.shape import Shape
from sqb.refresh.evolution import Evolution, Misfit, evolve
from sqb.refresh.netting import net
from sqb.refresh.script import WEIGHT, Script
from sqb.refresh.strategies import groupable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The temp view of all rows that the query gives.
NEW = "sqb_new"


def steps_of(job: Job) -> Steps:
    """Where what is computed on the way is kept until the job is done."""
    return Steps(job.session, Script(lambda name, _: name, quote))


def evolution(job: Job, frame: DataFrame, own: Sequence[str] = ()) -> Evolution:
    """How the table takes in the query's rows; ``own`` are columns that sqb adds itself."""
    work, hidden = job.work(), {name.lower() for name in own}
    table = [(name, kind) for name, kind in work.columns if name.lower() not in hidden]
    try:
        found = evolve(job.kind.schema_change, table, columns_of(frame))
    except Misfit as misfit:
        raise SqbError(
            "X010",
            f"`{job.name}` is not rebuilt, and {misfit}",
            help=f"`on_schema_change` is {job.kind.schema_change}; change it or the query, or "
            "build anew with --full-refresh",
            exit_code=1,
        ) from None
    columns = (*found.columns, *(column for column in work.columns if column[0].lower() in hidden))
    refuse_layout(job.name, Shape(columns, job.layout.partitioned_by, job.layout.sorted_by))
    return found


def columns_of(frame: DataFrame) -> tuple[tuple[str, str], ...]:
    """Names and types of the query's columns as a table would hold them."""
    return stored_columns(frame.schema.jsonValue())


def aligned(found: Evolution, relation: str = NEW) -> str:
    """A select of the query's rows with the table's columns and types."""
    items = [
        f"CAST({quote(given) if given is not None else 'NULL'} AS {kind}) AS {quote(name)}"
        for (name, kind), given in zip(found.columns, found.given, strict=True)
    ]
    return f"SELECT {', '.join(items)} FROM {relation}"


def standing(work: Work, found: Evolution, own: Sequence[str] = ()) -> str:
    """A select of the table's rows with the columns and types that it shall have."""
    there = {name for name, _ in work.columns}
    items = [
        f"CAST({quote(name) if name in there else 'NULL'} AS {kind}) AS {quote(name)}"
        for name, kind in found.columns
    ]
    items += [quote(name) for name in own]
    return f"SELECT {', '.join(items)} FROM {work.standing}"


def refuse_types(job: Job, columns: Sequence[tuple[str, str]]) -> None:
    """Raise if values of a column can't be compared, so that no change can be told."""
    for name, kind in columns:
        if not groupable(kind):
            raise SqbError(
                "X002",
                f"`{name}` of `{job.name}` is {kind}, whose values can't be compared",
                help=f"a `{job.kind.name}` table compares rows; store it as text: to_json()",
                exit_code=1,
            )


def netted(columns: Sequence[tuple[str, str]], coming: str, going: str) -> str:
    """The rows that come and go, equal ones as one, those that cancel left out."""
    names = ", ".join(quote(name) for name, _ in columns)
    return net(
        [(quote(name), kind) for name, kind in columns],
        f"SELECT {names}, CAST(1 AS BIGINT) AS {WEIGHT} FROM ({coming}) AS sqb_come"
        f" UNION ALL SELECT {names}, CAST(-1 AS BIGINT) AS {WEIGHT} FROM ({going}) AS sqb_gone",
    )


def among(rows: str, keys: Sequence[str], relation: str) -> str:
    """Those rows whose key is one of a relation's."""
    same = " AND ".join(f"t.{quote(key)} <=> k.{quote(key)}" for key in keys)
    return f"SELECT t.* FROM ({rows}) AS t LEFT SEMI JOIN {relation} AS k ON {same}"


def write(work: Work, steps: Steps, sql: str, found: Evolution) -> Outcome:
    """Compute a signed change and write it, after giving the table the columns it shall have."""
    change = measured(steps, work.session.sql(sql))
    return write_change(work, change, altering(work, found))


def altering(work: Work, found: Evolution) -> Alter | None:
    """What gives the table its columns; None if it has them."""
    if not found.alters:
        return None
    clauses = [f"ALTER COLUMN {quote(name)} TYPE {kind}" for name, kind in found.widen]
    if found.add:
        added = ", ".join(f"{quote(name)} {kind}" for name, kind in found.add)
        clauses.insert(0, f"ADD COLUMNS ({added})")
    clauses += [f"DROP COLUMN {quote(name)}" for name in found.drop]
    kinds = dict(found.columns)
    stay = [(name, kinds.get(name, kind)) for name, kind in work.columns if name not in found.drop]
    return Alter(tuple(clauses), (*stay, *found.add))
