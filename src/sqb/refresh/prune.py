"""A plan without the columns that nobody asks for.

A change of a column that a query does not read is then no change, and a type that can't be
compared does not stand in the way unless the query uses it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from sqb.refresh.ir import (
    Aggregate,
    Col,
    Constants,
    Distinct,
    Explode,
    Expr,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    Single,
    Top,
    Window,
    output,
)


def pruned(node: Node) -> Node:
    """The same rows from the columns that they are made of."""
    return _prune(node, frozenset(output(node)))


def _prune(node: Node, wanted: frozenset[Col]) -> Node:
    match node:
        case Scan():
            kept = tuple(pair for pair in node.columns if pair[0] in wanted)
            return msgspec.structs.replace(node, columns=kept or node.columns[:1])
        case Filter():
            used = node.predicate.columns | (node.before.columns if node.before else frozenset())
            below = _prune(node.child, wanted | used)
            return msgspec.structs.replace(node, child=below)
        case Project():
            items = tuple(item for item in node.items if item[0] in wanted) or node.items[:1]
            left = {col for col, _ in items}
            before = tuple(item for item in node.before or () if item[0] in left)
            child = _prune(node.child, _read(expr for _, expr in (*items, *before)))
            return Project(child, items, before if before and before != items else None)
        case Explode():
            below = _prune(node.child, (wanted | node.generator.columns) - set(node.made))
            return msgspec.structs.replace(node, child=below)
        case Join() if node.mark is not None and node.mark not in wanted:
            return _prune(node.left, wanted)
        case Join():
            used = wanted | _read(
                [*(e.left for e in node.equalities), *(e.right for e in node.equalities)]
            )
            used |= _read(node.residual)
            one = _prune(node.left, used & frozenset(output(node.left)))
            two = _prune(node.right, used & frozenset(output(node.right)))
            return msgspec.structs.replace(node, left=one, right=two)
        case Aggregate():
            calls = tuple(call for call in node.calls if call[0] in wanted)
            if not node.keys and not calls:
                calls = node.calls[:1]
            used = _read([*(e for _, e in node.keys), *(call.text for _, call in calls)])
            return Aggregate(_prune(node.child, used), node.keys, calls)
        case Window():
            windows = tuple(item for item in node.items if item.column in wanted)
            used = wanted - {item.column for item in node.items}
            used |= _read(item.call.text for item in windows)
            child = _prune(node.child, used)
            return Window(child, windows) if windows else child
        case Constants():
            return node
        case Single():
            return Single(pruned(node.child), node.column)
        case Distinct() | Top():
            return msgspec.structs.replace(node, child=pruned(node.child))
        case SetOperation():
            one, two = (_prune(s, frozenset(output(s))) for s in (node.left, node.right))
            return msgspec.structs.replace(node, left=one, right=two)


def _read(exprs: Iterable[Expr]) -> frozenset[Col]:
    return frozenset(col for expr in exprs for col in expr.columns)
