"""A strategy as users read it: its name and key, why it is taken, why the others are not."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sqb.execution.accounts import Account
from sqb.lake.metadata import TableFacts
from sqb.planning.plan import Numbers, Strategy
from sqb.refresh.build import Plan
from sqb.refresh.cost import Estimate
from sqb.refresh.ir import output
from sqb.refresh.reasons import Refused, Rejected
from sqb.refresh.script import text
from sqb.refresh.strategies import AffectedKey, Choice, GroupMerge, Option

_WHY = {
    "append": "rows only came, and each gives rows of its own",
    "group_merge": "the aggregates of the change are merged into their groups",
    "affected_key": "the rows of the keys that changed are computed again",
    "partition_overwrite": "the partitions that changed are computed again",
    "bag_merge": "the exact change is applied row by row",
    "top_merge": "the change is merged into the first rows of the order",
}


def told(
    option: Option, choice: Choice, plan: Plan, base: TableFacts, *, plain: bool = True
) -> Strategy:
    """The strategy as users read it; only of a ``plain`` table are partitions replaced whole."""
    names = dict(zip(output(plan.root), plan.names, strict=True))
    key: tuple[str, ...] | None = None
    if isinstance(option, AffectedKey):
        key = tuple(text(expr, lambda col: names.get(col, col.name)) for expr in option.key)
    if isinstance(option, GroupMerge):
        key = tuple(plan.names[place] for place in option.keys)
    name = option.name
    if plain and isinstance(option, AffectedKey) and is_partition(option, plan, base):
        name = "partition_overwrite"
    return Strategy(name, _WHY[name], key, reasons(choice.rejected))


def is_partition(option: AffectedKey, plan: Plan, base: TableFacts) -> bool:
    """Is the key what the table is partitioned by, by the values themselves?"""
    cols = output(plan.root)
    places = [cols.index(e.column) if e.column in cols else -1 for e in option.key]
    names = {base.columns[place].name for place in places if place >= 0}
    return -1 not in places and bool(names) and names == set(base.partitioning)


def full(code: str, why: str, rejected: Sequence[Rejected] = ()) -> Strategy:
    """The strategy of a full rebuild, with its reason."""
    return Strategy("full", why, rejected=reasons(rejected), code=code)


def refusals(choice: Choice | None, refused: Refused) -> list[Rejected]:
    """Why each way is not taken, those that would give the right rows last."""
    if choice is None:
        return [Rejected("rows", refused.code, refused.why)]
    able = [Rejected(option.name, refused.code, refused.why) for option in choice.options]
    return [*choice.rejected, *able]


def reasons(rejected: Sequence[Rejected]) -> tuple[dict[str, str], ...]:
    """Why ways were not taken, as values of JSON."""
    return tuple({"name": r.name, "code": r.code, "why": r.why} for r in rejected)


def numbers(
    way: Estimate | None, full: Estimate | None, changed: int | None, keys: int | None = None
) -> Numbers:
    """Estimates as users read them."""
    return Numbers(
        round(way.seconds, 1) if way is not None else None,
        round(full.seconds, 1) if full is not None else None,
        way.runs if way is not None else 0,
        full.runs if full is not None else 0,
        changed,
        keys,
    )


def with_numbers(strategy: Strategy, account: Account) -> Strategy:
    """The strategy with what was foreseen and counted in this run."""
    found = numbers(account.guess, account.full, account.changed, account.keys)
    return strategy if found == Numbers() else msgspec.structs.replace(strategy, estimate=found)
