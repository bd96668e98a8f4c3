"""WHERE and the sub-queries in it: EXISTS and IN as joins, scalar sub-queries as values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from sqb.refresh.block import Block
from sqb.refresh.ir import (
    Aggregate,
    Call,
    Col,
    Distinct,
    Equality,
    Expr,
    Filter,
    Join,
    JoinKind,
    Node,
    Project,
    Single,
    column,
    output,
)
from sqb.refresh.joins import Conditions, equality, push, reorder
from sqb.refresh.relations import condition, from_clause, no_calls
from sqb.refresh.scope import Scope, by_name, expression
from sqb.sql.fragments import CallUse, Nested, Unsupported
from sqb.sql.query import Conjunct, Query, Select

#: What an aggregate is where there are no rows.
_NULL_OF_NOTHING = frozenset(
    {"sum", "avg", "mean", "min", "max", "first", "last", "any_value", "min_by", "max_by", "median"}
    | {"std", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop"}
    | {"bool_and", "bool_or", "every", "some", "any"}
)
_ZERO_OF_NOTHING = frozenset({"count", "count_if"})


def where(block: Block, node: Node, scope: Scope, conjuncts: Sequence[Conjunct]) -> Node:
    """The rows of FROM for which all conditions hold."""
    plain = [c for c in conjuncts if c.expr is not None and not c.expr.queries]
    for conjunct in plain:
        assert conjunct.expr is not None
        no_calls(conjunct.expr)
        equal = None
        if conjunct.equal is not None:
            one, two = (expression(block.sql, p, by_name(scope)) for p in conjunct.equal)
            equal = Equality(one, two, conjunct.null_safe)
        whole = expression(block.sql, conjunct.expr, by_name(scope))
        node = push(node, whole, equal)
    node = reorder(node)
    for conjunct in conjuncts:
        if conjunct.expr is not None and conjunct.expr.queries:
            no_calls(conjunct.expr)
            node, values = scalars(block, node, scope, conjunct.expr.queries)
            predicate = expression(block.sql, conjunct.expr, by_name(scope), scalars=values)
            node = Filter(node, predicate)
        elif conjunct.query is not None:
            node = _matched(block, node, scope, conjunct, conjunct.query)
    return node


# EXISTS and IN


class _Inside(msgspec.Struct, frozen=True):
    """The rows of a sub-query, the values it selects, and what ties it to the row outside."""

    node: Node
    values: tuple[Expr, ...]
    tied: Conditions


def _matched(block: Block, node: Node, scope: Scope, conjunct: Conjunct, query: Query) -> Node:
    """EXISTS and IN as a semi join, NOT EXISTS and NOT IN as anti joins."""
    inside = _inside(block, node, scope, query)
    values = tuple(expression(block.sql, v, by_name(scope)) for v in conjunct.values)
    if any(v.calls or v.queries for v in conjunct.values):
        raise Unsupported("IN of an aggregate or a sub-query")
    if values and len(values) != len(inside.values):
        raise Unsupported("IN of different widths")
    pairs = list(zip(values, inside.values, strict=False))
    if conjunct.negated and pairs:
        return _not_in(block, node, inside, pairs)
    conditions = inside.tied
    for mine, theirs in pairs:
        conditions = _same(conditions, mine, theirs, node, inside.node)
    kind: JoinKind = "anti" if conjunct.negated else "semi"
    return Join(kind, node, inside.node, *conditions.parts)


def _same(conditions: Conditions, mine: Expr, theirs: Expr, left: Node, right: Node) -> Conditions:
    found = equality(mine, theirs, False, left, right)
    if found is not None:
        return conditions.with_equality(found)
    return conditions.with_residual(Expr(("(", *mine.parts, ") = (", *theirs.parts, ")")))


def _not_in(block: Block, node: Node, inside: _Inside, pairs: Sequence[tuple[Expr, Expr]]) -> Node:
    """NOT IN keeps a row that no row inside equals or might equal.

    NULL might equal anything. So three kinds of rows go: those that are equal to one inside,
    all where one inside is NULL, and those that are NULL themselves unless there is none inside.
    """
    (mine, theirs), *more = pairs
    tied = inside.tied
    if more or tied.residual or not mine.columns or not theirs.columns:
        for one, two in pairs:
            test = Expr(("((", *one.parts, ") = (", *two.parts, ")) IS NOT FALSE"))
            tied = tied.with_residual(test)
        return Join("anti", node, inside.node, *tied.parts)
    equal = _same(tied, mine, theirs, node, inside.node)
    node = Join("anti", node, inside.node, *equal.parts)
    nulls = Filter(inside.node, Expr(("(", *theirs.parts, ") IS NULL")))
    known, ties = _tied_only(block, nulls, tied)
    node = Join("anti", node, known, ties)
    known, ties = _tied_only(block, inside.node, tied)
    return Join("anti", node, known, ties, (Expr(("(", *mine.parts, ") IS NULL")),))


def _tied_only(block: Block, node: Node, tied: Conditions) -> tuple[Node, tuple[Equality, ...]]:
    """Once each: what ties a sub-query's rows to the row outside."""
    items = [(block.fresh(), e.right) for e in tied.equalities]
    ties = tuple(
        Equality(e.left, column(col), e.null_safe)
        for e, (col, _) in zip(tied.equalities, items, strict=True)
    )
    if not items:
        items = [(block.fresh(), Expr(("1",)))]
    return Distinct(Project(node, tuple(items))), ties


