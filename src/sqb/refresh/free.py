"""Results that are not unique: ties, first of a group, sums of floats.

A full rebuild chooses freely; a refresh must not mix two choices. It does not where the rows that
are computed again are whole groups of the very node that chooses.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqb.refresh.ir import (
    Aggregate,
    Col,
    Constants,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    Single,
    Top,
    Window,
    inputs,
    output,
    positions,
)
from sqb.refresh.restrict import Keys, apart, loose, merged, partitioned, through

#: Aggregates whose result depends on the order of the rows.
_FREE = frozenset(
    {"first", "first_value", "last", "last_value", "any_value", "collect_list", "array_agg"}
    | {"collect_set", "mode", "min_by", "max_by", "listagg", "string_agg", "histogram_numeric"}
    | {"approx_percentile", "percentile_approx", "approx_count_distinct", "count_min_sketch"}
)
#: Window functions that tell rows apart which the ORDER BY does not.
_RANKS = frozenset({"row_number", "ntile", "lag", "lead", "nth_value"})
#: Aggregates that add up in the order of the rows.
_SUMS = frozenset(
    {"sum", "avg", "mean", "try_sum", "try_avg", "std", "stddev", "stddev_samp", "stddev_pop"}
    | {"variance", "var_samp", "var_pop", "corr", "covar_pop", "covar_samp", "kurtosis"}
    | {"skewness", "median", "percentile", "percentile_cont", "regr_avgx", "regr_avgy", "regr_r2"}
    | {"regr_intercept", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"}
)


def free_choice(node: Node, types: Mapping[Col, str], keys: Keys | None) -> str | None:
    """The function that makes a free choice where ``keys`` would mix two; None: there is none.

    ``keys`` are those that rows of ``node`` are replaced by; None: by no key at all.
    """
    match node:
        case Scan() | Constants():
            return None
        case Single():
            return free_choice(node.child, types, None)
        case Aggregate():
            chooses = _chooses(node, types)
            own = keys is not None and _within(keys, node) and apart(keys, loose(types))
            if chooses and not own:
                return chooses
            inner = through(keys, dict(node.keys)) if own and keys is not None else None
            return free_choice(node.child, types, inner)
        case Window():
            chooses = _window_chooses(node, types)
            own = keys is not None and partitioned(node, keys, loose(types))
            if chooses and not own:
                return chooses
            return free_choice(node.child, types, keys if own else None)
        case Project():
            same = keys is not None and node.before is None
            inner = through(keys, dict(node.items)) if same and keys is not None else None
            return free_choice(node.child, types, inner)
        case Filter() | Distinct():
            return free_choice(node.child, types, keys)
        case Explode():
            below = keys is not None and _over(keys, node.child)
            return free_choice(node.child, types, keys if below else None)
        case SetOperation():
            left, right = positions(node)
            sides = [through(keys, side) if keys is not None else None for side in (left, right)]
            return free_choice(node.left, types, sides[0]) or free_choice(
                node.right, types, sides[1]
            )
        case Join():
            return _join(node, types, keys)
        case Top():
            return "ties at LIMIT" if ties(node, types) else free_choice(node.child, types, None)


def minds_order(node: Node) -> str | None:
    """A function whose result depends on the order in which rows come; None: there is none."""
    calls = [call for _, call in node.calls] if isinstance(node, Aggregate) else []
    calls += [item.call for item in node.items] if isinstance(node, Window) else []
    names = [call.function.removesuffix("_distinct") for call in calls]
    own = (name for name in names if name in _FREE | _RANKS)
    below = (found for child in inputs(node) if (found := minds_order(child)))
    return next(own, None) or next(below, None)


def ties(node: Top, types: Mapping[Col, str]) -> bool:
    """Can rows that differ be equal by the order, as far as the query tells?

    Not where it orders by all results, or by all that groups are made by.
    """
    by = {one.expr.column for one in node.order}
    if all(col in by and _told_apart(types.get(col)) for col in output(node)):
        return False
    below = node.child
    if isinstance(below, Project):
        by = {expr.column for col, expr in below.items if col in by}
        below = below.child
    while isinstance(below, Filter):
        below = below.child
    return not isinstance(below, Aggregate) or not all(col in by for col, _ in below.keys)


def _join(node: Join, types: Mapping[Col, str], keys: Keys | None) -> str | None:
    left = right = None
    if keys is not None and node.kind == "full":
        pairs = merged(node, keys)
        if pairs is not None:
            left, right = tuple(e.left for e in pairs), tuple(e.right for e in pairs)
    elif keys is not None:
        left = keys if _over(keys, node.left) else None
        if node.kind == "inner":
            right = keys if _over(keys, node.right) else None
    return free_choice(node.left, types, left) or free_choice(node.right, types, right)


def _over(keys: Keys, node: Node) -> bool:
    known = frozenset(output(node))
    return all(expr.columns and expr.columns <= known for expr in keys)


def _within(keys: Keys, node: Aggregate) -> bool:
    grouped = frozenset(col for col, _ in node.keys)
    return all(expr.columns and expr.columns <= grouped for expr in keys)


def _chooses(node: Aggregate, types: Mapping[Col, str]) -> str | None:
    for col, call in node.calls:
        name = call.function.removesuffix("_distinct")
        if name in _FREE:
            return name
        if name in _SUMS and _floating(types.get(col)):
            return f"{name} of floating point numbers"
    for col, _ in node.keys:
        if _collated(types.get(col)):
            return "a group of strings that only compare as equal"
    return None


def _window_chooses(node: Window, types: Mapping[Col, str]) -> str | None:
    for item in node.items:
        name = item.call.function.removesuffix("_distinct")
        if name in _FREE or name in _RANKS:
            return name
        if name in _SUMS and _floating(types.get(item.column)):
            return f"{name} of floating point numbers"
        if any("ROWS" in part.upper() for part in item.call.text.parts if isinstance(part, str)):
            return f"{name} over ROWS"
    return None


def _floating(kind: str | None) -> bool:
    """Not known is taken as floating: then nothing is mixed."""
    return kind is None or kind in ("float", "double")


def _told_apart(kind: str | None) -> bool:
    """Are values that no order tells apart the same to the bit?"""
    return kind is not None and not _floating(kind) and not _collated(kind) and "<" not in kind


def _collated(kind: str | None) -> bool:
    return kind is not None and "collate" in kind.lower()


__all__ = ["free_choice", "minds_order", "ties"]
