"""``scd2``: the history of the query's rows by key, each version with the time it was valid.

All rows of the query are compared with the open versions. One that differs closes its version and
opens another, one that vanished closes its version, one that is new or back opens one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from sqb.errors import SqbError
from sqb.execution.content_hash import quote, unused
from sqb.execution.kinds.job import Job, check_key, named, refuse_other_key, shown
from sqb.execution.kinds.restricted import KEYS, Restricted
from sqb.execution.kinds.whole import (
    NEW,
    aligned,
    among,
    columns_of,
    evolution,
    refuse_types,
    standing,
    steps_of,
    write,
)
from sqb.execution.outcome import Outcome
from sqb.execution.reading import is_dated, volatile
from sqb.execution.rows import attempt
from sqb.execution.signed_write import Work, keep_rows
from sqb.execution.steps import Steps
from sqb.execution.table import write_table
from sqb.execution.understanding import AskColumns, at_moment
from sqb.planning.plan import Strategy
from sqb.refresh.dated import dated_columns
from sqb.refresh.evolution import Evolution
from sqb.refresh.kinds import Lost
from sqb.refresh.netting import exact
from sqb.refresh.script import COPIES, WEIGHT
from sqb.sql.fragments import Unsupported

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def rebuild(job: Job) -> Outcome:
    """History begins: every row of the query is an open version."""
    frame = job.rows()
    _refuse_columns(job, frame)
    refuse_types(job, columns_of(frame))
    if not job.kind.timestamps:
        _checked(job, frame.columns)
    kind, began = job.kind, _began(job, frame)
    rows = frame.selectExpr(
        "*",
        f"{began} AS {quote(kind.valid_from)}",
        f"CAST(NULL AS TIMESTAMP) AS {quote(kind.valid_to)}",
    )
    run, session = job.run, job.session
    return write_table(
        run, session, job.name, rows, job.states, job.layout, job.files, lambda f: _check(job, f)
    )


def carry(job: Job) -> Outcome:
    """Compare the rows of the query with the open versions: those of changed keys, else all."""
    own = (job.kind.valid_from, job.kind.valid_to)
    work = job.work()
    refuse_other_key(job, work, own, f"{quote(job.kind.valid_to)} IS NULL")
    _refuse_swapped(work, own)
    restricted = Restricted(job, own)
    try:
        way = attempt(restricted, lambda: restricted.rows(job.kind.unique_key, "unique_key"))
        if way is None:
            why = "what changed in the inputs is not read by the query"
            strategy = Strategy("skip", why, code="NET_CHANGE_EMPTY")
            return msgspec.structs.replace(keep_rows(work), strategy=strategy)
        if not isinstance(way, Strategy):
            done = _compare(job, work, restricted.steps, way, KEYS)
            why = "the rows of the keys that changed were compared with their open versions"
            strategy = Strategy("affected_key", why, job.kind.unique_key)
            return msgspec.structs.replace(done, strategy=strategy)
    finally:
        restricted.close()
    job.run.accounts[job.name].rebuild(way.code or "")
    steps = steps_of(job)
    try:
        done = _compare(job, work, steps, steps.compute(NEW, job.rows()))
    finally:
        steps.close()
    why = f"all rows of the query were compared with the open versions ({way.why})"
    strategy = Strategy("compare", why, job.kind.unique_key, way.rejected, way.code)
    return msgspec.structs.replace(done, strategy=strategy)


def _compare(
    job: Job, work: Work, steps: Steps, frame: DataFrame, among_keys: str | None = None
) -> Outcome:
    """Write the versions that end and begin; ``frame`` is the temp view ``NEW``."""
    own = (job.kind.valid_from, job.kind.valid_to)
    _refuse_columns(job, frame)
    _check(job, frame)
    found = evolution(job, frame, own)
    refuse_types(job, found.columns)
    table = standing(work, found, own)
    if among_keys is not None:
        keys = named(job, job.kind.unique_key, [name for name, _ in found.columns], "unique_key")
        table = among(table, keys, among_keys)
    return write(work, steps, _versions(job, found, table), found)


def _refuse_columns(job: Job, frame: DataFrame) -> None:
    names = {name.lower() for name in frame.columns}
    for key, column in (
        ("valid_from_column", job.kind.valid_from),
        ("valid_to_column", job.kind.valid_to),
    ):
        if column.lower() in names:
            raise SqbError(
                "X007",
                f"the query of `{job.name}` gives a column `{column}`, which `scd2` adds itself",
                help=f"rename it in the query, or set `{key}`",
                exit_code=1,
            )
    if job.kind.timestamps:
        named(job, [str(job.kind.updated_at)], frame.columns, "updated_at")


def _refuse_swapped(work: Work, own: tuple[str, str]) -> None:
    """Raise if the header names other columns for the times of a version than stand there."""
    names = [name.lower() for name, _ in work.columns]
    begins, ends = (names.index(name.lower()) for name in own)
    if ends != begins + 1:
        why = f"its versions are not from `{own[0]}` to `{own[1]}`"
        raise Lost("DEFINITION_CHANGED", why)


def _check(job: Job, frame: DataFrame) -> None:
    """Keys are there and unique; where versions are told by a time, every row has one."""
    check_key(job, frame)
    if not job.kind.timestamps:
        return
    (column,) = named(job, [str(job.kind.updated_at)], frame.columns, "updated_at")
    keys = named(job, job.kind.unique_key, frame.columns, "unique_key")
    bad = frame.where(f"{quote(column)} IS NULL").selectExpr(*map(shown, keys)).first()
    if bad is not None:
        where = ", ".join(f"{key} = {value}" for key, value in zip(keys, bad, strict=True))
        raise SqbError(
            "X007",
            f"`updated_at` of `{job.name}` is NULL in a row of its query: {where}",
            help=f"nothing was written; give `{column}` a value, or use `snapshot_strategy check`",
            exit_code=1,
        )


def _began(job: Job, frame: DataFrame, alias: str = "") -> str:
    """SQL for when the version of a new row begins."""
    if not job.kind.timestamps:
        return f"TIMESTAMP'{job.moment}'"
    (column,) = named(job, [str(job.kind.updated_at)], frame.columns, "updated_at")
    return f"CAST({alias}{quote(column)} AS TIMESTAMP)"


def _checked(job: Job, given: Sequence[str]) -> tuple[str, ...]:
    """Of the columns that the query gives, those whose change makes a version."""
    if "*" not in job.kind.check_columns:
        return named(job, job.kind.check_columns, given, "check_columns")
    left_out = {key.lower() for key in job.kind.unique_key} | _dated(job)
    return tuple(name for name in given if name.lower() not in left_out)


def _dated(job: Job) -> set[str]:
    """Columns that depend on the moment of the run: they would make a version in every run."""
    if not is_dated(job.run, job.name) and not volatile(job.run, job.name):
        return set()
    try:
        one, other = (
            at_moment(job.run, job.name, f"{day} 00:00:00Z", _columns_of(job), day)
            for day in ("2001-01-01", "2002-02-02")
        )
        flags = dated_columns(one.root, other.root)
    except Unsupported as found:
        raise SqbError(
            "X007",
            f"`{job.name}` uses what is another value in each run, and its columns can't be told "
            f"that depend on it ({found})",
            help="name the columns that make a version in `check_columns`",
            exit_code=1,
        ) from None
    return {name.lower() for name, flag in zip(one.names, flags, strict=True) if flag}


def _columns_of(job: Job) -> AskColumns:
    def ask(name: str) -> tuple[str, ...]:
        text, is_select = job.run.read(name)
        return tuple(job.session.sql(f"SELECT * FROM {text}{' AS s' * is_select}").columns)

    return ask


def _versions(job: Job, found: Evolution, table: str) -> str:
    """The signed change: versions that close, as they were and as they are now, and new ones."""
    kind = job.kind
    columns = [name for name, _ in found.columns]
    keys = named(job, kind.unique_key, columns, "unique_key")
    start, end = quote(kind.valid_from), quote(kind.valid_to)
    kinds = dict(found.columns)
    now = f"TIMESTAMP'{job.moment}'"
    if kind.timestamps:
        (updated,) = named(job, [str(kind.updated_at)], columns, "updated_at")
        began = f"CAST(n.{quote(updated)} AS TIMESTAMP)"
        differs = f"{began} > coalesce(CAST(o.{quote(updated)} AS TIMESTAMP), o.{start})"
    else:
        pairs = zip(columns, found.given, strict=True)
        given = [name for name, theirs in pairs if theirs is not None]
        tests = [_differs(name, kinds[name]) for name in _checked(job, given)]
        differs, began = " OR ".join(tests) or "FALSE", now
    same = " AND ".join(f"n.{quote(key)} <=> o.{quote(key)}" for key in keys)
    ended = " AND ".join(f"n.{quote(key)} <=> c.{quote(key)}" for key in keys)
    first, ended_at = quote(keys[0]), quote(unused(keys))
    listed = ", ".join(quote(key) for key in keys)

    def row(alias: str, begins: str, ends: str, weight: int) -> str:
        items = ", ".join(f"{alias}.{quote(name)}" for name in columns)
        return (
            f"SELECT {items}, {begins} AS {start}, {ends} AS {end},"
            f" CAST({weight} AS BIGINT) AS {WEIGHT}, CAST({max(weight, 0)} AS BIGINT) AS {COPIES}"
        )

    # a version never ends before it began, whatever the clocks say
    closing = f"greatest({began}, o.{start})"
    gone = f"greatest({now}, o.{start})"
    null = "CAST(NULL AS TIMESTAMP)"
    moved = f"FROM sqb_o AS o JOIN sqb_n AS n ON {same} WHERE {differs}"
    parts = [
        row("o", f"o.{start}", null, -1) + f" {moved}",
        row("o", f"o.{start}", closing, 1) + f" {moved}",
        row("n", closing, null, 1) + f" {moved}",
        row("n", f"greatest({began}, c.{ended_at})", null, 1)
        + f" FROM sqb_n AS n LEFT ANTI JOIN sqb_o AS o ON {same}"
        + f" LEFT JOIN sqb_c AS c ON {ended}",
    ]
    if kind.hard_deletes:
        vanished = f"FROM sqb_o AS o LEFT ANTI JOIN sqb_n AS n ON {same}"
        parts += [
            row("o", f"o.{start}", null, -1) + f" {vanished}",
            row("o", f"o.{start}", gone, 1) + f" {vanished}",
        ]
    ctes = (
        f"sqb_all AS ({table}), sqb_n AS ({aligned(found)}),"
        f" sqb_o AS (SELECT * FROM sqb_all WHERE {end} IS NULL),"
        f" sqb_c AS (SELECT {listed}, max({end}) AS {ended_at} FROM sqb_all"
        f" WHERE {end} IS NOT NULL AND {first} IS NOT NULL GROUP BY {listed})"
    )
    return f"WITH {ctes} {' UNION ALL '.join(parts)}"


def _differs(name: str, kind: str) -> str:
    mine, theirs = f"n.{quote(name)}", f"o.{quote(name)}"
    test = f"NOT ({mine} <=> {theirs})"
    told_apart = exact(mine, kind)
    if told_apart is not None:
        test += f" OR NOT ({told_apart} <=> {exact(theirs, kind)})"
    return test
