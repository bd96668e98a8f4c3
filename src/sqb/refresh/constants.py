"""Constants that moved since the last build, such as today's date.

The same query with the old and with the new values gives two plans of one form. Where they differ
in filters alone, the rows that crossed a filter are part of the change.
"""

from __future__ import annotations

import msgspec

from sqb.refresh.ir import Filter, Node, inputs
from sqb.sql.fragments import Unsupported


def paired(old: Node, new: Node) -> Node:
    """The new plan, whose filters know what they were before.

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
    node = _with_inputs(new, children)
    if isinstance(old, Filter) and isinstance(node, Filter):
        if old.predicate != node.predicate:
            return msgspec.structs.replace(node, before=old.predicate)
        return node
    if _with_inputs(old, children) != node:
        raise Unsupported("a constant outside a filter", "CONSTANT_MOVED")
    return node


def _with_inputs(node: Node, children: list[Node]) -> Node:
    names = ("left", "right") if len(children) == 2 else ("child",)
    changed = dict(zip(names, children, strict=True)) if children else {}
    return msgspec.structs.replace(node, **changed)
