"""What changed in a node's result: the keys of changed rows, or the exact signed change.

``keys`` gives every key of a row whose number of copies changed, and perhaps others: replacing
the rows of those keys is then a full rebuild. ``delta`` gives the change itself. Keys need the
change sets and the new rows alone; where no rule applies, the exact change of that node is taken
from its old and its new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqb.refresh.ir import (
    Aggregate,
    Constants,
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
    Single,
    Window,
    column,
    columns,
    moved_filters,
    output,
    positions,
    scans,
)
from sqb.refresh.matching import (
    Condition,
    Matches,
    all_hold,
    conditions_of,
    matches,
    named,
    needs,
    qualified,
    wanted_keys,
)
from sqb.refresh.restrict import (
    Keys,
    merged,
    partitioned,
    plain_equalities,
    restrict,
    through,
)
from sqb.refresh.script import WEIGHT, Script, at, keys_of, text

#: A key that all rows share: the whole node.
WHOLE: Keys = (Expr(("1",)),)


class NotDerivable(Exception):  # noqa: N818 - an outcome, not a failure
    """No rule gives this node's changed keys or change."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}({detail})")
        self.code = code
        self.detail = detail


class Derivation:
    """The derivation for one plan and one set of changed sources.

    ``old`` has the sources whose version before the change can be read. ``whole`` says of which
    nodes two evaluations in full are cheap enough.
    """

    def __init__(
        self,
        script: Script,
        changed: frozenset[str],
        old: frozenset[str],
        whole: Callable[[Node], bool] = lambda _: True,
    ) -> None:
        self.script = script
        self.changed = changed
        self.old = old
        self.whole = whole
        self._keys: dict[tuple[int, Keys, bool], str | None] = {}
        self._deltas: dict[int, str | None] = {}
        self._kept: list[Node] = []

    def moves(self, node: Node) -> bool:
        """Is a changed source below, or a filter that was another before?"""
        return moves(node, self.changed)

    # The keys of changed rows

    def keys(self, node: Node, exprs: Keys, *, exact: bool = True) -> str | None:
        """A step with every key (k0, k1, …) of a changed row of ``node``; None: nothing changed.

        ``exact`` allows the way through the node's exact change, which reads old rows.
        """
        if not self.moves(node):
            return None
        memo = (id(node), exprs, exact)
        if memo not in self._keys:
            self._kept.append(node)
            try:
                self._keys[memo] = self.by_rule(node, exprs, exact)
            except NotDerivable:
                if not exact:
                    raise
                self._keys[memo] = self._from_delta(node, exprs)
        return self._keys[memo]

    def by_rule(self, node: Node, exprs: Keys, exact: bool) -> str | None:
        """The keys by the node's own rule."""
        rows = self.row_wise(node)
        if rows is not None:
            return self._distinct(exprs, rows)
        match node:
            case Filter() if node.before is not None:
                parts = [self.keys(node.child, exprs, exact=exact), self._crossing(node, exprs)]
                return self._union([part for part in parts if part], len(exprs))
            case Filter() | Distinct():
                return self.keys(node.child, exprs, exact=exact)
            case Project():
                return self.keys(node.child, through(exprs, dict(node.items)), exact=exact)
            case Explode():
                return self._explode_keys(node, exprs, exact)
            case Aggregate():
                grouped = frozenset(col for col, _ in node.keys)
                if not all(expr.columns <= grouped for expr in exprs):
                    raise NotDerivable("KEY_NOT_DERIVABLE", "an aggregate's result")
                return self.keys(node.child, through(exprs, dict(node.keys)), exact=exact)
            case Window():
                if not partitioned(node, exprs):
                    raise NotDerivable("WINDOW_WITHOUT_PARTITION", _described(exprs))
                return self.keys(node.child, exprs, exact=exact)
            case SetOperation():
                left, right = positions(node)
                parts = [
                    self.keys(node.left, through(exprs, left), exact=exact),
                    self.keys(node.right, through(exprs, right), exact=exact),
                ]
                return self._union([p for p in parts if p], len(exprs))
            case Join():
                return self._join_keys(node, exprs, exact)
            case Single():
                return self._single_keys(node, exprs, exact)
            case Scan() | Constants():
                raise TypeError("a scan is row-wise, constants do not change")

    def row_wise(self, node: Node) -> str | None:
        """The change rows of a node that treats each row of one table alone."""
        if isinstance(node, Scan):
            return self.delta(node)
        if isinstance(node, Filter) and node.before is not None:
            return None
        if isinstance(node, Filter | Project | Explode) and self.row_wise(node.child) is not None:
            return self.delta(node)
        return None

    def _crossing(self, node: Filter, exprs: Keys) -> str:
        """Keys of rows that stand on the other side of a filter now."""
        state = self.script.state(node.child, "new")
        then, now = _truths(node)
        sql = f"SELECT DISTINCT {keys_of(exprs)} FROM {state} WHERE {then} <> {now}"
        return self.script.add("keys", sql, (state,))

    def _explode_keys(self, node: Explode, exprs: Keys, exact: bool) -> str | None:
        below = frozenset(output(node.child))
        if all(expr.columns <= below for expr in exprs):
            return self.keys(node.child, exprs, exact=exact)
        raise NotDerivable("KEY_NOT_DERIVABLE", _described(exprs))

    def _single_keys(self, node: Single, exprs: Keys, exact: bool) -> str | None:
        """None where the value is what it was; without the old rows it may be any."""
        if self._has_old(node):
            return self._from_delta(node, exprs)
        if any(expr.columns for expr in exprs):
            raise NotDerivable("KEY_NOT_DERIVABLE", "the value of a sub-query")
        return self.keys(node.child, exprs, exact=exact)

    def _join_keys(self, node: Join, exprs: Keys, exact: bool) -> str | None:
        lefts, rights = frozenset(output(node.left)), frozenset(output(node.right))
        used = frozenset(col for expr in exprs for col in expr.columns)
        if node.kind == "full":
            pairs = merged(node, exprs)
            if pairs is None:
                raise NotDerivable("KEY_NOT_DERIVABLE", "a full join's key is COALESCE(a, b)")
            parts = [
                self.keys(node.left, tuple(e.left for e in pairs), exact=exact),
                self.keys(node.right, tuple(e.right for e in pairs), exact=exact),
            ]
            return self._union([p for p in parts if p], len(exprs))
        if used <= lefts:
            return self._one_sided(node, exprs, exact, left=True)
        if node.kind != "inner":
            raise NotDerivable("KEY_NOT_DERIVABLE", "a column of the side that may be missing")
        if used <= rights:
            return self._one_sided(node, exprs, exact, left=False)
        return self._two_sided(node, exprs, exact)

    def _one_sided(self, node: Join, exprs: Keys, exact: bool, *, left: bool) -> str | None:
        """Keys of one side: its own changed keys, and those of its rows that meet a change."""
        mine, other = (node.left, node.right) if left else (node.right, node.left)
        parts = [self.keys(mine, exprs, exact=exact)]
        if self.moves(other):
            found = self._matches(node, other, (), exact)
            state = self.script.state(mine, "new")
            names = {column(col): col.name for col in output(mine)}
            on = all_hold(found.conditions, names | qualified(found, found.step))
            sql = (
                f"SELECT DISTINCT {keys_of(exprs)} FROM {state}"
                f" WHERE EXISTS (SELECT 1 FROM {found.step} WHERE {on})"
            )
            parts.append(self.script.add("keys", sql, (state, found.step)))
        return self._union([part for part in parts if part], len(exprs))

    def _two_sided(self, node: Join, exprs: Keys, exact: bool) -> str | None:
        """Keys of both sides: changed left with new right, new left with changed right, and
        changed with changed: a pair of rows that both vanished is in neither new state."""
        used = frozenset(col for expr in exprs for col in expr.columns)
        found: list[Matches | None] = []
        for side in (node.left, node.right):
            must = columns(col for col in output(side) if col in used)
            found.append(self._matches(node, side, must, exact) if self.moves(side) else None)
        left, right = found
        terms = [(left, right)]
        if left and right:
            terms += [(left, None), (None, right)]
        return self._union([self._pairs(node, exprs, *term) for term in terms], len(exprs))

    def _pairs(self, node: Join, exprs: Keys, left: Matches | None, right: Matches | None) -> str:
        """The keys of pairs of rows that meet; a side without changed keys is read as it is now."""
        names: dict[Expr, str] = {}
        steps: list[str] = []
        held: tuple[Condition, ...] = conditions_of(node)
        for alias, side, found in (("a", node.left, left), ("b", node.right, right)):
            if found is None:
                steps.append(self.script.state(side, "new"))
                names |= {column(col): f"{alias}.{col.name}" for col in output(side)}
            else:
                steps.append(found.step)
                names |= qualified(found, alias)
                held = tuple(condition for condition in held if condition in found.conditions)
        items = ", ".join(f"{named(expr, names)} AS k{i}" for i, expr in enumerate(exprs))
        sql = (
            f"SELECT DISTINCT {items} FROM {steps[0]} AS a JOIN {steps[1]} AS b"
            f" ON {all_hold(held, names)}"
        )
        return self.script.add("keys", sql, steps)

    def _matches(self, node: Join, side: Node, must: Keys, exact: bool) -> Matches:
        """The changed keys of one side of a join, with all conditions that can be checked on them.

        Leaving a condition out only finds more keys. If no equality would be left, the exact
        change of the side has all of its columns.
        """
        conditions = conditions_of(node)
        mine = frozenset(output(side))
        usable = [c for c in conditions if self._derivable(side, (*must, *needs(c, mine)))]
        equalities = any(isinstance(c, Equality) for c in conditions)
        while any(isinstance(c, Equality) for c in usable) or not equalities:
            wanted = wanted_keys(must, usable, mine)
            try:
                return matches(self.keys(side, wanted or WHOLE, exact=False), wanted, usable)
            except NotDerivable:
                if not usable:
                    break
                usable.pop()
        wanted = wanted_keys(must, conditions, mine)
        if not exact:
            raise NotDerivable("KEY_NOT_DERIVABLE", _described(wanted))
        try:
            return matches(self._from_delta(side, wanted or WHOLE), wanted, conditions)
        except NotDerivable:
            if must:
                raise
            return matches(self.keys(side, WHOLE, exact=False), (), ())

    def _derivable(self, node: Node, exprs: Keys) -> bool:
        try:
            self.keys(node, exprs or WHOLE, exact=False)
        except NotDerivable:
            return False
        return True

    def _distinct(self, exprs: Keys, relation: str) -> str:
        sql = f"SELECT DISTINCT {keys_of(exprs)} FROM {relation}"
        return self.script.add("keys", sql, (relation,))

    def _union(self, parts: Sequence[str], width: int) -> str | None:
        if len(parts) < 2:
            return parts[0] if parts else None
        names = ", ".join(f"k{i}" for i in range(width))
        sql = " UNION ".join(f"SELECT {names} FROM {part}" for part in parts)
        return self.script.add("keys", sql, parts)

    def _from_delta(self, node: Node, exprs: Keys) -> str | None:
        change = self.delta(node)
        return self._distinct(exprs, change) if change else None

    # The exact change

    def delta(self, node: Node) -> str | None:
        """A step with the rows that came and went and their weight; None: nothing changed."""
        if not self.moves(node):
            return None
        if id(node) not in self._deltas:
            self._kept.append(node)
            self._deltas[id(node)] = self._delta(node)
        return self._deltas[id(node)]

    def _delta(self, node: Node) -> str:
        match node:
            case Scan():
                return self.script.add("change", self.script.scan(node, "changes"))
            case Filter() if node.before is not None:
                return self._moved_filter(node)
            case Filter() | Project() | Explode():
                return self.script.apply(node, [self._need(node.child)], WEIGHT)
            case SetOperation(kind="union", all=True):
                return self._sum(node)
            case Join(kind="inner"):
                return self._join_delta(node)
            case Join(kind="left" | "semi" | "anti") if not self.moves(node.right):
                return self._joined(
                    node, self._need(node.left), self.script.state(node.right, "new")
                )
            case Single() | Aggregate(keys=()):
                return self._one_row_delta(node)
            case _:
                return self._difference(node)

    def _one_row_delta(self, node: Node) -> str:
        """The new row and the old one, if they are not the same to the last bit."""
        self._ask_old(node)
        new, old = (self.script.state(node, version) for version in ("new", "old"))
        names = [col.name for col in output(node)]
        same = " AND ".join(
            f"a.{name} IS NOT DISTINCT FROM b.{name}"
            f" AND CAST(a.{name} AS STRING) IS NOT DISTINCT FROM CAST(b.{name} AS STRING)"
            for name in names
        )
        sides = [
            f"SELECT {', '.join(f'{alias}.{name}' for name in names)}, {weight} AS {WEIGHT}"
            f" FROM {new} AS a CROSS JOIN {old} AS b WHERE NOT ({same})"
            for alias, weight in (("a", 1), ("b", -1))
        ]
        return self.script.add("change", " UNION ALL ".join(sides), (new, old))

    def _moved_filter(self, node: Filter) -> str:
        """Changed rows that the filter let through then, and rows that crossed it since."""
        parts: list[str] = []
        change = self.delta(node.child)
        if change is not None:
            parts.append(self.script.apply(at(node, "old"), [change], WEIGHT))
        state = self.script.state(node.child, "new")
        then, now = _truths(node)
        names = ", ".join(col.name for col in output(node))
        sql = (
            f"SELECT {names}, CASE WHEN {now} THEN 1 ELSE -1 END AS {WEIGHT}"
            f" FROM {state} WHERE {then} <> {now}"
        )
        parts.append(self.script.add("change", sql, (state,)))
        return self._all(node, parts)

    def _need(self, node: Node) -> str:
        change = self.delta(node)
        if change is None:
            raise TypeError("an unchanged node has no change")
        return change

    def _sum(self, node: SetOperation) -> str:
        parts: list[str] = []
        for side in (node.left, node.right):
            change = self.delta(side)
            if change is not None:
                pairs = zip(output(side), node.columns, strict=True)
                items = ", ".join(f"{mine.name} AS {col.name}" for mine, col in pairs)
                sql = f"SELECT {items}, {WEIGHT} FROM {change}"
                parts.append(self.script.add("change", sql, (change,)))
        return self._all(node, parts)

    def _all(self, node: Node, parts: Sequence[str]) -> str:
        if len(parts) == 1:
            return parts[0]
        names = ", ".join([*(col.name for col in output(node)), WEIGHT])
        sql = " UNION ALL ".join(f"SELECT {names} FROM {part}" for part in parts)
        return self.script.add("change", sql, parts)

    def _join_delta(self, node: Join) -> str:
        """dL with new R, and old L with dR; or the other way round, whichever can be read."""
        left, right = self.delta(node.left), self.delta(node.right)
        if left is None or right is None:
            state = self.script.state
            if right is None:
                return self._joined(node, self._need(node.left), state(node.right, "new"))
            return self._joined(node, state(node.left, "new"), right)
        if self._has_old(node.left):
            first = self._joined(node, left, self.script.state(node.right, "new"))
            second = self._joined(node, self.script.state(node.left, "old"), right)
        else:
            self._ask_old(node.right)
            first = self._joined(node, left, self.script.state(node.right, "old"))
            second = self._joined(node, self.script.state(node.left, "new"), right)
        return self._all(node, [first, second])

    def _joined(self, node: Join, left: str, right: str) -> str:
        return self.script.apply(node, [left, right], WEIGHT)

    def _difference(self, node: Node) -> str:
        """New rows minus old rows, both for the changed keys only."""
        self._ask_old(node)
        exprs, keys = self._best_keys(node)
        names = ", ".join(col.name for col in output(node))
        new = restrict(self.script, node, exprs, keys, "new")
        old = restrict(self.script, node, exprs, keys, "old")
        sql = (
            f"SELECT {names}, 1 AS {WEIGHT} FROM {new}"
            f" UNION ALL SELECT {names}, -1 AS {WEIGHT} FROM {old}"
        )
        return self.script.add("change", sql, (new, old))

    def _best_keys(self, node: Node) -> tuple[Keys, str]:
        """The finest key that can be derived; the whole node where there is none."""
        for exact in (False, True):
            exprs = self.derivable_keys(node, exact=exact)
            if exprs:
                found = self.by_rule(node, exprs, exact)
                if found is not None:
                    return exprs, found
        if not self.whole(node):
            raise NotDerivable("KEY_NOT_DERIVABLE", "only the whole could be computed again")
        return WHOLE, self.script.add("keys", "SELECT 1 AS k0")

    def derivable_keys(self, node: Node, *, exact: bool) -> Keys:
        """The output columns (or COALESCE pairs) whose changed values can be derived together."""
        found: list[Expr] = []
        for expr in candidates(node):
            try:
                self.by_rule(node, (*found, expr), exact)
            except NotDerivable:
                continue
            found.append(expr)
        return tuple(found)

    def _has_old(self, node: Node) -> bool:
        return all(s.source in self.old for s in scans(node) if s.source in self.changed)

    def _ask_old(self, node: Node) -> None:
        for scan in scans(node):
            if scan.source in self.changed and scan.source not in self.old:
                raise NotDerivable("NO_CHANGE_SET", f"{scan.source}: the old version is needed")


def moves(node: Node, changed: frozenset[str]) -> bool:
    """Can the rows of a node have changed?"""
    return any(scan.source in changed for scan in scans(node)) or moved_filters(node)


def _truths(node: Filter) -> tuple[str, str]:
    """Was the predicate true, and is it?"""
    if node.before is None:
        raise TypeError("the filter has not moved")
    return f"(({text(node.before)}) IS TRUE)", f"(({text(node.predicate)}) IS TRUE)"


def candidates(node: Node) -> list[Expr]:
    """What a key of a node's rows could be made of."""
    if isinstance(node, Join) and node.kind == "full":
        return [
            Expr(("COALESCE(", *e.left.parts, ", ", *e.right.parts, ")"), (e.left, e.right))
            for e in plain_equalities(node)
        ]
    return [column(col) for col in output(node)]


def _described(exprs: Keys) -> str:
    return ", ".join(text(expr) for expr in exprs)


__all__ = ["WHOLE", "Derivation", "NotDerivable", "candidates", "moves"]
