"""Which ways there are to bring a table up to date, each with its conditions checked.

Every way that does not apply leaves its reason. Which of those that do is cheapest is asked
elsewhere; here it is only whether the result would be that of a full rebuild.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import msgspec

from sqb.refresh.averages import AVERAGES, averages, not_averaged
from sqb.refresh.build import Plan
from sqb.refresh.changes import TableChange
from sqb.refresh.derive import Derivation, NotDerivable, candidates, moves
from sqb.refresh.free import free_choice, ties
from sqb.refresh.ir import (
    Aggregate,
    Col,
    Distinct,
    Explode,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    SetOperation,
    Top,
    Window,
    columns,
    moved_constants,
    output,
)
from sqb.refresh.reasons import Rejected
from sqb.refresh.restrict import Keys, loose, restrict
from sqb.refresh.script import Script


class Append(msgspec.Struct, frozen=True):
    """Add the rows of ``change``; all of them come."""

    change: str
    name: str = "append"


class GroupMerge(msgspec.Struct, frozen=True):
    """Merge the aggregates of ``change`` into their groups.

    ``keys`` and ``calls`` are positions in the target with what they are.
    """

    change: str
    node: Aggregate
    keys: tuple[int, ...]
    calls: tuple[int, ...]
    signed: bool
    name: str = "group_merge"


class AffectedKey(msgspec.Struct, frozen=True):
    """Replace the rows whose key is among ``keys`` by ``rows``.

    ``key`` is written over the target's columns, which are those of the plan's root.
    """

    key: Keys
    keys: str
    rows: str
    name: str = "affected_key"


class BagMerge(msgspec.Struct, frozen=True):
    """Apply the signed change by row value, to the exact number of copies."""

    change: str
    name: str = "bag_merge"


class TopMerge(msgspec.Struct, frozen=True):
    """Merge ``change``, that of all rows in the order, into the first ones.

    ``looked`` says that rows which tie with the last one are looked for in the sources.
    """

    change: str
    looked: bool
    name: str = "top_merge"


Option = Append | GroupMerge | AffectedKey | BagMerge | TopMerge


class Choice(msgspec.Struct, frozen=True):
    """What applies, what does not and why, and the steps that the former are made of."""

    options: tuple[Option, ...]
    rejected: tuple[Rejected, ...]
    script: Script


class Situation(msgspec.Struct, frozen=True):
    """A plan with what its sources did.

    ``types`` are Spark's names of the types of the plan's aggregate and window arguments and
    results; ``old`` are the sources whose version before the change can be read. ``ansi`` says
    that a sum that overflows is an error, not NULL.
    """

    plan: Plan
    changes: Mapping[str, TableChange]
    types: Mapping[Col, str]
    old: frozenset[str]
    ansi: bool = True

    @property
    def changed(self) -> frozenset[str]:
        """The sources whose rows moved."""
        return frozenset(name for name, change in self.changes.items() if change.way != "none")

    @property
    def moves(self) -> bool:
        """Can the result be another?"""
        return moves(self.plan.root, self.changed)


def choose(situation: Situation, script: Script) -> Choice:
    """Try every way, the cheapest kind first."""
    options: list[Option] = []
    rejected: list[Rejected] = []
    root = situation.plan.root
    script.loose = loose(situation.types)
    rules = _FIRST_ROWS if isinstance(root, Top) else _RULES
    for rule in rules:
        whole = _not_all_of(root)
        found = rule(situation, Derivation(script, situation.changed, situation.old, whole))
        if isinstance(found, Rejected):
            rejected.append(found)
        else:
            options.append(found)
    return Choice(tuple(options), tuple(rejected), script)


def _not_all_of(root: Node) -> Callable[[Node], bool]:
    """Nodes of which two evaluations are less than the whole query twice."""
    spine = [root]
    while isinstance(spine[-1], Project | Filter | Distinct | Explode | Window | Top):
        spine.append(spine[-1].child)
    return lambda node: all(node is not one for one in spine)


def _append(situation: Situation, derivation: Derivation) -> Append | Rejected:
    root = situation.plan.root
    for name in sorted(situation.changed):
        if not situation.changes[name].only_adds:
            return Rejected("append", "HAS_DELETES", f"rows of {name} went or were rewritten")
    if moved_constants(root):
        return Rejected("append", "HAS_DELETES", "a constant moved")
    found = not_linear(root, situation.changed)
    if found is not None:
        return Rejected("append", "UNSUPPORTED", f"{found} may change rows that are there")
    free = free_choice(root, situation.types, None)
    if free is not None:
        return Rejected("append", "FREE_CHOICE", free)
    change = _change(derivation, root, "append")
    return change if isinstance(change, Rejected) else Append(change)


def _bag_merge(situation: Situation, derivation: Derivation) -> BagMerge | Rejected:
    root = situation.plan.root
    free = free_choice(root, situation.types, None)
    if free is not None:
        return Rejected("bag_merge", "FREE_CHOICE", free)
    refused = _incomparable(situation, "bag_merge")
    if refused is not None:
        return refused
    change = _change(derivation, root, "bag_merge")
    return change if isinstance(change, Rejected) else BagMerge(change)


def _top_merge(situation: Situation, derivation: Derivation) -> TopMerge | Rejected:
    name, root = "top_merge", situation.plan.root
    if not isinstance(root, Top):
        return Rejected(name, "UNSUPPORTED", "the query does not end in ORDER BY and LIMIT")
    free = free_choice(root.child, situation.types, None)
    if free is not None:
        return Rejected(name, "FREE_CHOICE", free)
    refused = _incomparable(situation, name)
    if refused is not None:
        return refused
    change = _change(derivation, root.child, name)
    if isinstance(change, Rejected):
        return change
    return TopMerge(change, ties(root, situation.types))


def _incomparable(situation: Situation, name: str) -> Rejected | None:
    """Rows that go are found by their values, and rows that stay are told by them."""
    for col, column in zip(output(situation.plan.root), situation.plan.names, strict=True):
        if not groupable(situation.types.get(col)):
            why = f"values of {column} can't be compared"
            return Rejected(name, "TYPE_NOT_COMPARABLE", why)
    return None


def _group_merge(situation: Situation, derivation: Derivation) -> GroupMerge | Rejected:
    name = "group_merge"
    root = situation.plan.root
    node = root.child if isinstance(root, Project) else root
    if not isinstance(node, Aggregate):
        return Rejected(name, "UNSUPPORTED", "the query does not end in GROUP BY")
    places = _places(root, node)
    if isinstance(places, Rejected):
        return places
    found = not_linear(node.child, situation.changed)
    if found is not None:
        return Rejected(name, "AGG_NOT_MERGEABLE", f"{found} below GROUP BY")
    free = free_choice(node.child, situation.types, None)
    if free is not None:
        return Rejected(name, "FREE_CHOICE", free)
    signed = any(not situation.changes[s].only_adds for s in situation.changed)
    signed = signed or moved_constants(node.child)
    refused = not_mergeable(node, situation.types, signed=signed, ansi=situation.ansi)
    if refused is not None:
        return Rejected(name, *refused)
    incomparable = _incomparable(situation, name)
    if incomparable is not None:
        return incomparable
    change = _change(derivation, node.child, name)
    if isinstance(change, Rejected):
        return change
    keys = tuple(places[col] for col, _ in node.keys)
    calls = tuple(places[col] for col, _ in node.calls)
    return GroupMerge(change, node, keys, calls, signed)


def _places(root: Node, node: Aggregate) -> dict[Col, int] | Rejected:
    """Where each key and aggregate stands in the target."""
    exprs = [e for _, e in root.items] if isinstance(root, Project) else columns(output(root))
    places: dict[Col, int] = {}
    for place, expr in enumerate(exprs):
        if expr.column is None:
            why = "the output computes with its aggregates"
            return Rejected("group_merge", "AGG_NOT_MERGEABLE", why)
        places.setdefault(expr.column, place)
    missing = [col for col in output(node) if col not in places]
    if missing or len(places) != len(exprs):
        why = "the output does not hold every group column and aggregate once"
        return Rejected("group_merge", "KEY_NOT_IN_OUTPUT", why)
    return places


#: Aggregates that take in new rows without the old ones; and those that also give rows up.
_GROWING = frozenset(
    {"count", "count_if", "sum", "min", "max", "bool_and", "bool_or", "every", "some", "any"}
    | {"bit_and", "bit_or"}
)
_SHRINKING = frozenset({"count", "count_if", "sum"})
_WHOLE_NUMBERS = ("bigint", "decimal")


def not_mergeable(
    node: Aggregate, types: Mapping[Col, str], *, signed: bool, ansi: bool = True
) -> tuple[str, str] | None:
    """Why the aggregates of a change can't be merged into groups: a code and a sentence."""
    able = _SHRINKING if signed else _GROWING
    totals = {found.total for found in averages(node).values()}
    for col, call in node.calls:
        if col in totals:  # told by the average whether it has a value, and which type
            continue
        if call.function in AVERAGES:
            refused = not_averaged(node, col, types)
            if refused is not None:
                return refused
            continue
        if call.function not in able or (signed and call.filtered):
            return "AGG_NOT_MERGEABLE", call.function
        if call.function == "sum" and not types.get(col, "").startswith(_WHOLE_NUMBERS):
            return "FLOAT_SUM", f"the type of {call.function} is {types.get(col, 'not known')}"
        if call.function == "sum" and not ansi and types[col].startswith("decimal"):
            return "AGG_NOT_MERGEABLE", "a sum that overflowed is NULL without ANSI mode"
    if not signed:
        return None
    counted = {call.arguments for _, call in node.calls if call.function == "count"}
    if not node.keys:
        return None  # the one row never ends, and whether a sum has values is looked up
    if () not in counted:
        return "AGG_NOT_MERGEABLE", "without COUNT(*) it is not seen when a group ends"
    for _, call in node.calls:
        if call.function == "sum" and call.arguments not in counted:
            return "AGG_NOT_MERGEABLE", "without COUNT(x) it is not seen when SUM(x) becomes NULL"
    return None


