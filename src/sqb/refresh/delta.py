"""The exact change of a node: rows that came and went, each with its weight.

A node that treats each row alone is applied to the change of its input, an inner join to the
change of one side and then of the other. Everything else is the difference of its new and its old
rows, both for the changed keys only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqb.refresh.ir import (
    Aggregate,
    Explode,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    Single,
    output,
)
from sqb.refresh.restrict import restrict
from sqb.refresh.script import WEIGHT, at, text

if TYPE_CHECKING:
    from sqb.refresh.derive import Derivation


def delta_of(known: Derivation, node: Node) -> str:
    """A step with the change of a node that may have changed."""
    match node:
        case Scan():
            return known.script.add("change", known.script.scan(node, "changes"))
        case Filter() | Project() if node.before is not None:
            return _moved(known, node)
        case Filter() | Project() | Explode():
            return known.script.apply(node, [_need(known, node.child)], WEIGHT)
        case SetOperation(kind="union", all=True):
            return _sum(known, node)
        case Join(kind="inner"):
            return join_delta(known, node)
        case Join(kind="left" | "semi" | "anti" | "mark") if not known.moves(node.right):
            right = known.script.state(node.right, "new")
            return joined(known, node, _need(known, node.left), right)
        case Single() | Aggregate(keys=()):
            return one_row(known, node)
        case _:
            return difference(known, node)


def one_row(known: Derivation, node: Node) -> str:
    """The new row and the old one, if they are not the same to the last bit."""
    known.ask_old(node)
    known.ask_whole(node)
    new, old = (known.script.state(node, version) for version in ("new", "old"))
    names = [col.name for col in output(node)]
    other = " OR ".join(distinct(f"a.{name}", f"b.{name}") for name in names)
    sides = [
        f"SELECT {', '.join(f'{alias}.{name}' for name in names)}, {weight} AS {WEIGHT}"
        f" FROM {new} AS a CROSS JOIN {old} AS b WHERE {other}"
        for alias, weight in (("a", 1), ("b", -1))
    ]
    return known.script.add("change", " UNION ALL ".join(sides), (new, old))


def distinct(one: str, two: str) -> str:
    """Are two values not the same, to the last bit?"""
    texts = f"CAST({one} AS STRING) IS DISTINCT FROM CAST({two} AS STRING)"
    return f"({one}) IS DISTINCT FROM ({two}) OR {texts}"


def _moved(known: Derivation, node: Filter | Project) -> str:
    """The change as the node was then, and the rows that it now treats otherwise."""
    parts: list[str] = []
    change = known.delta(node.child)
    if change is not None:
        parts.append(known.script.apply(at(node, "old"), [change], WEIGHT))
    state = known.script.state(node.child, "new")
    if isinstance(node, Filter):
        then, now = truths(node)
        names = ", ".join(col.name for col in output(node))
        sql = (
            f"SELECT {names}, CASE WHEN {now} THEN 1 ELSE -1 END AS {WEIGHT}"
            f" FROM {state} WHERE {then} <> {now}"
        )
        parts.append(known.script.add("change", sql, (state,)))
    else:
        for items, weight in ((node.items, 1), (node.before or (), -1)):
            values = ", ".join(f"{text(expr)} AS {col.name}" for col, expr in items)
            sql = f"SELECT {values}, {weight} AS {WEIGHT} FROM {state} WHERE {otherwise(node)}"
            parts.append(known.script.add("change", sql, (state,)))
    return _all(known, node, parts)


def truths(node: Filter) -> tuple[str, str]:
    """Was the predicate true, and is it?"""
    if node.before is None:
        raise TypeError("the filter has not moved")
    return f"(({text(node.before)}) IS TRUE)", f"(({text(node.predicate)}) IS TRUE)"


def otherwise(node: Project) -> str:
    """Does a row give other values than it did?"""
    pairs = zip(node.items, node.before or node.items, strict=True)
    tests = [distinct(text(now), text(then)) for (_, now), (_, then) in pairs if now != then]
    return f"({' OR '.join(tests) or 'FALSE'})"


def _need(known: Derivation, node: Node) -> str:
    change = known.delta(node)
    if change is None:
        raise TypeError("an unchanged node has no change")
    return change


def _sum(known: Derivation, node: SetOperation) -> str:
    parts: list[str] = []
    for side in (node.left, node.right):
        change = known.delta(side)
        if change is not None:
            pairs = zip(output(side), node.columns, strict=True)
            items = ", ".join(f"{mine.name} AS {col.name}" for mine, col in pairs)
            sql = f"SELECT {items}, {WEIGHT} FROM {change}"
            parts.append(known.script.add("change", sql, (change,)))
    return _all(known, node, parts)


def _all(known: Derivation, node: Node, parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    names = ", ".join([*(col.name for col in output(node)), WEIGHT])
    sql = " UNION ALL ".join(f"SELECT {names} FROM {part}" for part in parts)
    return known.script.add("change", sql, parts)


def join_delta(known: Derivation, node: Join) -> str:
    """dL with new R, and old L with dR; or the other way round, whichever can be read."""
    left, right = known.delta(node.left), known.delta(node.right)
    state = known.script.state
    if right is None:
        return joined(known, node, _need(known, node.left), state(node.right, "new"))
    if left is None:
        return joined(known, node, state(node.left, "new"), right)
    if known.has_old(node.left):
        first = joined(known, node, left, state(node.right, "new"))
        second = joined(known, node, state(node.left, "old"), right)
    else:
        known.ask_old(node.right)
        first = joined(known, node, left, state(node.right, "old"))
        second = joined(known, node, state(node.left, "new"), right)
    return _all(known, node, [first, second])


def joined(known: Derivation, node: Join, left: str, right: str) -> str:
    """A join of which one side is a change."""
    return known.script.apply(node, [left, right], WEIGHT)


def difference(known: Derivation, node: Node) -> str:
    """New rows minus old rows, both for the changed keys only."""
    known.ask_old(node)
    exprs, keys = known.best_keys(node)
    names = ", ".join(col.name for col in output(node))
    new = restrict(known.script, node, exprs, keys, "new")
    old = restrict(known.script, node, exprs, keys, "old")
    sql = (
        f"SELECT {names}, 1 AS {WEIGHT} FROM {new}"
        f" UNION ALL SELECT {names}, -1 AS {WEIGHT} FROM {old}"
    )
    return known.script.add("change", sql, (new, old))
