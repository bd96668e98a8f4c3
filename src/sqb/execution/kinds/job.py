"""What every kind of table needs to know of the model that it is building, and how it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import msgspec

from sqb.errors import SqbError
from sqb.execution.content_hash import quote, unused
from sqb.execution.files import check_unchanged
from sqb.execution.outcome import Layout
from sqb.execution.run import Run
from sqb.execution.signed_write import Work
from sqb.execution.table import refuse_twice, stored_columns
from sqb.execution.unfinished import as_recorded
from sqb.identity.constants import CLOCK, clock
from sqb.identity.data_id import InputState
from sqb.planning.plan import PlannedNode
from sqb.refresh.kinds import Kind, Lost
from sqb.refresh.script import COPIES, WEIGHT
from sqb.sql.splice import Spliced

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Job(msgspec.Struct, frozen=True):
    """One model of a run, its kind, and the text that gives its rows in full.

    ``forward``: its definition moved, and what stands is kept.
    """

    run: Run
    session: SparkSession
    node: PlannedNode
    states: Mapping[str, InputState]
    layout: Layout
    kind: Kind
    sent: Spliced
    files: Sequence[str]
    forward: bool = False

    @property
    def name(self) -> str:
        """The model's name."""
        return self.node.name

    @property
    def moment(self) -> str:
        """The moment of the run as a SQL timestamp."""
        run = self.run
        if run.environ.get(CLOCK):
            at = clock(run.environ)
        else:
            at = datetime.fromtimestamp(run.now_us / 1_000_000, timezone.utc)
        return f"{at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}Z"

    def work(self) -> Work:
        """The table that stands."""
        situation = self.run.situation
        run, files = self.run, self.files
        recorded = as_recorded(run, self.name)
        return Work(
            run,
            self.session,
            self.name,
            self.states,
            self.layout,
            situation.recorded[self.name],
            recorded or situation.relations[self.name],
            unfinished=recorded is not None,
            audit=lambda _: check_unchanged(run.sources, files),
        )

    def rows(self) -> DataFrame:
        """All rows of the query, not computed yet."""
        frame = self.session.sql(self.sent.text)
        refuse_twice(self.name, frame.columns)
        _refuse_names(self, frame.columns)
        return frame


def lost(run: Run, name: str, found: Lost) -> SqbError:
    """Only a rebuild would help, which is the user's to decide."""
    record, facts = run.situation.recorded.get(name), run.situation.relations.get(name)
    count = record.rows if record is not None else facts.total_records if facts else None
    rows = "all rows" if count is None else "the row" if count == 1 else f"the {count:,} rows"
    return SqbError(
        "X008",
        f"`{name}` holds history and can't be brought up to date: {found.why} ({found.code})",
        help=_undoing(run, name, found)
        + ("take `full_refresh false` out of its header; " if _deaf(run, name) else "")
        + f"`sqb build --select {name} --full-refresh` builds it anew from what its query "
        f"gives now, and drops {rows} that it holds",
        exit_code=1,
    )


def _deaf(run: Run, name: str) -> bool:
    """Does the header forbid to build it anew?"""
    model = run.compiled.models.get(name)
    return model is not None and model.settings.options.get("full_refresh") is False


def _undoing(run: Run, name: str, found: Lost) -> str:
    """How to take back what someone else wrote, where the version before is still there."""
    record, facts = run.situation.recorded.get(name), run.situation.relations.get(name)
    if found.code != "TARGET_MODIFIED_OUTSIDE" or record is None or facts is None:
        return ""
    if (record.uuid, record.table) != (facts.uuid, facts.shape):
        return ""
    if record.snapshot is None or record.snapshot not in run.versions(name):
        return ""
    expected = run.expected(name)
    table = f"{expected.namespace}.{expected.relation}"
    call = f"CALL {run.catalog.name}.system.set_current_snapshot('{table}', {record.snapshot})"
    return f"`{call}` in Spark takes back what was written since the last build; "


