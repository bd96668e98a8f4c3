"""What a user could change to make the refresh of a table cheaper, said in one sentence each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from sqb.refresh.build import Plan
from sqb.refresh.cost import Sizes
from sqb.refresh.ir import (
    Aggregate,
    Col,
    Constants,
    Expr,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    inputs,
    moved_constants,
    output,
)
from sqb.refresh.script import text
from sqb.refresh.strategies import AffectedKey, Option, Situation

#: Reading less of a source than this is not worth a word.
_WIDE = 256_000_000
#: What groups take back where rows go.
_TAKEN_BACK = frozenset({"count", "count_if", "sum"})


class Laid(msgspec.Struct, frozen=True):
    """How a source's files are laid out: the first columns of its partitions and order."""

    by: frozenset[str] = frozenset()


def advise(
    option: Option | None,
    situation: Situation,
    sizes: Sizes,
    laid: Mapping[str, Laid],
    may_keep_groups: bool = False,
) -> tuple[str, ...]:
    """The advice for a table that is refreshed by ``option``, or rebuilt (None).

    ``may_keep_groups``: the query could have a row state, and has none.
    """
    plan = situation.plan
    cheap = option is not None and option.name in ("append", "group_merge")
    found = [] if cheap else [*_missing_keys(plan), *_counts(situation)]
    if may_keep_groups and not cheap and _mergeable(situation):
        found.append("set row_state auto: changes are then merged into groups that are kept")
    if isinstance(option, AffectedKey):
        found += _layout(option, plan, sizes, laid)
    return tuple(found)


def advise_volatile(function: str) -> tuple[str, ...]:
    """The advice for a query that gives other rows each time, or may do so on another day."""
    if function[:1] in "'\"":
        return (f"write DATE{function} where a day is meant: rows can be told then",)
    return (f"remove {function.lower()}(): with it every refresh is a rebuild",)


def _counts(situation: Situation) -> Iterator[str]:
    """Counts that would let a change with deleted rows be merged into its groups."""
    root = situation.plan.root
    node = root.child if isinstance(root, Project) else root
    if not isinstance(node, Aggregate) or not node.keys or not _signed(situation):
        return
    if any(call.function not in _TAKEN_BACK or call.filtered for _, call in node.calls):
        return
    counted = {call.arguments for _, call in node.calls if call.function == "count"}
    wanted: dict[str, None] = {}
    if () not in counted:
        wanted["COUNT(*)"] = None
    for _, call in node.calls:
        if call.function == "sum" and call.arguments not in counted:
            wanted[f"COUNT({_shown(node.child, call.arguments[0])})"] = None
    if wanted:
        yield f"add {' and '.join(wanted)} to the SELECT list: changes are then merged into groups"


def _signed(situation: Situation) -> bool:
    """Do rows go?"""
    return bool(moved_constants(situation.plan.root)) or any(
        not situation.changes[name].only_adds for name in situation.changed
    )


def _mergeable(situation: Situation) -> bool:
    """Can the change be merged into all groups of the query, if all that it needs is kept?"""
    node = situation.plan.root
    while isinstance(node, Project | Filter):
        node = node.child
    if not isinstance(node, Aggregate):
        return False
    if any(situation.types.get(col) in ("float", "double") for col, _ in node.calls):
        # sums of these are computed again whatever is kept
        return False
    taken_back = all(call.function in _TAKEN_BACK for _, call in node.calls)
    return taken_back or not _signed(situation)


def _missing_keys(plan: Plan) -> Iterator[str]:
    """Group columns that are not in the output, where changed rows can't be told by them."""
    node, shown = plan.root, frozenset(output(plan.root))
    if isinstance(node, Project):
        shown = frozenset(c for _, expr in node.items for c in expr.columns)
        node = node.child
    if not isinstance(node, Aggregate):
        return
    missing = [_shown(node.child, expr) for col, expr in node.keys if col not in shown]
    if missing and len(missing) == len(node.keys):
        yield f"add {', '.join(missing)} to the SELECT list: changed rows are then found by it"


def _layout(
    option: AffectedKey, plan: Plan, sizes: Sizes, laid: Mapping[str, Laid]
) -> Iterator[str]:
    """Large sources that are read in full because nothing tells in which files a key is."""
    for source, size in sizes.sources.items():
        if size.read is None or size.read < _WIDE:
            continue
        places = {
            found[1]
            for expr in option.key
            if expr.column is not None and (found := origin(plan.root, expr.column))
            if found[0] == source
        }
        if places and places.isdisjoint(laid.get(source, Laid()).by):
            yield f"sort or partition {source} by {min(places)}: less of it is then read"


def origin(node: Node, col: Col) -> tuple[str, str] | None:
    """The table and the column there that a column hands on unchanged; None: it does not."""
    match node:
        case Scan():
            return next(((node.source, name) for own, name in node.columns if own == col), None)
        case Project():
            expr = dict(node.items).get(col)
            below = expr.column if expr is not None else None
            return origin(node.child, below) if below is not None else None
        case Aggregate():
            expr = dict(node.keys).get(col)
            below = expr.column if expr is not None else None
            return origin(node.child, below) if below is not None else None
        case SetOperation() | Constants():
            return None
        case Join():
            return origin(node.left if col in output(node.left) else node.right, col)
        case _:
            child = inputs(node)[0]
            return origin(child, col) if col in output(child) else None


def _shown(node: Node, expr: Expr) -> str:
    """An expression in the words of the tables."""

    def name(col: Col) -> str:
        found = origin(node, col)
        return found[1] if found is not None else col.name

    return text(expr, name)