def _inside(block: Block, outer: Node, scope: Scope, query: Query) -> _Inside:
    try:
        plan = block.query(query)
    except Unsupported:
        return _correlated(block, outer, scope, query)
    return _Inside(plan.root, tuple(column(col) for col in output(plan.root)), Conditions())


def _correlated(block: Block, outer: Node, scope: Scope, query: Query) -> _Inside:
    select = query.body
    if query.ctes or not isinstance(select, Select):
        raise Unsupported("a correlated sub-query with WITH or a set operation")
    if select.group or select.group_all or select.having or select.qualify:
        raise Unsupported("a correlated sub-query with GROUP BY")
    inner = block.within(scope)
    node, seen, tied = _rows(inner, outer, select)
    values: list[Expr] = []
    for item in select.items:
        if item.expr is None:
            values += [expr for _, expr in seen.star(item.star or (), item.without)]
            continue
        if item.expr.calls or item.expr.queries:
            raise Unsupported("an aggregate in a correlated sub-query")
        values.append(expression(block.sql, item.expr, by_name(seen)))
    conditions = Conditions()
    for conjunct in tied:
        conditions = condition(inner, conjunct, seen, outer, node, conditions)
    return _Inside(node, tuple(values), conditions)


def _rows(inner: Block, outer: Node, select: Select) -> tuple[Node, Scope, list[Conjunct]]:
    """A correlated sub-query's rows, and the conditions that tie it to the row outside."""
    node, seen, later = from_clause(inner, select)
    outside = frozenset(output(outer))
    own: list[Conjunct] = []
    tied: list[Conjunct] = []
    for conjunct in (*select.where, *later):
        if conjunct.expr is None or conjunct.expr.queries:
            own.append(conjunct)
            continue
        read = expression(inner.sql, conjunct.expr, by_name(seen)).columns
        (tied if read & outside else own).append(conjunct)
    return where(inner, node, seen, own), seen, tied


# Scalar sub-queries


def scalars(
    block: Block, node: Node, scope: Scope | None, queries: Iterable[Nested]
) -> tuple[Node, dict[int, Expr]]:
    """The rows with the value of each sub-query beside them, and what the values are.

    Without a scope nothing of the row is seen inside: it is that of a group.
    """
    found: dict[int, Expr] = {}
    for nested in queries:
        if nested.start in found:
            continue
        try:
            plan = block.query(nested.query)
        except Unsupported:
            if scope is None:
                raise
            node, found[nested.start] = _for_each(block, node, scope, nested.query)
            continue
        if len(plan.names) != 1:
            raise Unsupported("a scalar sub-query of several columns")
        col = block.fresh()
        node = Join("inner", node, Single(plan.root, col))
        found[nested.start] = column(col)
    return node, found


def _for_each(block: Block, node: Node, scope: Scope, query: Query) -> tuple[Node, Expr]:
    """A correlated sub-query's aggregates by what ties it to the row outside."""
    select = query.body
    if query.ctes or not isinstance(select, Select):
        raise Unsupported("a correlated sub-query with WITH or a set operation")
    if select.group or select.group_all or select.having or select.qualify or select.distinct:
        raise Unsupported("a correlated sub-query with GROUP BY")
    item = select.items[0].expr
    if len(select.items) != 1 or item is None or not item.calls or item.queries:
        raise Unsupported("a correlated sub-query without an aggregate")
    inner = block.within(scope)
    rows, seen, tied = _rows(inner, node, select)
    conditions = Conditions()
    for conjunct in tied:
        conditions = condition(inner, conjunct, seen, node, rows, conditions)
    if conditions.residual:
        raise Unsupported("a correlated sub-query with more than equalities")
    keys = tuple((block.fresh(), e.right) for e in conditions.equalities)
    equalities = tuple(
        Equality(e.left, column(col), e.null_safe)
        for e, (col, _) in zip(conditions.equalities, keys, strict=True)
    )
    calls: dict[CallUse, Expr] = {}
    made: list[tuple[Col, Call]] = []
    for use in item.calls:
        col = block.fresh()
        made.append((col, plain_call(block, use, seen)))
        calls[use] = _of_nothing(use, col)

    if any(all(not c.start <= u.start < c.end for c in item.calls) for u in item.columns):
        raise Unsupported("a column beside an aggregate")
    value = expression(block.sql, item, by_name(seen), calls)
    return Join("left", node, Aggregate(rows, keys, tuple(made)), equalities), value


def plain_call(block: Block, use: CallUse, scope: Scope) -> Call:
    """An aggregate over the rows of FROM."""
    if use.kind != "aggregate" or any(argument.calls for argument in use.arguments):
        raise Unsupported("an aggregate inside an aggregate")
    if use.queries:
        raise Unsupported("a sub-query in a correlated aggregate")
    text = expression(block.sql, use.span, by_name(scope))
    arguments = tuple(expression(block.sql, arg, by_name(scope)) for arg in use.arguments)
    return Call(named(use), text, arguments, use.filtered)


def named(use: CallUse) -> str:
    """The name that an aggregate is judged by."""
    return f"{use.name}_distinct" if use.distinct else use.name


def _of_nothing(use: CallUse, col: Col) -> Expr:
    """The aggregate, also where no row matched."""
    if use.name in _ZERO_OF_NOTHING:
        return Expr(("COALESCE(", col, ", 0)"))
    if use.name in _NULL_OF_NOTHING:
        return column(col)
    raise Unsupported(f"{use.name} in a correlated sub-query")
