"""A node's rows for some keys only, with the restriction pushed down to the tables.

Pushing is done only where it is sound: what a node computes for a key must depend on no row of
another key. Everywhere else the restriction is applied on top, which always is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqb.refresh.ir import (
    Aggregate,
    Col,
    Distinct,
    Equality,
    Explode,
    Expr,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    Window,
    output,
    positions,
    substitute,
)
from sqb.refresh.script import Script, Version, at, keys_of

Keys = tuple[Expr, ...]


def restrict(script: Script, node: Node, exprs: Keys, keys: str, version: Version) -> str:
    """The rows of a node whose ``exprs`` are among ``keys`` (columns k0, k1, …)."""
    match node:
        case Scan():
            return _on_top(script, node, exprs, keys, version)
        case Filter() if _of_a_table(node) and any(expr.column is None for expr in exprs):
            # what the filter leaves out may be what the expression fails for, such as a cast
            return _on_top(script, node, exprs, keys, version)
        case Distinct() | SetOperation() if not apart(exprs, script.loose):
            return _on_top(script, node, exprs, keys, version)
        case Filter() | Distinct():
            below = restrict(script, node.child, exprs, keys, version)
            return script.apply(at(node, version), [below])
        case Project():
            items = node.items if version == "new" or node.before is None else node.before
            below = restrict(script, node.child, through(exprs, dict(items)), keys, version)
            return script.apply(at(node, version), [below])
        case Explode() if _within(exprs, output(node.child)):
            return script.apply(node, [restrict(script, node.child, exprs, keys, version)])
        case Aggregate() if grouped(node, exprs, script.loose):
            inner = through(exprs, dict(node.keys))
            return script.apply(node, [restrict(script, node.child, inner, keys, version)])
        case Window() if partitioned(node, exprs, script.loose):
            return script.apply(node, [restrict(script, node.child, exprs, keys, version)])
        case SetOperation():
            left, right = positions(node)
            children = [
                restrict(script, node.left, through(exprs, left), keys, version),
                restrict(script, node.right, through(exprs, right), keys, version),
            ]
            return script.apply(node, children)
        case Join():
            return _join(script, node, exprs, keys, version)
        case _:
            return _on_top(script, node, exprs, keys, version)


def through(exprs: Keys, defined: dict[Col, Expr]) -> Keys:
    """Keys of a node's output as keys of its input."""
    return tuple(substitute(expr, defined) for expr in exprs)


def loose(types: Mapping[Col, str]) -> frozenset[Col]:
    """The columns with values that are equal and not the same: 0.0 and -0.0.

    >>> sorted(col.name for col in loose({Col("a"): "double", Col("b"): "array<int>"}))
    ['a']
    """
    words = ("float", "double")
    return frozenset(col for col, kind in types.items() if any(w in kind.lower() for w in words))


def apart(exprs: Sequence[Expr], loose: frozenset[Col]) -> bool:
    """Are rows with equal values of the columns rows of one key?

    What is made of 0.0 and of -0.0 need not be equal: their texts are not.
    """
    return all(expr.column is not None or not expr.columns & loose for expr in exprs)


def grouped(node: Aggregate, exprs: Keys, loose: frozenset[Col]) -> bool:
    """Has every key groups of its own, and no rows no group?"""
    keys = (col for col, _ in node.keys)
    return bool(node.keys) and _within(exprs, keys) and apart(exprs, loose)


def partitioned(node: Window, exprs: Keys, loose: frozenset[Col]) -> bool:
    """Does every window function compute within the rows of one key?"""
    if not apart([e for e in exprs if any(e not in i.partition for i in node.items)], loose):
        return False
    for item in node.items:
        plain = {expr.column for expr in item.partition}
        for expr in exprs:
            if expr not in item.partition and not expr.columns <= plain:
                return False
    return True


def merged(node: Join, exprs: Keys) -> list[Equality] | None:
    """The equalities of a full join that keys COALESCE(a, b) stand for, one for each key.

    Plain columns only: an expression may have a value even where its side is missing.
    """
    found: list[Equality] = []
    for expr in exprs:
        args = set(expr.coalesce)
        match = next((e for e in plain_equalities(node) if args == {e.left, e.right}), None)
        if match is None:
            return None
        found.append(match)
    return found


def plain_equalities(node: Join) -> list[Equality]:
    """The equalities between two columns."""
    return [e for e in node.equalities if e.left.column and e.right.column]


def _of_a_table(node: Node) -> bool:
    """Is it made of each row of one table alone?"""
    while isinstance(node, Filter | Project | Explode):
        node = node.child
    return isinstance(node, Scan)


def _within(exprs: Keys, cols: Iterable[Col]) -> bool:
    known = frozenset(cols)
    return all(expr.columns <= known for expr in exprs)


def _on_top(script: Script, node: Node, exprs: Keys, keys: str, version: Version) -> str:
    return script.among(node, script.state(node, version), exprs, keys)


def _join(script: Script, node: Join, exprs: Keys, keys: str, version: Version) -> str:
    lefts, rights = frozenset(output(node.left)), frozenset(output(node.right))
    if node.kind == "full":
        pairs = merged(node, exprs)
        if pairs is None:
            return _on_top(script, node, exprs, keys, version)
        left = restrict(script, node.left, tuple(e.left for e in pairs), keys, version)
        right = restrict(script, node.right, tuple(e.right for e in pairs), keys, version)
        return script.apply(node, [left, right])
    mine = [i for i, expr in enumerate(exprs) if expr.columns <= lefts]
    if node.kind != "inner":
        if len(mine) < len(exprs):
            return _on_top(script, node, exprs, keys, version)
        left = restrict(script, node.left, exprs, keys, version)
        return script.apply(node, [left, _follow(script, node, left, version)])
    theirs = [i for i, expr in enumerate(exprs) if i not in mine and expr.columns <= rights]
    if not mine and not theirs:
        return _on_top(script, node, exprs, keys, version)
    if not theirs:
        left = _side(script, node.left, exprs, mine, keys, version)
        right = _follow(script, node, left, version)
    elif not mine:
        right = _side(script, node.right, exprs, theirs, keys, version)
        left = _follow(script, _swapped(node), right, version)
    else:
        left = _side(script, node.left, exprs, mine, keys, version)
        right = _side(script, node.right, exprs, theirs, keys, version)
    rows = script.apply(node, [left, right])
    if len(exprs) in (len(mine), len(theirs)):
        return rows
    return script.among(node, rows, exprs, keys)


def _side(
    script: Script, node: Node, exprs: Keys, which: list[int], keys: str, version: Version
) -> str:
    """One side of a join, restricted by the part of the key that it owns."""
    if len(which) < len(exprs):
        items = ", ".join(f"k{i} AS k{n}" for n, i in enumerate(which))
        keys = script.add("keys", f"SELECT DISTINCT {items} FROM {keys}", (keys,))
    return restrict(script, node, tuple(exprs[i] for i in which), keys, version)


def _follow(script: Script, node: Join, left: str, version: Version) -> str:
    """The other side of a join, reduced to what can match the rows that are left of this one."""
    if not node.equalities:
        return script.state(node.right, version)
    mine = tuple(e.left for e in node.equalities)
    sql = f"SELECT DISTINCT {keys_of(mine)} FROM {left}"
    keys = script.add("keys", sql, (left,))
    return restrict(script, node.right, tuple(e.right for e in node.equalities), keys, version)


def _swapped(node: Join) -> Join:
    equalities = tuple(Equality(e.right, e.left, e.null_safe) for e in node.equalities)
    return Join(node.kind, node.right, node.left, equalities, node.residual)
