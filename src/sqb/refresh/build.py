"""A query as a plan: what row-level refresh understands of it, or ``Unsupported`` and why.

Views are seen through: a name stands for a table or for another query. Joins written with commas
and WHERE become joins on their equalities, in an order in which each meets what it is joined to.
"""

from __future__ import annotations

import re

import msgspec

from sqb.refresh.block import Block, Lookup, Names, Plan, TableRef, ViewRef
from sqb.refresh.free import minds_order
from sqb.refresh.ir import (
    Constants,
    Join,
    Node,
    SetOperation,
    hands_on_collated,
    inputs,
    scans,
    strange,
)
from sqb.refresh.ordering import first_rows
from sqb.refresh.scope import Scope, by_name, expression
from sqb.refresh.selects import select_plan
from sqb.sql.fragments import Unsupported
from sqb.sql.query import Body, Query, Select, SetQuery, Values


def build(sql: str, query: Query, lookup: Lookup) -> Plan:
    """The plan of a query."""
    names = Names()
    names.texts.append(sql)
    block = Block(sql, lookup, {}, None, names, _query, last=True)
    plan = _query(block, msgspec.structs.replace(query, first=None, in_order=False))
    minding = minds_order(plan.root) if names.in_order else None
    if minding is not None:
        raise Unsupported(f"{minding} of rows that a sub-query puts in order", "FREE_CHOICE")
    words = re.findall(r"\w+", " ".join(names.texts).lower())
    plan = msgspec.structs.replace(plan, words=None if names.starred else frozenset(words))
    return plan if query.first is None else first_rows(sql, plan, query.body, query.first)


def _query(block: Block, query: Query) -> Plan:
    if query.first is not None:
        raise Unsupported("LIMIT in a view", "LIMIT_ORDER")
    block.names.in_order |= query.in_order
    known = dict(block.ctes)
    for name, columns, inner in query.ctes:
        known[name.lower()] = (inner, columns, dict(known))
    plan = _body(msgspec.structs.replace(block, ctes=known), query.body)
    if strange(plan.root) is not None:
        raise Unsupported("a column from outside a sub-query")
    if hands_on_collated(plan.root):
        # which of several equal strings is shown is free, and a table does not keep the collation
        raise Unsupported("COLLATE outside a condition")
    return plan


def _body(block: Block, body: Body) -> Plan:
    match body:
        case Select():
            return select_plan(block, body)
        case SetQuery():
            return _set_query(block, body)
        case Values():
            return _values(block, body)


def _set_query(block: Block, body: SetQuery) -> Plan:
    inside = block.within(block.outer)
    left, right = _body(inside, body.left), _body(inside, body.right)
    if len(left.names) != len(right.names):
        raise Unsupported("a set operation of different widths")
    read, again = ([scan.source for scan in scans(side.root)] for side in (left, right))
    if read == again and _outer(left.root) and body.kind == "except" and not body.all:
        # Spark makes a filter of it, which forgets that outer joins make NULL of NOT NULL
        raise Unsupported("EXCEPT of an outer join and the same again")
    cols = tuple(block.fresh() for _ in left.names)
    return Plan(SetOperation(body.kind, body.all, left.root, right.root, cols), left.names)


def _outer(node: Node) -> bool:
    """Is there an outer join in it?"""
    here = isinstance(node, Join) and node.kind in ("left", "full")
    return here or any(map(_outer, inputs(node)))


def _values(block: Block, body: Values) -> Plan:
    if any(piece.calls for row in body.rows for piece in row):
        raise Unsupported("an aggregate in VALUES")
    nothing = by_name(Scope())
    rows = tuple(tuple(expression(block.sql, piece, nothing) for piece in row) for row in body.rows)
    width = len(rows[0])
    cols = tuple(block.fresh() for _ in range(width))
    return Plan(Constants(rows, cols), tuple(f"col{n + 1}" for n in range(width)))


__all__ = ["Lookup", "Plan", "TableRef", "ViewRef", "build"]
