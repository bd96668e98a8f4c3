"""A query as a plan: what row-level refresh understands of it, or ``Unsupported`` and why.

Views are seen through: a name stands for a table or for another query. Joins written with commas
and WHERE become joins on their equalities, in an order in which each meets what it is joined to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sqb.refresh.ir import (
    Aggregate,
    Call,
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
    WindowItem,
    column,
    output,
)
from sqb.refresh.joins import Conditions, equality, joined, push, reorder
from sqb.refresh.scope import Named, Resolve, Scope, expression
from sqb.sql.fragments import CallUse, ColumnUse, Fragment, Unsupported
from sqb.sql.functions import GENERATORS
from sqb.sql.structure import (
    Body,
    Conjunct,
    Derived,
    Item,
    Joined,
    LateralView,
    Query,
    Relation,
    Select,
    SetQuery,
    Table,
)


class TableRef(msgspec.Struct, frozen=True):
    """A name that is a table: its source and columns, as they are called there."""

    source: str
    columns: tuple[str, ...]


class ViewRef(msgspec.Struct, frozen=True):
    """A name that is a view: its own text, its structure, and what its names mean."""

    sql: str
    query: Query
    lookup: Lookup
    columns: tuple[str, ...] | None = None


#: What the reference at an offset of the text is; None: a CTE.
Lookup = Callable[[int], "TableRef | ViewRef | None"]


class Plan(msgspec.Struct, frozen=True):
    """A plan and what its columns are called, in order."""

    root: Node
    names: tuple[str, ...]


Ctes = Mapping[str, "tuple[Query, tuple[str, ...], Ctes]"]


def build(sql: str, query: Query, lookup: Lookup) -> Plan:
    """The plan of a query."""
    return _Builder(_Names()).query(sql, query, lookup, {}, None)


class _Names:
    """Column names that no other column of the plan has."""

    def __init__(self) -> None:
        self._made = 0

    def fresh(self) -> Col:
        self._made += 1
        return Col(f"c{self._made}")


class _Builder:
    def __init__(self, names: _Names) -> None:
        self.names = names

    def query(
        self, sql: str, query: Query, lookup: Lookup, ctes: Ctes, outer: Scope | None
    ) -> Plan:
        known = dict(ctes)
        for name, columns, inner in query.ctes:
            known[name.lower()] = (inner, columns, dict(known))
        return _Block(self, sql, lookup, known, outer).body(query.body)


class _Block:
    """One text with what its names mean."""

    def __init__(
        self, builder: _Builder, sql: str, lookup: Lookup, ctes: Ctes, outer: Scope | None
    ) -> None:
        self.builder = builder
        self.sql = sql
        self.lookup = lookup
        self.ctes = ctes
        self.outer = outer
        self.fresh = builder.names.fresh

    def body(self, body: Body) -> Plan:
        if isinstance(body, Select):
            return self.select(body)
        return self.set_query(body)

    def set_query(self, body: SetQuery) -> Plan:
        left, right = self.body(body.left), self.body(body.right)
        if len(left.names) != len(right.names):
            raise Unsupported("a set operation of different widths")
        cols = tuple(self.fresh() for _ in left.names)
        node = SetOperation(body.kind, body.all, left.root, right.root, cols)
        return Plan(node, left.names)

    # FROM

    def relation(self, relation: Relation) -> tuple[Node, Named]:
        if isinstance(relation, Derived):
            plan = self.builder.query(self.sql, relation.query, self.lookup, self.ctes, None)
            names = relation.columns or plan.names
            return plan.root, _named(relation.alias or "", names, plan.root)
        found = self.lookup(relation.start)
        if found is None:
            return self.cte(relation)
        if isinstance(found, ViewRef):
            plan = self.builder.query(found.sql, found.query, found.lookup, {}, None)
            names = found.columns or plan.names
            return plan.root, _named(relation.alias, names, plan.root)
        scan = Scan(found.source, tuple((self.fresh(), name) for name in found.columns))
        return scan, _named(relation.alias, found.columns, scan)

    def cte(self, relation: Table) -> tuple[Node, Named]:
        name = _identifier(self.sql, relation.start)
        if name not in self.ctes:
            raise Unsupported(f"the name {name}")
        query, columns, known = self.ctes[name]
        plan = self.builder.query(self.sql, query, self.lookup, known, None)
        return plan.root, _named(relation.alias, columns or plan.names, plan.root)

    def from_clause(self, select: Select) -> tuple[Node, Scope]:
        if select.first is None:
            raise Unsupported("a SELECT without FROM")
        node, named = self.relation(select.first)
        scope = Scope((named,), outer=self.outer)
        for item in select.joins:
            node, scope = self.join(node, scope, item)
        for view in select.laterals:
            node, scope = self.lateral(node, scope, view)
        return node, scope

    def join(self, left: Node, scope: Scope, item: Joined) -> tuple[Node, Scope]:
        right, named = self.relation(item.relation)
        kind = "inner" if item.kind == "cross" else item.kind
        wide = Scope((*scope.relations, named), scope.merged, scope.hidden, scope.outer)
        conditions = Conditions()
        using = item.using
        if item.natural:
            mine = {name.lower() for name, _ in scope.star(())}
            using = tuple(name for name, _ in named.columns if name.lower() in mine)
        if using:
            conditions, wide = self.using(using, scope, named, wide, kind)
        for conjunct in item.on:
            conditions = self.condition(conjunct, wide.find, left, right, conditions)
        if kind in ("semi", "anti"):
            return joined(kind, left, right, conditions), scope
        if kind == "right":
            return joined("left", right, left, conditions.swapped()), wide
        return joined(kind, left, right, conditions), wide

    def using(
        self, names: Sequence[str], left: Scope, right: Named, wide: Scope, kind: str
    ) -> tuple[Conditions, Scope]:
        equalities: list[Equality] = []
        merged: list[tuple[str, Expr]] = []
        hidden = set(wide.hidden)
        for name in names:
            mine, _ = left.find([name])
            theirs, _ = Scope((right,)).find([name])
            equalities.append(Equality(mine, theirs))
            both = Expr(("COALESCE(", *mine.parts, ", ", *theirs.parts, ")"), (mine, theirs))
            merged.append((name, {"right": theirs, "full": both}.get(kind, mine)))
            hidden |= mine.columns | theirs.columns
        if kind in ("semi", "anti"):
            return Conditions(tuple(equalities)), wide
        kept = [(n, e) for n, e in left.merged if n.lower() not in {x.lower() for x in names}]
        scope = Scope(wide.relations, (*merged, *kept), frozenset(hidden), wide.outer)
        return Conditions(tuple(equalities)), scope

    def lateral(self, node: Node, scope: Scope, view: LateralView) -> tuple[Node, Scope]:
        generator = view.generator
        call = generator.calls[0] if generator.calls else None
        if call is None or call.name not in GENERATORS or not view.columns:
            raise Unsupported("LATERAL VIEW")
        made = tuple(self.fresh() for _ in view.columns)
        expr = expression(self.sql, generator, _use(scope.find))
        node = Explode(node, expr, made, view.outer)
        named = Named(view.alias, tuple(zip(view.columns, made, strict=True)))
        relations = (*scope.relations, named)
        return node, Scope(relations, scope.merged, scope.hidden, scope.outer)

    # Conditions

    def condition(
        self,
        conjunct: Conjunct,
        find: Callable[[Sequence[str]], tuple[Expr, int]],
        left: Node,
        right: Node,
        conditions: Conditions,
    ) -> Conditions:
        """One conjunct of a join: an equality of the two sides, or any predicate over both."""
        if conjunct.query is not None or conjunct.expr is None:
            raise Unsupported("a sub-query in a join condition")
        if conjunct.equal is not None:
            one, two = (expression(self.sql, part, _use(find)) for part in conjunct.equal)
            found = equality(one, two, conjunct.null_safe, left, right)
            if found is not None:
                return conditions.with_equality(found)
        _no_calls(conjunct.expr)
        return conditions.with_residual(expression(self.sql, conjunct.expr, _use(find)))

    def where(self, node: Node, scope: Scope, conjuncts: Sequence[Conjunct]) -> Node:
        for conjunct in conjuncts:
            if conjunct.expr is None:
                continue
            _no_calls(conjunct.expr)
            equal = None
            if conjunct.equal is not None:
                one, two = (expression(self.sql, p, _use(scope.find)) for p in conjunct.equal)
                equal = Equality(one, two, conjunct.null_safe)
            whole = expression(self.sql, conjunct.expr, _use(scope.find))
            node = push(node, whole, equal)
        node = reorder(node)
        for conjunct in conjuncts:
            if conjunct.query is not None:
                node = self.exists(node, scope, conjunct)
        return node

    def exists(self, node: Node, scope: Scope, conjunct: Conjunct) -> Node:
        """EXISTS, NOT EXISTS and IN as semi and anti joins."""
        query = conjunct.query
        assert query is not None
        if conjunct.value is not None and conjunct.negated:
            raise Unsupported("NOT IN", "NOT_IN_NULL")
        body = query.body
        if query.ctes or not isinstance(body, Select):
            raise Unsupported("a sub-query with WITH or a set operation")
        inner = _Block(self.builder, self.sql, self.lookup, self.ctes, scope)
        right, correlated, first = inner.correlated(body, node)
        conditions = Conditions()
        mine = frozenset(output(node))
        if conjunct.value is not None:
            value = expression(self.sql, conjunct.value, _use(scope.find))
            if not value.columns or not first.columns or not value.columns <= mine:
                raise Unsupported("IN of a constant")
            conditions = conditions.with_equality(Equality(value, first))
        for item in correlated:
            conditions = inner.condition(item, inner.seen.find, node, right, conditions)
        return Join("anti" if conjunct.negated else "semi", node, right, *conditions.parts)

    def correlated(self, select: Select, outer: Node) -> tuple[Node, list[Conjunct], Expr]:
        """A sub-query's rows, the conditions that tie it to the row outside, and its value."""
        if select.group or select.group_all or select.having or select.qualify:
            raise Unsupported("a sub-query with GROUP BY")
        node, scope = self.from_clause(select)
        self.seen = scope
        outside = frozenset(output(outer))
        own: list[Conjunct] = []
        tied: list[Conjunct] = []
        for conjunct in select.where:
            if conjunct.expr is None:
                own.append(conjunct)
                continue
            read = expression(self.sql, conjunct.expr, _use(scope.find)).columns
            (tied if read & outside else own).append(conjunct)
        node = self.where(node, scope, own)
        first = Expr(("1",))
        item = select.items[0]
        if item.expr is not None:
            if item.expr.calls:
                raise Unsupported("an aggregate in a sub-query")
            first = expression(self.sql, item.expr, _use(scope.find))
        return node, tied, first

    # SELECT

    def select(self, select: Select) -> Plan:
        node, scope = self.from_clause(select)
        node = self.where(node, scope, select.where)
        items = self.items(select, scope)
        pieces = [item.piece for item in items if item.piece is not None]
        pieces += [part.expr for part in (*select.having, *select.qualify) if part.expr]
        calls = list(dict.fromkeys(call for piece in pieces for call in piece.calls))
        made = _Made(self.sql, scope, {}, None)
        if select.group or select.group_all or any(c.kind == "aggregate" for c in calls):
            node, made = self.aggregate(node, scope, select, items, calls)
        elif select.having:
            raise Unsupported("HAVING without GROUP BY")
        for part in select.having:
            node = Filter(node, made.condition(part, items))
        node, made = self.windows(node, made, calls)
        for part in select.qualify:
            node = Filter(node, made.condition(part, items))
        node = Project(node, tuple((self.fresh(), made.value(item)) for item in items))
        plan = Distinct(node) if select.distinct else node
        return Plan(plan, tuple(item.name for item in items))

    def items(self, select: Select, scope: Scope) -> list[_Out]:
        out: list[_Out] = []
        for item in select.items:
            if item.star is not None:
                out += [_Out(name, None, expr) for name, expr in scope.star(item.star)]
                continue
            assert item.expr is not None
            if any(call.kind == "generator" for call in item.expr.calls):
                raise Unsupported("a generator in SELECT")
            out.append(_Out(_item_name(self.sql, item), item.expr, None))
        return out

    def aggregate(
        self,
        child: Node,
        scope: Scope,
        select: Select,
        items: Sequence[_Out],
        calls: Sequence[CallUse],
    ) -> tuple[Node, _Made]:
        below = _Made(self.sql, scope, {}, None)
        grouped: dict[Expr, Col] = {}
        for expr in self.group_keys(select, below, items):
            if expr not in grouped:
                grouped[expr] = self.fresh()
        known: dict[CallUse, Col] = {}
        aggregates: list[tuple[Col, Call]] = []
        for call in calls:
            if call.kind == "window":
                raise Unsupported("a window over groups")
            if any(argument.calls for argument in call.arguments):
                raise Unsupported("an aggregate inside an aggregate")
            known[call] = self.fresh()
            aggregates.append((known[call], below.call(call)))
        keys = tuple((col, expr) for expr, col in grouped.items())
        return Aggregate(child, keys, tuple(aggregates)), _Made(self.sql, scope, known, grouped)

    def group_keys(self, select: Select, below: _Made, items: Sequence[_Out]) -> list[Expr]:
        if select.group_all:
            return [below.value(item) for item in items if not item.calls]
        out: list[Expr] = []
        for piece in select.group:
            if piece.calls:
                raise Unsupported("an aggregate in GROUP BY")
            if piece.literal is not None:
                if not 0 < piece.literal <= len(items) or items[piece.literal - 1].calls:
                    raise Unsupported(f"GROUP BY {piece.literal}")
                out.append(below.value(items[piece.literal - 1]))
                continue
            try:
                out.append(below.expression(piece))
            except Unsupported:
                item = _by_alias(piece, items)
                if item is None or item.calls:
                    raise
                out.append(below.value(item))
        return out

    def windows(self, node: Node, made: _Made, calls: Sequence[CallUse]) -> tuple[Node, _Made]:
        wanted = [call for call in calls if call.kind == "window"]
        if not wanted:
            return node, made
        items: list[WindowItem] = []
        known = dict(made.known)
        for call in wanted:
            if any(argument.calls for argument in call.arguments):
                raise Unsupported("an aggregate inside a window function")
            known[call] = self.fresh()
            partition = tuple(made.expression(piece) for piece in call.partition)
            items.append(WindowItem(known[call], partition, made.call(call)))
        return Window(node, tuple(items)), _Made(self.sql, made.scope, known, made.grouped)


