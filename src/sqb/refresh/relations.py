"""FROM: tables, views, CTEs and derived tables, and how they are joined."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sqb.refresh.block import Block, ViewRef
from sqb.refresh.ir import Col, Constants, Equality, Explode, Expr, Join, Node, Scan, output
from sqb.refresh.joins import Conditions, equality
from sqb.refresh.scope import Named, Scope, by_name, expression
from sqb.sql.fragments import Fragment, Unsupported
from sqb.sql.functions import GENERATORS
from sqb.sql.query import Conjunct, Derived, Joined, LateralView, Nested, Relation, Select, Table


def from_clause(block: Block, select: Select) -> tuple[Node, Scope, list[Conjunct]]:
    """The rows of FROM, what names mean in them, and what ON leaves to WHERE."""
    if select.first is None:
        nothing = Constants(((Expr(("1",)),),), (block.fresh(),))
        return nothing, Scope(outer=block.outer), []
    node, scope = _relation(block, select.first)
    later: list[Conjunct] = []
    for written in select.joins:
        item = written
        if item.kind in ("inner", "cross"):
            # an inner join's sub-query says which rows there are, like one in WHERE
            later += [part for part in item.on if _asks(part)]
            kept = tuple(part for part in item.on if not _asks(part))
            item = msgspec.structs.replace(item, on=kept)
        elif later:
            raise Unsupported("a sub-query in a join condition")
        node, scope = _join(block, node, scope, item)
    for view in select.laterals:
        node, scope = _lateral(block, node, scope, view)
    return node, scope, later


def _asks(conjunct: Conjunct) -> bool:
    return conjunct.query is not None or bool(conjunct.expr and conjunct.expr.queries)


def _relation(block: Block, relation: Relation) -> tuple[Node, Scope]:
    if not isinstance(relation, Nested):
        node, named = _named_relation(block, relation)
        return node, Scope((named,), outer=block.outer)
    node, scope = _relation(block, relation.first)
    for item in relation.joins:
        node, scope = _join(block, node, scope, item)
    return node, scope


def _named_relation(block: Block, relation: Table | Derived) -> tuple[Node, Named]:
    if isinstance(relation, Derived):
        plan = block.query(relation.query)
        return plan.root, _named(relation.alias or "", relation.columns or plan.names, plan.root)
    found = block.lookup(relation.start)
    if found is None:
        return _cte(block, relation)
    if isinstance(found, ViewRef):
        block.names.texts.append(found.sql)
        inside = msgspec.structs.replace(block, sql=found.sql, lookup=found.lookup, ctes={})
        plan = inside.query(found.query)
        return plan.root, _named(relation.alias, found.columns or plan.names, plan.root)
    scan = Scan(found.source, tuple((block.fresh(), name) for name in found.columns))
    return scan, _named(relation.alias, found.columns, scan)


def _cte(block: Block, relation: Table) -> tuple[Node, Named]:
    name = _identifier(block.sql, relation.start)
    if name not in block.ctes:
        raise Unsupported(f"the name {name}")
    query, columns, known = block.ctes[name]
    plan = msgspec.structs.replace(block, ctes=known).query(query)
    return plan.root, _named(relation.alias, columns or plan.names, plan.root)


def _join(block: Block, left: Node, scope: Scope, item: Joined) -> tuple[Node, Scope]:
    right, other = _relation(block, item.relation)
    if other.merged:
        # its columns would stand elsewhere in `*`
        raise Unsupported("USING inside parentheses")
    kind = "inner" if item.kind == "cross" else item.kind
    relations = (*scope.relations, *other.relations)
    wide = msgspec.structs.replace(scope, relations=relations)
    conditions = Conditions()
    using = item.using
    if item.natural:
        block.names.starred = True
        # Spark compares these names alone by their case, too
        theirs = {name for name, _ in other.star(())}
        using = tuple(name for name, _ in scope.star(()) if name in theirs)
    if using:
        conditions, wide = _using(using, scope, other, wide, kind)
    for conjunct in item.on:
        conditions = condition(block, conjunct, wide, left, right, conditions)
    if kind in ("semi", "anti"):
        return Join(kind, left, right, *conditions.parts), wide if using else scope
    if kind == "right":
        return Join("left", right, left, *conditions.swapped().parts), wide
    return Join(kind, left, right, *conditions.parts), wide


def _using(
    names: Sequence[str], left: Scope, right: Scope, wide: Scope, kind: str
) -> tuple[Conditions, Scope]:
    """The equalities of USING, and what names mean behind it: its columns come first."""
    equalities: list[Equality] = []
    merged: list[tuple[str, Expr]] = []
    hidden = set(wide.hidden)
    for name in names:
        mine, _ = left.find([name])
        theirs, _ = right.find([name])
        equalities.append(Equality(mine, theirs))
        both = Expr(("COALESCE(", *mine.parts, ", ", *theirs.parts, ")"), (mine, theirs))
        side = right if kind == "right" else left
        called = next(n for n, _ in side.star(()) if n.lower() == name.lower())
        merged.append((called, {"right": theirs, "full": both}.get(kind, mine)))
        hidden |= mine.columns | theirs.columns
    kept = [(n, e) for n, e in left.merged if n.lower() not in {x.lower() for x in names}]
    relations = left.relations if kind in ("semi", "anti") else wide.relations
    shared = [col for e in equalities for col in (*e.left.columns, *e.right.columns)]
    ordered = tuple(_first(named, shared) for named in relations)
    scope = Scope(
        ordered, (*merged, *kept), frozenset(hidden), wide.outer, chained=bool(left.merged)
    )
    return Conditions(tuple(equalities)), scope


def _first(named: Named, shared: Sequence[Col]) -> Named:
    """The columns of USING first, as ``t.*`` gives them."""
    places = {col: place for place, col in enumerate(shared)}
    columns = sorted(named.columns, key=lambda item: places.get(item[1], len(shared)))
    return Named(named.alias, tuple(columns))


def _lateral(block: Block, node: Node, scope: Scope, view: LateralView) -> tuple[Node, Scope]:
    node, made = generated(block, node, scope, view)
    relations = (*scope.relations, Named(view.alias, made))
    return node, msgspec.structs.replace(scope, relations=relations)


def generated(
    block: Block, node: Node, scope: Scope, view: LateralView
) -> tuple[Node, tuple[tuple[str, Col], ...]]:
    """The rows with what a generator makes of each beside them, and what that is called."""
    generator = view.generator
    call = generator.calls[0] if generator.calls else None
    if call is None or call.name not in GENERATORS or not view.columns or generator.queries:
        raise Unsupported("LATERAL VIEW")
    if any(argument.calls for argument in call.arguments):
        raise Unsupported(f"{call.name} of an aggregate or a window function")
    made = tuple(block.fresh() for _ in view.columns)
    expr = expression(block.sql, generator, by_name(scope))
    return Explode(node, expr, made, view.outer), tuple(zip(view.columns, made, strict=True))


def condition(
    block: Block,
    conjunct: Conjunct,
    scope: Scope,
    left: Node,
    right: Node,
    conditions: Conditions,
) -> Conditions:
    """One conjunct of a join: an equality of the two sides, or any predicate over both."""
    if _asks(conjunct) or conjunct.expr is None:
        raise Unsupported("a sub-query in a join condition")
    no_calls(conjunct.expr)
    if conjunct.equal is not None:
        one, two = (expression(block.sql, part, by_name(scope)) for part in conjunct.equal)
        found = equality(one, two, conjunct.null_safe, left, right)
        if found is not None:
            return conditions.with_equality(found)
    return conditions.with_residual(expression(block.sql, conjunct.expr, by_name(scope)))


def no_calls(piece: Fragment) -> None:
    """Aggregates and window functions have no place in WHERE and ON."""
    if piece.calls:
        raise Unsupported("an aggregate or window function in a condition")


def _named(alias: str, names: Sequence[str], node: Node) -> Named:
    if len(names) != len(output(node)):
        raise Unsupported(f"{alias} with other columns than it has")
    return Named(alias, tuple(zip(names, output(node), strict=True)))


def _identifier(sql: str, start: int) -> str:
    if sql[start] == "`":
        return sql[start + 1 : sql.index("`", start + 1)].lower()
    end = start
    while end < len(sql) and (sql[end].isalnum() or sql[end] == "_"):
        end += 1
    return sql[start:end].lower()
