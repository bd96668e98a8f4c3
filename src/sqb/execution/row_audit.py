"""The self-audit of refreshes by rows: what is staged against the model's own query.

Now and then, as the header says, the query is run on the inputs of the run, in full or for one
bucket of keys, and compared before anything is published. A difference is a bug of sqb: the table
is rebuilt, and both sides are kept for a report.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from sqb.execution import content_hash
from sqb.execution.comparing import as_stored, comparable, content_of, difference
from sqb.execution.content_hash import quote
from sqb.execution.reading import statement
from sqb.execution.run import Run
from sqb.execution.statement import full_name
from sqb.hashing import digest
from sqb.lake.metadata import Column
from sqb.lake.staging import Staged
from sqb.project.secrets import mask
from sqb.refresh.reasons import Refused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WISH = re.compile(r"(every|sample)\(([0-9.]+)%?\)")
#: So many rows of each side are kept.
_KEPT = 1000


class Due(msgspec.Struct, frozen=True):
    """What is to be audited: one bucket of so many; of one bucket, everything."""

    buckets: int


def due(wish: str, refreshes: int) -> Due | None:
    """What the header asks for after so many refreshes since the last rebuild.

    >>> due("every(20)", 18), due("every(20)", 19), due("sample(0.1%)", 0), due("off", 19)
    (None, Due(buckets=1), Due(buckets=1000), None)
    """
    found = _WISH.fullmatch(wish)
    if found is None:
        return None
    if found[1] == "every":
        return Due(1) if (refreshes + 1) % int(found[2]) == 0 else None
    return Due(max(round(100 / float(found[2])), 1))


def audit_rows(
    run: Run,
    session: SparkSession,
    name: str,
    wanted: Due,
    staged: Staged,
    columns: Sequence[Column],
    key: Sequence[str],
) -> None:
    """Compare what is staged with the query; raise ``Refused`` if they differ.

    ``key`` are columns by which buckets are made; without any they are made by whole rows.
    """
    query = as_stored(session.sql(statement(run, name).text), columns)
    table = session.table(full_name(run.catalog.name, *staged.parts))
    if wanted.buckets > 1:
        bucket = int(digest(run.id, name)[:8], 16) % wanted.buckets
        chosen = _bucket(query, key)
        if chosen is None:
            return
        within = f"pmod({chosen}, {wanted.buckets}) = {bucket}"
        query, table = query.where(within), table.where(within)
    expected, found = content_of(query), content_of(table)
    if expected == found:
        return
    missing, extra = difference(query, table) if comparable(query) else (query, table)
    kept = _keep(run, name, missing, extra)
    counts = f"{found[0] if found else 0:,} rows where the query gives "
    counts += f"{expected[0] if expected else 0:,}"
    raise Refused("AUDIT_FAILED", f"the refreshed table has {counts}{kept}")


def _bucket(frame: DataFrame, key: Sequence[str]) -> str | None:
    """The hash that tells buckets apart; None if rows can't be hashed."""
    if key:
        return f"xxhash64({', '.join(quote(column) for column in key)})"
    hashes = content_hash.row_hashes(frame.schema.jsonValue())
    return hashes[0] if hashes is not None else None


def _keep(run: Run, name: str, missing: DataFrame, extra: DataFrame) -> str:
    """Write both sides into the run's folder; where they are."""
    if run.folder is None:
        return ""
    sides = {
        label: [
            mask(str(row["row"]), run.config, environ=run.environ)
            for row in frame.selectExpr("to_json(struct(*)) AS row").limit(_KEPT).collect()
        ]
        for label, frame in (("missing", missing), ("extra", extra))
    }
    path = run.folder / "row_audit" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"model": name, "sql": statement(run, name).text, **sides}
    path.write_bytes(msgspec.json.format(msgspec.json.encode(document), indent=2))
    return f"; both are in row_audit/{name}.json of the run"
