"""``tracked``: the rows of the query; only groups whose content is another are written."""

from __future__ import annotations

import msgspec

from sqb.execution import content_hash
from sqb.execution.content_hash import quote
from sqb.execution.kinds.job import Job, named
from sqb.execution.kinds.whole import (
    NEW,
    aligned,
    among,
    columns_of,
    netted,
    standing,
    steps_of,
    write,
)
from sqb.execution.outcome import Outcome
from sqb.execution.rows import RowRefresh, refresh_rows
from sqb.execution.table import write_table
from sqb.planning.plan import Strategy
from sqb.refresh.evolution import Evolution
from sqb.refresh.strategies import groupable


def rebuild(job: Job) -> Outcome:
    """The rows of the query replace what is there."""
    frame = job.rows()
    named(job, job.kind.group_key, frame.columns, "group_key")
    run, session = job.run, job.session
    return write_table(run, session, job.name, frame, job.states, job.layout, job.files)


def carry(job: Job) -> Outcome:
    """By rows where that can be told; else by the content of each group."""
    refresh = RowRefresh(job.run, job.session, job.node, job.states, job.layout)
    way = refresh_rows(refresh)
    if isinstance(way, Outcome):
        return way
    job.run.accounts[job.name].rebuild(way.code or "")
    done = _by_groups(job, way)
    return done or msgspec.structs.replace(rebuild(job), strategy=way)


def _by_groups(job: Job, way: Strategy) -> Outcome | None:
    """Hash every group of the query and of the table, replace those that differ.

    None where rows can't be hashed or compared, or the table has other columns.
    """
    steps = steps_of(job)
    try:
        frame = job.rows()
        work, columns = job.work(), columns_of(frame)
        same = columns == work.columns
        if not same or not all(groupable(kind) for _, kind in columns):
            return None
        found = Evolution((), (), (), columns, tuple(name for name, _ in columns))
        steps.compute(NEW, frame)
        keys = named(job, job.kind.group_key, [name for name, _ in columns], "group_key")
        new, old = aligned(found), standing(work, found)
        hashes = content_hash.row_hashes(job.session.sql(new).schema.jsonValue())
        if hashes is None:
            return None
        steps.compute("sqb_groups", job.session.sql(_differing(keys, hashes, new, old)))
        coming, going = (among(rows, keys, "sqb_groups") for rows in (new, old))
        done = write(work, steps, netted(found.columns, coming, going), found)
    finally:
        steps.close()
    why = f"all groups were compared by their content ({way.why})"
    strategy = Strategy("group_hash", why, keys, way.rejected, way.code)
    return msgspec.structs.replace(done, strategy=strategy)


def _differing(keys: tuple[str, ...], hashes: tuple[str, str], new: str, old: str) -> str:
    """The groups whose rows are not the same on both sides; NULL is a group like any other."""
    listed, own = ", ".join(quote(key) for key in keys), content_hash.unused(keys)
    first, second = f"{own}1", f"{own}2"
    aggregates = content_hash.sums((first, second))
    sums = ", ".join(f"{sql} AS {own}{name}" for name, sql in aggregates.items())
    sides = " UNION ALL ".join(
        f"SELECT {listed}, {sums} FROM (SELECT {listed}, {hashes[0]} AS {first},"
        f" {hashes[1]} AS {second} FROM ({rows}) AS r) AS h GROUP BY {listed}"
        for rows in (new, old)
    )
    equal = " AND ".join(f"min({own}{name}) = max({own}{name})" for name in aggregates)
    return (
        f"SELECT {listed} FROM ({sides}) AS b GROUP BY {listed}"
        f" HAVING NOT (count(1) = 2 AND {equal})"
    )
