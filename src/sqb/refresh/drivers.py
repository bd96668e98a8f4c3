"""Which tables of a query drive it, and which ones it only looks things up in.

A table that is joined by equality on a key that is unique in it adds at most one partner to each
row: a change of it brings no new rows into a log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqb.refresh.ir import (
    Col,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    Window,
    inputs,
    output,
    scans,
)

#: For each occurrence of a table: the sets of its columns that single joins equate.
Equated = dict[str, list[list[frozenset[str]]]]


def equated(root: Node) -> Equated:
    """By which columns each occurrence of each table is joined.

    >>> a, b = Col("a"), Col("b")
    >>> left, right = Scan("t", ((a, "x"),)), Scan("u", ((b, "y"),))
    >>> from sqb.refresh.ir import Equality, column
    >>> equated(Join("left", left, right, (Equality(column(a), column(b)),)))
    {'t': [[]], 'u': [[frozenset({'y'})]]}
    """
    places: dict[Col, tuple[int, str]] = {}
    order = scans(root)
    found: dict[int, list[frozenset[str]]] = {number: [] for number in range(len(order))}
    numbers = iter(range(len(order)))
    _visit(root, numbers, places, found)
    out: Equated = {}
    for number, scan in enumerate(order):
        out.setdefault(scan.source, []).append(found[number])
    return out


def _visit(
    node: Node,
    numbers: Iterable[int],
    places: dict[Col, tuple[int, str]],
    found: dict[int, list[frozenset[str]]],
) -> None:
    for child in inputs(node):
        _visit(child, numbers, places, found)
    match node:
        case Scan():
            number = next(iter(numbers))
            places.update({col: (number, name.lower()) for col, name in node.columns})
        case Project():
            for col, expr in node.items:
                if expr.column is not None and expr.column in places:
                    places[col] = places[expr.column]
        case Join(kind="inner" | "left"):
            both = node.kind == "inner"
            sets: dict[int, set[str]] = {}
            for equality in node.equalities:
                for side in (equality.left, equality.right) if both else (equality.right,):
                    at = places.get(side.column) if side.column is not None else None
                    if at is not None:
                        sets.setdefault(at[0], set()).add(at[1])
            for number, names in sets.items():
                found[number].append(frozenset(names))
        case Filter() | Explode() | Window() | Distinct() | Join(kind="semi" | "anti" | "mark"):
            pass
        case _:
            # what is made from many rows is not a table that is looked up in
            for col in output(node):
                places.pop(col, None)


def lookups(
    root: Node,
    changed: Iterable[str],
    keys: Mapping[str, frozenset[str]],
    unique: Callable[[str, frozenset[str]], bool],
) -> frozenset[str]:
    """The changed tables that are only looked up in.

    ``keys`` are declared unique keys; ``unique`` asks the data, and is asked as little as possible.
    If every table could be a lookup, those drive whose key is not declared; else the first one.
    """
    by = equated(root)

    def looked_up(name: str) -> bool:
        declared = keys.get(name)
        for sets in by[name]:
            if declared is not None and any(declared <= columns for columns in sets):
                continue
            if declared is not None or not any(unique(name, columns) for columns in sets):
                return False
        return True

    found = {name for name in changed if name in by and looked_up(name)}
    if found and all(name in found or looked_up(name) for name in by):
        # each could be looked up in another: what only happens to be unique may drive next time,
        # and what it was left out for now would be lost
        found = {name for name in found if name in keys}
        if all(name in keys for name in by):
            found.discard(next(iter(by)))
    return frozenset(found)
