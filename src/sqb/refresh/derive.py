"""What changed in a node's result: the keys of changed rows, or the exact signed change.

``keys`` gives every key of a row whose number of copies changed, and perhaps others: replacing
the rows of those keys is then a full rebuild. ``delta`` gives the change itself. Keys need the
change sets and the new rows alone; where no rule applies, the exact change of that node is taken
from its old and its new rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqb.refresh.delta import delta_of, otherwise, truths
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
    Top,
    Window,
    column,
    columns,
    moved_constants,
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
    apart,
    merged,
    partitioned,
    plain_equalities,
    through,
)
from sqb.refresh.script import Script, at, keys_of, text

#: A key that all rows share: the whole node.
WHOLE: Keys = (Expr(("1",)),)
_LOOSE = "what is made of a floating point number"


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
                if not exact or not self.whole(node):
                    raise
                self._keys[memo] = self._from_delta(node, exprs)
        return self._keys[memo]

    def by_rule(self, node: Node, exprs: Keys, exact: bool) -> str | None:
        """The keys by the node's own rule."""
        rows = self.row_wise(node)
        if rows is not None:
            return self._distinct(exprs, rows)
        match node:
            case Filter() | Project() if node.before is not None:
                then = at(node, "old")
                below = through(exprs, dict(then.items)) if isinstance(then, Project) else exprs
                parts = [self.keys(node.child, below, exact=exact), self._crossing(node, exprs)]
                return self._union([part for part in parts if part], len(exprs))
            case Distinct() | SetOperation() if not apart(exprs, self.script.loose):
                raise NotDerivable("KEY_NOT_DERIVABLE", _LOOSE)
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
                if not apart(exprs, self.script.loose):
                    raise NotDerivable("KEY_NOT_DERIVABLE", _LOOSE)
                return self.keys(node.child, through(exprs, dict(node.keys)), exact=exact)
            case Window():
                if not partitioned(node, exprs, self.script.loose):
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
            case Top():
                raise NotDerivable("LIMIT_ORDER", "any row may push another out")
            case Scan() | Constants():
                raise TypeError("a scan is row-wise, constants do not change")

    def row_wise(self, node: Node) -> str | None:
        """The change rows of a node that treats each row of one table alone."""
        if isinstance(node, Scan):
            return self.delta(node)
        if isinstance(node, Filter | Project) and node.before is not None:
            return None
        if isinstance(node, Filter | Project | Explode) and self.row_wise(node.child) is not None:
            return self.delta(node)
        return None

    def _crossing(self, node: Filter | Project, exprs: Keys) -> str | None:
        """Keys of rows that a filter or a projection now treats otherwise."""
        state = self.script.state(node.child, "new")
        if isinstance(node, Filter):
            then, now = truths(node)
            forms, test = [exprs], f"{then} <> {now}"
        else:
            forms = [through(exprs, dict(items)) for items in (node.before or (), node.items)]
            test = otherwise(node)
        parts = [
            self.script.add(
                "keys", f"SELECT DISTINCT {keys_of(form)} FROM {state} WHERE {test}", (state,)
            )
            for form in dict.fromkeys(forms)
        ]
        return self._union(parts, len(exprs))

    def _explode_keys(self, node: Explode, exprs: Keys, exact: bool) -> str | None:
        below = frozenset(output(node.child))
        if all(expr.columns <= below for expr in exprs):
            return self.keys(node.child, exprs, exact=exact)
        raise NotDerivable("KEY_NOT_DERIVABLE", _described(exprs))

    def _single_keys(self, node: Single, exprs: Keys, exact: bool) -> str | None:
        """None where the value is what it was; without the old rows it may be any."""
        if self.has_old(node):
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
        if not apart(exprs, self.script.loose):
            # of equal values one is left, and what is made of it need not be what was made
            raise NotDerivable("KEY_NOT_DERIVABLE", _LOOSE)
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
        for alias, side, found in (("sqb_a", node.left, left), ("sqb_b", node.right, right)):
            if found is None:
                steps.append(self.script.state(side, "new"))
                names |= {column(col): f"{alias}.{col.name}" for col in output(side)}
            else:
                steps.append(found.step)
                names |= qualified(found, alias)
                held = tuple(condition for condition in held if condition in found.conditions)
        items = ", ".join(f"{named(expr, names)} AS k{i}" for i, expr in enumerate(exprs))
        sql = (
            f"SELECT DISTINCT {items} FROM {steps[0]} AS sqb_a JOIN {steps[1]} AS sqb_b"
            f" ON {all_hold(held, names)}"
        )
        return self.script.add("keys", sql, steps)

    def _matches(self, node: Join, side: Node, must: Keys, exact: bool) -> Matches:
        """The changed keys of one side of a join, with all conditions that can be checked on them.

        Leaving a condition out only finds more keys. If no equality would be left, the exact
        change of the side has all of its columns.
        """
        # of equal numbers one is left in the keys: what is made of them is not asked for
        loose = self.script.loose
        told = conditions_of(node)
        conditions = tuple(c for c in told if isinstance(c, Equality) or not c.columns & loose)
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
            if isinstance(node, Top):
                raise NotDerivable("LIMIT_ORDER", "any row may push another out")
            self._kept.append(node)
            self._deltas[id(node)] = delta_of(self, node)
        return self._deltas[id(node)]

    def best_keys(self, node: Node) -> tuple[Keys, str]:
        """The finest key that can be derived; the whole node where there is none."""
        for exact in (False, True):
            exprs = self.derivable_keys(node, exact=exact)
            if exprs:
                found = self.by_rule(node, exprs, exact)
                if found is not None:
                    return exprs, found
        self.ask_whole(node)
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

    def has_old(self, node: Node) -> bool:
        return all(s.source in self.old for s in scans(node) if s.source in self.changed)

    def ask_whole(self, node: Node) -> None:
        if not self.whole(node):
            raise NotDerivable("KEY_NOT_DERIVABLE", "only the whole could be computed again")

    def ask_old(self, node: Node) -> None:
        for scan in scans(node):
            if scan.source in self.changed and scan.source not in self.old:
                raise NotDerivable("NO_CHANGE_SET", f"{scan.source}: the old version is needed")


def moves(node: Node, changed: frozenset[str]) -> bool:
    """Can the rows of a node have changed?"""
    return any(scan.source in changed for scan in scans(node)) or moved_constants(node)


def candidates(node: Node) -> list[Expr]:
    """What a key of a node's rows could be made of."""
    if isinstance(node, Join) and node.kind == "full":
        return [
            Expr(("COALESCE(", *e.left.parts, ", ", *e.right.parts, ")"), (e.left, e.right))
            for e in plain_equalities(node)
        ]
    plain = [column(col) for col in output(node)]
    if isinstance(node, Window):
        first, *others = (item.partition for item in node.items)
        plain += [e for e in first if e.column is None and all(e in other for other in others)]
    return plain


def _described(exprs: Keys) -> str:
    return ", ".join(text(expr) for expr in exprs)


__all__ = ["WHOLE", "Derivation", "NotDerivable", "candidates", "moves"]
