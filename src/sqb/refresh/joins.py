"""Join conditions: which conjunct belongs to which join, and an order in which joins meet.

Inner joins may be taken in any order; written with commas, tables that have nothing in common may
stand side by side. Each table is joined as soon as an equality ties it to those before it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sqb.refresh.ir import Equality, Expr, Filter, Join, Node, collated, output


class Conditions(msgspec.Struct, frozen=True):
    """The conjuncts of one join."""

    equalities: tuple[Equality, ...] = ()
    residual: tuple[Expr, ...] = ()

    @property
    def parts(self) -> tuple[tuple[Equality, ...], tuple[Expr, ...]]:
        """Both, as a join takes them."""
        return self.equalities, self.residual

    def with_equality(self, one: Equality) -> Conditions:
        """And an equality."""
        return Conditions((*self.equalities, one), self.residual)

    def with_residual(self, one: Expr) -> Conditions:
        """And any other predicate."""
        return Conditions(self.equalities, (*self.residual, one))

    def swapped(self) -> Conditions:
        """The same with left and right exchanged."""
        turned = tuple(Equality(e.right, e.left, e.null_safe) for e in self.equalities)
        return Conditions(turned, self.residual)


def equality(one: Expr, two: Expr, null_safe: bool, left: Node, right: Node) -> Equality | None:
    """The equality as one side's expression against the other's, if it is that.

    Strings that are equal under a collation may differ, so one does not stand for the other.
    """
    if collated(one) or collated(two):
        return None
    lefts, rights = frozenset(output(left)), frozenset(output(right))
    if not one.columns or not two.columns:
        return None
    if one.columns <= lefts and two.columns <= rights:
        return Equality(one, two, null_safe)
    if one.columns <= rights and two.columns <= lefts:
        return Equality(two, one, null_safe)
    return None


def push(node: Node, predicate: Expr, equal: Equality | None) -> Node:
    """A WHERE condition, at the lowest join that knows all of its columns and may apply it."""
    if not isinstance(node, Join) or node.kind == "full" or not predicate.columns:
        return Filter(node, predicate)
    lefts = frozenset(output(node.left))
    if predicate.columns <= lefts:
        return _with(node, left=push(node.left, predicate, equal))
    if node.kind != "inner":
        return Filter(node, predicate)
    if predicate.columns <= frozenset(output(node.right)):
        return _with(node, right=push(node.right, predicate, equal))
    found = None
    if equal is not None:
        found = equality(equal.left, equal.right, equal.null_safe, node.left, node.right)
    conditions = Conditions(node.equalities, node.residual)
    if found is not None:
        conditions = conditions.with_equality(found)
    else:
        conditions = conditions.with_residual(predicate)
    equalities, residual = conditions.parts
    return msgspec.structs.replace(node, equalities=equalities, residual=residual)


def _with(node: Join, *, left: Node | None = None, right: Node | None = None) -> Join:
    return msgspec.structs.replace(node, left=left or node.left, right=right or node.right)


def reorder(node: Node) -> Node:
    """The same joins, so that none is a cross join that need not be one."""
    if not isinstance(node, Join) or node.kind != "inner":
        return node
    leaves: list[Node] = []
    conditions: list[tuple[Expr | None, Equality | None]] = []
    _flatten(node, leaves, conditions)
    if len(leaves) < 3 or not _has_cross(node):
        return node
    tree, rest = leaves[0], leaves[1:]
    while rest:
        chosen = next((leaf for leaf in rest if _tied(tree, leaf, conditions)), rest[0])
        rest.remove(chosen)
        tree = Join("inner", tree, chosen)
        tree = _attach(tree, conditions)
    return tree


def _flatten(
    node: Node, leaves: list[Node], conditions: list[tuple[Expr | None, Equality | None]]
) -> None:
    if isinstance(node, Join) and node.kind == "inner":
        _flatten(node.left, leaves, conditions)
        _flatten(node.right, leaves, conditions)
        conditions += [(None, e) for e in node.equalities]
        conditions += [(predicate, None) for predicate in node.residual]
    else:
        leaves.append(node)


def _has_cross(node: Node) -> bool:
    if not isinstance(node, Join) or node.kind != "inner":
        return False
    return not node.equalities or _has_cross(node.left) or _has_cross(node.right)


def _tied(
    tree: Node, leaf: Node, conditions: Sequence[tuple[Expr | None, Equality | None]]
) -> bool:
    return any(
        e is not None and equality(e.left, e.right, e.null_safe, tree, leaf) is not None
        for _, e in conditions
    )


def _attach(tree: Join, conditions: list[tuple[Expr | None, Equality | None]]) -> Join:
    """The conditions that this join is the first to know all columns of; they are used up."""
    known = frozenset(output(tree))
    held = Conditions()
    for item in list(conditions):
        predicate, equal = item
        if equal is not None:
            if not equal.left.columns | equal.right.columns <= known:
                continue
            found = equality(equal.left, equal.right, equal.null_safe, tree.left, tree.right)
            if found is None:
                word = " <=> " if equal.null_safe else " = "
                parts = ("(", *equal.left.parts, ")", word, "(", *equal.right.parts, ")")
                held = held.with_residual(Expr(parts))
            else:
                held = held.with_equality(found)
        else:
            assert predicate is not None
            if not predicate.columns <= known:
                continue
            held = held.with_residual(predicate)
        conditions.remove(item)
    return Join("inner", tree.left, tree.right, *held.parts)
