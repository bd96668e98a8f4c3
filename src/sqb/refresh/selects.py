"""One SELECT as a plan: FROM, WHERE, groups, HAVING, windows, QUALIFY, then its results."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sqb.refresh.block import Block, Plan
from sqb.refresh.ir import (
    Aggregate,
    Call,
    Col,
    Distinct,
    Expr,
    Filter,
    Node,
    Project,
    SetOperation,
    Window,
    WindowItem,
    column,
)
from sqb.refresh.relations import from_clause, generated
from sqb.refresh.scope import Scope
from sqb.refresh.stages import Key, Out, Stage, item_name, tokens_of
from sqb.refresh.subqueries import scalars, where
from sqb.sql.fragments import CallUse, Fragment, Unsupported
from sqb.sql.query import LateralView, Select


class _Group(msgspec.Struct, frozen=True):
    """An expression that is grouped by."""

    expr: Expr
    tokens: tuple[str | Expr, ...]


def select_plan(block: Block, select: Select) -> Plan:
    """The plan of a SELECT."""
    node, scope, later = from_clause(block, select)
    node = where(block, node, scope, (*select.where, *later))
    made, items = _items(block, select, node, scope)
    pieces = [item.piece for item in items if item.piece is not None]
    pieces += [part.expr for part in (*select.having, *select.qualify) if part.expr]
    calls = list(dict.fromkeys(call for piece in pieces for call in piece.calls))
    below = Stage(block.sql, scope, items)
    names = tuple(item.name for item in items)
    if made is not node and (calls or select.group or select.group_all):
        raise Unsupported("a generator in SELECT beside groups or windows")
    node = made
    if not (select.group or select.group_all or _aggregates(calls)):
        if select.having:
            raise Unsupported("HAVING without GROUP BY")
        plain = [nested for piece in pieces for nested in piece.queries]
        shown = block.last and not select.qualify and not _reused(items)
        node, values = scalars(block, node, scope, plain, nulls_are_false=shown)
        below = msgspec.structs.replace(below, scalars=values)
        return Plan(_results(block, select, node, below, calls), names)
    node, values = scalars(
        block, node, scope, [q for call in _aggregates(calls) for q in call.queries]
    )
    below = msgspec.structs.replace(below, scalars=values)
    groups, sets = _groups(select, below)
    if select.sets is None:
        node, stage = _aggregate(block, node, below, groups, range(len(groups)), calls)
        return Plan(_above(block, select, node, stage, calls, pieces), names)
    if any(call.kind == "window" for call in calls):
        raise Unsupported("a window function over grouping sets")
    branches: list[Node] = []
    for chosen in sets:
        rows, stage = _aggregate(block, node, below, groups, chosen, calls, sets=True)
        branches.append(_above(block, select, rows, stage, calls, pieces, last=False))
    whole = branches[0]
    for branch in branches[1:]:
        cols = tuple(block.fresh() for _ in names)
        whole = SetOperation("union", True, whole, branch, cols)
    return Plan(Distinct(whole) if select.distinct else whole, names)


def _reused(items: Sequence[Out]) -> bool:
    """Is a result that asks a sub-query named in another one?"""
    pieces = [item.piece for item in items if item.piece is not None]
    asking = {item.name.lower() for item in items if item.piece and item.piece.queries}
    return any(use.parts[0].lower() in asking for piece in pieces for use in piece.columns)


def _above(
    block: Block,
    select: Select,
    node: Node,
    stage: Stage,
    calls: Sequence[CallUse],
    pieces: Sequence[Fragment],
    *,
    last: bool = True,
) -> Node:
    """What happens to groups once they are made."""
    later = [
        nested for piece in pieces for nested in piece.queries if nested.start not in stage.scalars
    ]
    # a group is not a row: what its sub-queries see of it is not followed
    node, values = scalars(block, node, None, later)
    stage = msgspec.structs.replace(stage, scalars={**stage.scalars, **values})
    for part in select.having:
        node = Filter(node, stage.condition(part))
    return _results(block, select, node, stage, calls, last=last)


def _results(
    block: Block,
    select: Select,
    node: Node,
    stage: Stage,
    calls: Sequence[CallUse],
    *,
    last: bool = True,
) -> Node:
    node, stage = _windows(block, node, stage, calls)
    for part in select.qualify:
        node = Filter(node, stage.condition(part))
    node = Project(node, tuple((block.fresh(), stage.value(item)) for item in stage.items))
    return Distinct(node) if select.distinct and last else node


def _items(block: Block, select: Select, node: Node, scope: Scope) -> tuple[Node, tuple[Out, ...]]:
    """The results of a SELECT; a generator among them makes rows of the node's."""
    made, out = node, list[Out]()
    for item in select.items:
        if item.star is not None:
            block.names.starred = True
            listed = scope.star(item.star, item.without)
            out += [Out(name, None, expr) for name, expr in listed]
            continue
        assert item.expr is not None
        if any(call.kind == "generator" for call in item.expr.calls):
            names = item.aliases or ((item.alias,) if item.alias is not None else ())
            call = item.expr.calls[0]
            alone = (call.start, call.end) == (item.expr.start, item.expr.end)
            if made is not node or not names or not alone:
                raise Unsupported("a generator in SELECT without AS, inside others or twice")
            made, cols = generated(block, node, scope, LateralView(False, item.expr, "", names))
            out += [Out(name, None, column(col)) for name, col in cols]
            continue
        if item.aliases:
            raise Unsupported("several names for one result")
        out.append(Out(item_name(block.sql, item), item.expr, None))
    return made, tuple(out)


def _aggregates(calls: Sequence[CallUse]) -> list[CallUse]:
    """The aggregates, also those that window functions work on."""
    found: list[CallUse] = []
    for call in calls:
        found += [call] if call.kind == "aggregate" else _aggregates(call.inner)
    return list(dict.fromkeys(found))