class _Out(msgspec.Struct, frozen=True):
    """One column of a block's result: its name, and its text or (from ``*``) its expression."""

    name: str
    piece: Fragment | None
    expr: Expr | None

    @property
    def calls(self) -> tuple[CallUse, ...]:
        return self.piece.calls if self.piece is not None else ()


class _Made(msgspec.Struct, frozen=True):
    """What names and calls mean at a stage of a block: after FROM, after GROUP BY, after OVER."""

    sql: str
    scope: Scope
    known: Mapping[CallUse, Col]
    grouped: Mapping[Expr, Col] | None

    def find(self, use: ColumnUse) -> tuple[Expr, int]:
        expr, used = self.scope.find(use.parts)
        if self.grouped is None or expr.column is None:
            return expr, used
        if expr not in self.grouped:
            raise Unsupported(f"{'.'.join(use.parts)} beside GROUP BY")
        return column(self.grouped[expr]), used

    def expression(self, piece: Fragment) -> Expr:
        if self.grouped is not None and not piece.calls:
            # an expression that is grouped by as a whole
            whole = expression(self.sql, piece, lambda use: self.scope.find(use.parts))
            if whole in self.grouped:
                return column(self.grouped[whole])
        return expression(self.sql, piece, self.find, self.known)

    def value(self, item: _Out) -> Expr:
        if item.piece is not None:
            return self.expression(item.piece)
        assert item.expr is not None
        if self.grouped is None:
            return item.expr
        if item.expr not in self.grouped:
            raise Unsupported("* beside GROUP BY")
        return column(self.grouped[item.expr])

    def call(self, call: CallUse) -> Call:
        text = expression(self.sql, call.span, self.find)
        arguments = tuple(expression(self.sql, arg, self.find) for arg in call.arguments)
        name = f"{call.name}_distinct" if call.distinct else call.name
        return Call(name, text, arguments, call.filtered)

    def condition(self, conjunct: Conjunct, items: Sequence[_Out]) -> Expr:
        """A condition over a block's results, which may use the names in its select list."""
        if conjunct.expr is None:
            raise Unsupported("a sub-query in HAVING or QUALIFY")

        def either(use: ColumnUse) -> tuple[Expr, int]:
            try:
                return self.find(use)
            except Unsupported:
                item = next((i for i in items if i.name.lower() == use.parts[0].lower()), None)
                if item is None:
                    raise
                return self.value(item), 1

        return expression(self.sql, conjunct.expr, either, self.known)


