"""The rows of the keys that changed, where the sources' changes tell which keys those are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from sqb.execution.content_hash import quote
from sqb.execution.kinds.job import Job, named
from sqb.execution.kinds.whole import NEW
from sqb.execution.rows import RowRefresh
from sqb.refresh.ir import columns, output
from sqb.refresh.reasons import Refused, Rejected
from sqb.refresh.strategies import Choice, affected_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: The temp view of the keys that changed; its columns are called as the table's.
KEYS = "sqb_keys"


class Restricted(RowRefresh):
    """Computes ``NEW`` and ``KEYS``; the rest is done by the kind that asked."""

    def __init__(self, job: Job, own: Sequence[str]) -> None:
        super().__init__(job.run, job.session, job.node, job.states, job.layout)
        self.job = job
        self.own = {name.lower() for name in own}

    def rows(self, wanted: Sequence[str], key: str) -> DataFrame | None:
        """The query's rows of all keys that changed; None: nothing changed.

        Raises ``Refused`` or ``Unsupported`` where that can't be told, or costs too much.
        """
        if self.job.forward:
            raise Refused("DEFINITION_CHANGED", "the query is another")
        work = self.job.work()
        self.gate(work.record)
        mine = tuple(c for c in work.base.columns if c.name.lower() not in self.own)
        situation = self.situation(work, msgspec.structs.replace(work.base, columns=mine))
        if not situation.moves:
            return None
        steps, cols = self.steps, output(situation.plan.root)
        names = [column.name for column in mine]
        keys = named(self.job, wanted, names, key)
        exprs = columns(cols[names.index(key)] for key in keys)
        found = affected_by(situation, steps.script, exprs)
        if isinstance(found, Rejected):
            raise Refused(found.code, found.why)
        self.option(Choice((found,), (), steps.script), situation)
        rows = steps.frame(found.rows).selectExpr(
            *(f"{col.name} AS {quote(name)}" for col, name in zip(cols, names, strict=True))
        )
        frame = steps.compute(NEW, rows)
        listed = (f"k{i} AS {quote(name)}" for i, name in enumerate(keys))
        steps.compute(KEYS, steps.frame(found.keys).selectExpr(*listed))
        return frame