def _groups(select: Select, below: Stage) -> tuple[list[_Group], list[tuple[int, ...]]]:
    """Each expression that is grouped by once, and the grouping sets over them."""
    groups: list[_Group] = []
    place: list[int] = []
    for one in _group_keys(select, below):
        known = [n for n, group in enumerate(groups) if group.expr == one.expr]
        place.append(known[0] if known else len(groups))
        if not known:
            groups.append(one)
    if select.sets is not None:
        # Spark takes a + b and b + a for one expression: which of them is NULL in a set?
        made = [g.expr.columns for g in groups if g.expr.column is None]
        if len(set(made)) < len(made):
            raise Unsupported("grouping sets of expressions that may be one")
    sets = [tuple(dict.fromkeys(place[n] for n in chosen)) for chosen in select.sets or ()]
    return groups, sets


def _group_keys(select: Select, below: Stage) -> list[_Group]:
    items = below.items
    if select.group_all:
        if below.scope.has("all"):
            raise Unsupported("GROUP BY ALL beside a column of that name")
        plain = [item for item in items if not _aggregates(item.calls)]
        if any(item.calls or (item.piece and item.piece.queries) for item in plain):
            raise Unsupported("GROUP BY ALL with a window function or a sub-query")
        return [_group(below, item) for item in plain]
    out: list[_Group] = []
    for piece in select.group:
        if piece.calls or piece.queries:
            raise Unsupported("an aggregate or a sub-query in GROUP BY")
        if piece.literal is not None:
            if not 0 < piece.literal <= len(items) or items[piece.literal - 1].calls:
                raise Unsupported(f"GROUP BY {piece.literal}")
            out.append(_group(below, items[piece.literal - 1]))
            continue
        try:
            expr = below.expression(piece)
        except Unsupported:
            item = _by_alias(piece, items)
            if item is None or item.calls:
                raise
            out.append(_group(below, item))
        else:
            out.append(_Group(expr, tokens_of(below.sql, piece, below.scope)))
    return out


def _group(below: Stage, item: Out) -> _Group:
    expr = below.value(item)
    if item.piece is None:
        return _Group(expr, (expr,))
    if item.piece.queries:
        raise Unsupported("a sub-query in GROUP BY")
    return _Group(expr, tokens_of(below.sql, item.piece, below.scope))


def _by_alias(piece: Fragment, items: Sequence[Out]) -> Out | None:
    use = piece.columns[0] if len(piece.columns) == 1 else None
    if use is None or (use.start, use.ends[-1]) != (piece.start, piece.end):
        return None
    found = [item for item in items if item.name.lower() == use.parts[0].lower()]
    return found[0] if len(found) == 1 and len(use.parts) == 1 else None


def _aggregate(
    block: Block,
    child: Node,
    below: Stage,
    groups: Sequence[_Group],
    chosen: Sequence[int],
    calls: Sequence[CallUse],
    *,
    sets: bool = False,
) -> tuple[Node, Stage]:
    """The groups by some of the expressions; the others are NULL."""
    keys: list[tuple[Col, Expr]] = []
    made: list[tuple[Col, Call]] = []
    above: list[Key] = []
    for n, group in enumerate(groups):
        col = block.fresh()
        if n in chosen:
            keys.append((col, group.expr))
        else:  # NULL of its type
            text = Expr(("MAX(CASE WHEN FALSE THEN ", *group.expr.parts, " END)"))
            made.append((col, Call("max", text, (group.expr,))))
        above.append(Key(group.expr, group.tokens, column(col)))
    if not keys and sets:
        # Spark makes no row of an empty table here, as it would without GROUP BY
        keys.append((block.fresh(), Expr(("1",))))
    known: dict[CallUse, Expr] = {}
    for call in _aggregates(calls):
        if any(argument.calls for argument in call.arguments):
            raise Unsupported("an aggregate inside an aggregate")
        if call.name in ("grouping", "grouping_id"):
            if not sets:
                raise Unsupported(f"{call.name} without grouping sets")
            known[call] = _grouping(below, call, groups, chosen)
            continue
        col = block.fresh()
        known[call] = column(col)
        made.append((col, below.call(call)))
    stage = msgspec.structs.replace(below, keys=tuple(above), known=known)
    return Aggregate(child, tuple(keys), tuple(made)), stage


def _grouping(below: Stage, call: CallUse, groups: Sequence[_Group], chosen: Sequence[int]) -> Expr:
    asked = [below.expression(argument) for argument in call.arguments]
    exprs = [group.expr for group in groups]
    if any(expr not in exprs for expr in asked) or (call.name == "grouping" and len(asked) != 1):
        raise Unsupported(call.name)
    places = [exprs.index(expr) for expr in asked] or list(range(len(groups)))
    number = 0
    for place in places:
        number = number * 2 + (place not in chosen)
    kind = "TINYINT" if call.name == "grouping" else "BIGINT"
    return Expr((f"CAST({number} AS {kind})",))


def _windows(
    block: Block, node: Node, stage: Stage, calls: Sequence[CallUse]
) -> tuple[Node, Stage]:
    wanted = [call for call in calls if call.kind == "window"]
    if not wanted:
        return node, stage
    items: list[WindowItem] = []
    known = dict(stage.known)
    for call in wanted:
        if any(inner.kind == "window" for inner in call.inner):
            raise Unsupported("a window function inside a window function")
        col = block.fresh()
        known[call] = column(col)
        partition = tuple(stage.expression(piece) for piece in call.partition)
        items.append(WindowItem(col, partition, stage.call(call)))
    return Window(node, tuple(items)), msgspec.structs.replace(stage, known=known)