def _refuse_names(job: Job, columns: Sequence[str]) -> None:
    """Raise if a column has a name that changes of rows are told with."""
    if not job.kind.holds_history and job.kind.name != "tracked":
        return
    for column in columns:
        if column.lower() in (WEIGHT, COPIES):
            raise SqbError(
                "X007",
                f"the query of `{job.name}` gives a column `{column}`, a name that sqb compares "
                f"the rows of `{job.kind.name}` tables with",
                help="nothing was written; rename it in the query",
                exit_code=1,
            )


def named(job: Job, wanted: Sequence[str], columns: Sequence[str], key: str) -> tuple[str, ...]:
    """The query's own spelling of columns that the header names."""
    known = {column.lower(): column for column in columns}
    missing = [column for column in wanted if column.lower() not in known]
    if missing:
        raise SqbError(
            "X007",
            f"`{key}` of `{job.name}` names `{missing[0]}`, which its query does not give",
            help=f"the query gives {', '.join(columns)}",
            exit_code=1,
        )
    return tuple(known[column.lower()] for column in wanted)


def check_key(job: Job, frame: DataFrame) -> None:
    """Refuse rows whose unique key is NULL or there twice, naming some."""
    keys = named(job, job.kind.unique_key, frame.columns, "unique_key")
    bad = _bad_keys(frame, keys)
    if bad:
        raise key_error(job, keys, bad)


def _bad_keys(frame: DataFrame, keys: Sequence[str]) -> list[tuple[object, ...]]:
    """Some keys that are NULL or there twice as a table holds them, with how often they are."""
    kinds, count = dict(stored_columns(frame.schema.jsonValue())), unused(keys)
    items = (f"CAST({quote(key)} AS {kinds[key]}) AS {quote(key)}" for key in keys)
    nulls = " OR ".join(f"{quote(key)} IS NULL" for key in keys)
    counted = frame.selectExpr(*items).groupBy(*(quote(key) for key in keys)).agg({"*": "count"})
    bad = counted.toDF(*keys, count).where(f"{quote(count)} > 1 OR {nulls}")
    return [tuple(row) for row in bad.selectExpr(*map(shown, keys), quote(count)).take(3)]


def shown(key: str) -> str:
    """SQL for the text of a key in a message; not all values of Spark are ones of Python."""
    return f"CAST({quote(key)} AS STRING) AS {quote(key)}"


def refuse_other_key(job: Job, work: Work, own: Sequence[str] = (), only: str = "TRUE") -> None:
    """Raise if a header that was edited names columns that what stands was not told apart by.

    ``own`` are columns that sqb adds itself, ``only`` says which rows the key is unique among.
    """
    there = {name.lower(): name for name, _ in work.columns}
    for column in (*own, *job.kind.unique_key):
        if column.lower() not in there:
            raise Lost("DEFINITION_CHANGED", f"it was built without the column `{column}`")
    if not job.forward:
        return
    keys = [there[key.lower()] for key in job.kind.unique_key]
    rows = work.session.sql(f"SELECT * FROM {work.standing}").where(only)
    if _bad_keys(rows, keys):
        raise Lost("DEFINITION_CHANGED", "`unique_key` is NULL or not unique in what it holds")


def key_error(job: Job, keys: Sequence[str], bad: Sequence[tuple[object, ...]]) -> SqbError:
    """What is wrong with the keys of some rows; the last value of each is how many there are."""
    told = []
    for *values, count in bad:
        pairs = zip(keys, values, strict=True)
        where = ", ".join(f"{k} = {'NULL' if v is None else v}" for k, v in pairs)
        told.append(f"{where} ({count} row{'s' * (count != 1)})")
    null = any(None in row for row in bad)
    mend = "leave out rows without a key" if null else "make the query give each key once"
    more = "" if null else f", or name more columns in `unique_key` than {', '.join(keys)}"
    return SqbError(
        "X007",
        f"`unique_key` of `{job.name}` is NULL or not unique in the query's rows: "
        f"{'; '.join(told)}",
        help=f"nothing was written; {mend}{more}",
        exit_code=1,
    )
