"""Conditions of a join, checked on the changed keys of one or both of its sides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sqb.refresh.ir import Col, Equality, Expr, Join, column, columns
from sqb.refresh.restrict import Keys
from sqb.refresh.script import text

#: A condition of a join: an equality, or any other predicate over both sides.
Condition = Equality | Expr


class Matches(msgspec.Struct, frozen=True):
    """Changed keys of one side of a join: the step, what its columns stand for, and the
    conditions that can be checked with them."""

    step: str
    names: dict[Expr, str]
    conditions: tuple[Condition, ...]


def conditions_of(node: Join) -> tuple[Condition, ...]:
    """All that a join asks for."""
    return (*node.equalities, *node.residual)


def needs(condition: Condition, side: frozenset[Col]) -> Keys:
    """What a condition reads of one side."""
    if isinstance(condition, Equality):
        return (condition.left if condition.left.columns <= side else condition.right,)
    return columns(sorted(condition.columns & side, key=lambda col: col.name))


def wanted_keys(must: Keys, conditions: Iterable[Condition], side: frozenset[Col]) -> Keys:
    """The columns of one side that a key and conditions need."""
    more = (expr for condition in conditions for expr in needs(condition, side))
    return tuple(dict.fromkeys((*must, *more)))


def matches(step: str | None, wanted: Keys, conditions: Iterable[Condition]) -> Matches:
    """A step with changed keys, and what its columns are."""
    if step is None:
        raise TypeError("an unchanged side has no changed keys")
    names = {expr: f"k{i}" for i, expr in enumerate(wanted)}
    return Matches(step, names, tuple(conditions))


def qualified(found: Matches, alias: str) -> dict[Expr, str]:
    """What changed keys are called under an alias."""
    return {expr: f"{alias}.{name}" for expr, name in found.names.items()}


def named(expr: Expr, names: Mapping[Expr, str]) -> str:
    """An expression where it, or each of its columns, has a name."""
    whole = names.get(expr)
    return whole or text(expr, lambda col: names[column(col)])


def all_hold(conditions: Iterable[Condition], names: Mapping[Expr, str]) -> str:
    """The conditions as one predicate."""
    parts: list[str] = []
    for item in conditions:
        if isinstance(item, Equality):
            word = "IS NOT DISTINCT FROM" if item.null_safe else "="
            parts.append(f"({named(item.left, names)}) {word} ({named(item.right, names)})")
        else:
            parts.append(f"({named(item, names)})")
    return " AND ".join(parts) or "TRUE"