def _affected_key(situation: Situation, derivation: Derivation) -> AffectedKey | Rejected:
    name = "affected_key"
    root = situation.plan.root
    refused = _incomparable(situation, name)
    if refused is not None:
        return refused
    chooses = free_choice(root, situation.types, None)
    # a node that chooses freely must not be taken from two evaluations
    for exact in (False, True) if chooses is None else (False,):
        key: Keys = ()
        for expr in candidates(root):
            col = expr.column
            if col is not None and not groupable(situation.types.get(col)):
                continue
            wider = (*key, expr)
            if free_choice(root, situation.types, wider) is None and _derives(
                derivation, root, wider, exact=exact
            ):
                key = wider
        if not key:
            continue
        keys = derivation.keys(root, key, exact=exact)
        if keys is None:
            return Rejected(name, "NO_SOURCE_CHANGED", "nothing changed")
        rows = restrict(derivation.script, root, key, keys, "new")
        return AffectedKey(key, keys, rows)
    if chooses is not None:
        return Rejected(name, "FREE_CHOICE", chooses)
    return Rejected(name, "KEY_NOT_IN_OUTPUT", "no column tells which rows changed")


def affected_by(situation: Situation, script: Script, key: Keys) -> AffectedKey | Rejected:
    """The rows of the changed values of a key that is given, not chosen."""
    name, root, types = "affected_key", situation.plan.root, situation.types
    derivation = Derivation(script, situation.changed, situation.old)
    chooses = free_choice(root, types, None)
    if chooses is not None and free_choice(root, types, key) is not None:
        return Rejected(name, "FREE_CHOICE", chooses)
    for exact in (False, True) if chooses is None else (False,):
        if _derives(derivation, root, key, exact=exact):
            keys = derivation.keys(root, key, exact=exact)
            if keys is None:
                return Rejected(name, "NO_SOURCE_CHANGED", "nothing changed")
            return AffectedKey(key, keys, restrict(script, root, key, keys, "new"))
    return Rejected(name, "KEY_NOT_DERIVABLE", "its changed values can't be told")


