"""WHERE and sub-queries: EXISTS and IN as joins or marks of rows, others as values."""

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
from sqb.sql.fragments import CallUse, Fragment, Nested, Unsupported
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
            node, values = scalars(block, node, scope, conjunct.expr.queries, nulls_are_false=True)
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
    pairs = _pairs(block, scope, conjunct.values, inside)
    if conjunct.negated and pairs:
        for right, conditions in _not_in_joins(block, node, inside, pairs):
            node = Join("anti", node, right, *conditions.parts)
        return node
    conditions = inside.tied
    for mine, theirs in pairs:
        conditions = _same(conditions, mine, theirs, node, inside.node)
    kind: JoinKind = "anti" if conjunct.negated else "semi"
    return Join(kind, node, inside.node, *conditions.parts)


def _pairs(
    block: Block, scope: Scope, values: Sequence[Fragment], inside: _Inside
) -> list[tuple[Expr, Expr]]:
    """What IN compares: the values on its left with those that are selected."""
    if any(v.calls or v.queries for v in values):
        raise Unsupported("IN of an aggregate or a sub-query")
    mine = [expression(block.sql, v, by_name(scope)) for v in values]
    if mine and len(mine) != len(inside.values):
        raise Unsupported("IN of different widths")
    return list(zip(mine, inside.values, strict=False))


def _same(conditions: Conditions, mine: Expr, theirs: Expr, left: Node, right: Node) -> Conditions:
    found = equality(mine, theirs, False, left, right)
    if found is not None:
        return conditions.with_equality(found)
    return conditions.with_residual(Expr(("(", *mine.parts, ") = (", *theirs.parts, ")")))


def _not_in_joins(
    block: Block, node: Node, inside: _Inside, pairs: Sequence[tuple[Expr, Expr]]
) -> list[tuple[Node, Conditions]]:
    """What a row must not match for NOT IN: a row inside that equals it, or might.

    NULL might equal anything. So three kinds of rows go: those that are equal to one inside,
    all where one inside is NULL, and those that are NULL themselves unless there is none inside.
    """
    (mine, theirs), *more = pairs
    tied = inside.tied
    if more or tied.residual or not mine.columns or not theirs.columns:
        for one, two in pairs:
            test = Expr(("((", *one.parts, ") = (", *two.parts, ")) IS NOT FALSE"))
            tied = tied.with_residual(test)
        return [(inside.node, tied)]
    equal = _same(tied, mine, theirs, node, inside.node)
    nulls = Filter(inside.node, Expr(("(", *theirs.parts, ") IS NULL")))
    without, ties = _tied_only(block, nulls, tied)
    known, others = _tied_only(block, inside.node, tied)
    unknown = Expr(("(", *mine.parts, ") IS NULL"))
    return [
        (inside.node, equal),
        (without, Conditions(ties)),
        (known, Conditions(others, (unknown,))),
    ]


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
            block.names.starred = True
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


def _flag(block: Block, node: Node, scope: Scope, nested: Nested) -> tuple[Node, Expr]:
    """The rows with marks, and what of the marks says that EXISTS, IN or NOT IN is true."""
    inside = _inside(block, node, scope, nested.query)
    pairs = _pairs(block, scope, nested.values, inside)
    if not nested.negated:
        conditions = inside.tied
        for mine, theirs in pairs:
            conditions = _same(conditions, mine, theirs, node, inside.node)
        node, found = _marked(block, node, inside.node, conditions)
        return node, column(found)
    marks: list[Expr] = []
    for right, conditions in _not_in_joins(block, node, inside, pairs):
        node, found = _marked(block, node, right, conditions)
        marks.append(column(found))
    parts = [part for mark in marks for part in (" AND NOT ", *mark.parts)]
    return node, Expr(("NOT ", *parts[1:]))


def _marked(block: Block, node: Node, right: Node, conditions: Conditions) -> tuple[Node, Col]:
    mark = block.fresh()
    return Join("mark", node, right, *conditions.parts, mark), mark


# Scalar sub-queries


def scalars(
    block: Block,
    node: Node,
    scope: Scope | None,
    queries: Iterable[Nested],
    *,
    nulls_are_false: bool = False,
) -> tuple[Node, dict[int, Expr]]:
    """The rows with the value of each sub-query beside them, and what the values are.

    Without a scope nothing of the row is seen inside: it is that of a group. ``nulls_are_false``
    says that the sub-queries stand in a condition, for whose whole NULL is as good as FALSE; or in
    the results of a query, where Spark makes FALSE of an IN that is NULL, unless something else is
    done with it: then its optimizer may make NOT IN of it before.
    """
    found: dict[int, Expr] = {}
    asked: dict[str, bool] = {}
    for nested in queries:
        if nested.start in found:
            continue
        if nested.asks != "value":
            if scope is None:
                raise Unsupported("EXISTS or IN beside GROUP BY")
            if nested.asks == "in" and nested.matters == "value":
                raise Unsupported("IN as a value")
            if nested.asks == "in" and nested.matters == "whole" and not nulls_are_false:
                raise Unsupported("IN as a value")
            if nested.asks == "in":
                _ask_plainly(block, nested, asked)
            node, found[nested.start] = _flag(block, node, scope, nested)
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


def _ask_plainly(block: Block, nested: Nested, asked: dict[str, bool]) -> None:
    """Refuse an IN that Spark's optimizer makes something else of before it is evaluated: NULL of
    one whose left side is constant, TRUE of one beside its contrary."""
    if not any(value.columns for value in nested.values):
        raise Unsupported("IN of a constant")
    text = " ".join(block.sql[nested.start : nested.end].upper().split()).replace(" NOT IN", " IN")
    if asked.setdefault(text, nested.negated) != nested.negated:
        raise Unsupported("IN and NOT IN of the same")


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
    right = Aggregate(rows, keys, tuple(made))
    return Join("left", node, right, equalities, once=True), value


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