def _named(alias: str, names: Sequence[str], node: Node) -> Named:
    return Named(alias, tuple(zip(names, output(node), strict=True)))


def _use(find: Callable[[Sequence[str]], tuple[Expr, int]]) -> Resolve:
    return lambda use: find(use.parts)


def _identifier(sql: str, start: int) -> str:
    if sql[start] == "`":
        return sql[start + 1 : sql.index("`", start + 1)].lower()
    end = start
    while end < len(sql) and (sql[end].isalnum() or sql[end] == "_"):
        end += 1
    return sql[start:end].lower()


def _item_name(sql: str, item: Item) -> str:
    if item.alias is not None:
        return item.alias
    piece = item.expr
    assert piece is not None
    if len(piece.columns) == 1 and piece.columns[0].start == piece.start:
        use = piece.columns[0]
        if use.ends[-1] == piece.end:
            return use.parts[-1]
    return sql[piece.start : piece.end]


def _by_alias(piece: Fragment, items: Sequence[_Out]) -> _Out | None:
    name = piece.columns[0].parts[0].lower() if len(piece.columns) == 1 else ""
    found = [item for item in items if item.name.lower() == name]
    return found[0] if len(found) == 1 else None


def _no_calls(piece: Fragment) -> None:
    if piece.calls:
        raise Unsupported("an aggregate or window function in a condition")