def _derives(derivation: Derivation, node: Node, key: Keys, *, exact: bool) -> bool:
    try:
        derivation.keys(node, key, exact=exact)
    except NotDerivable:
        return False
    return True


def _change(derivation: Derivation, node: Node, name: str) -> str | Rejected:
    try:
        change = derivation.delta(node)
    except NotDerivable as error:
        return Rejected(name, error.code, error.detail)
    return change or Rejected(name, "NO_SOURCE_CHANGED", "nothing changed")


#: The ways to bring a table up to date, and the one for a table of first rows.
Rule = Callable[[Situation, Derivation], "Option | Rejected"]
_RULES: tuple[Rule, ...] = (_append, _group_merge, _affected_key, _bag_merge)
_FIRST_ROWS: tuple[Rule, ...] = (_top_merge,)


def not_linear(node: Node, changed: frozenset[str]) -> str | None:
    """The first node on the way from a changed table to the result whose change is not just the
    node applied to the change; None: there is none."""
    if not moves(node, changed):
        return None
    match node:
        case Scan():
            return None
        case Filter() | Project() | Explode():
            return not_linear(node.child, changed)
        case SetOperation(kind="union", all=True):
            return not_linear(node.left, changed) or not_linear(node.right, changed)
        case Join(kind="inner"):
            return not_linear(node.left, changed) or not_linear(node.right, changed)
        case Join(kind="left" | "semi" | "anti" | "mark"):
            if moves(node.right, changed):
                return f"a {node.kind} join whose other side changed"
            return not_linear(node.left, changed)
        case _:
            return _WORDS.get(type(node).__name__, type(node).__name__)


_WORDS = {
    "Aggregate": "GROUP BY",
    "Window": "a window function",
    "Distinct": "DISTINCT",
    "SetOperation": "a set operation",
    "Join": "a full join",
    "Single": "a scalar sub-query",
    "Top": "LIMIT",
}


def groupable(kind: str | None) -> bool:
    """Can values of this type be compared to the bit? One that is not known can't.

    Of a double beside others 0.0 and -0.0 can be told apart, of one inside a struct not.

    >>> [groupable(kind) for kind in ("double", "array<int>", "array<double>", "map<int,int>")]
    [True, True, False, False]
    """
    if not kind:
        return False
    kind = kind.lower()
    if kind.startswith("interval") or "map<" in kind or "variant" in kind:
        return False
    return re.search(r"[<:](float|double|string collate)", kind) is None
