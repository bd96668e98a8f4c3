"""Constants that moved since the last build, such as today's date.

The same query with the old and with the new values gives two plans of one form. Where they differ
in filters and computed columns alone, the rows that these treat otherwise are part of the change.
"""

from __future__ import annotations

import msgspec

from sqb.refresh.ir import Expr, Filter, Join, Node, Project, inputs, with_inputs
from sqb.sql.fragments import Unsupported


def paired(old: Node, new: Node) -> Node:
    """The new plan, whose filters and computed columns know what they were before.

    >>> from sqb.refresh.ir import Col, Expr, Scan
    >>> d = Col("c1")
    >>> then, now = (Filter(Scan("t", ((d, "d"),)), Expr((d, f" > {n}"))) for n in (1, 2))
    >>> paired(then, now).before.parts
    (Col(name='c1'), ' > 1')
    """
    if type(old) is not type(new):
        raise Unsupported("the plan has another form", "CONSTANT_MOVED")
    pairs = zip(inputs(old), inputs(new), strict=True)
    children = [paired(before, after) for before, after in pairs]
    node = with_inputs(new, children)
    if isinstance(old, Filter) and isinstance(node, Filter):
        if old.predicate != node.predicate:
            return msgspec.structs.replace(node, before=old.predicate)
        return node
    if isinstance(old, Project) and isinstance(node, Project):
        return msgspec.structs.replace(node, before=old.items if old.items != node.items else None)
    if isinstance(old, Join) and isinstance(node, Join):
        return _paired_join(old, node)
    if with_inputs(old, children) != node:
        raise Unsupported("a constant outside a filter", "CONSTANT_MOVED")
    return node


def _paired_join(old: Join, new: Join) -> Node:
    """A join whose conditions moved: for an inner one they filter its rows."""
    if old.equalities != new.equalities:
        raise Unsupported("a constant in what a join matches by", "CONSTANT_MOVED")
    if old.residual == new.residual:
        return new
    if new.kind != "inner" or len(old.residual) != len(new.residual):
        raise Unsupported(f"a constant in a {new.kind} join", "CONSTANT_MOVED")
    pairs = list(zip(old.residual, new.residual, strict=True))
    same = tuple(now for then, now in pairs if then == now)
    node: Node = msgspec.structs.replace(new, residual=same)
    for then, now in pairs:
        if then != now:
            node = Filter(node, Expr(now.parts), Expr(then.parts))
    return node
