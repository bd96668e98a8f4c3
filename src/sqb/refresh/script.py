"""Plans as SQL: named steps, each a query over the steps before it.

A node's rows, the keys that changed and the signed change of a node are all steps, made once and
named, so that a sub-plan that many rules need is not repeated in the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from sqb.refresh.ir import (
    Aggregate,
    Call,
    Col,
    Constants,
    Distinct,
    Explode,
    Expr,
    Filter,
    Join,
    Node,
    Order,
    Project,
    Scan,
    SetOperation,
    Single,
    Top,
    Window,
    inputs,
    output,
)

#: The column that holds how many copies of a row come (positive) or go (negative).
WEIGHT = "__w"
#: The column that holds how many copies of a row there shall be.
COPIES = "__n"

Version = Literal["new", "old"]
StepKind = Literal["rows", "keys", "change"]
Where = Callable[[Col], str]


class Step(msgspec.Struct, frozen=True):
    """One named query. ``reads`` are the steps it is made of.

    ``within`` says that its query ends in a condition by which these expressions are among the
    columns of a step with keys: what those keys range over may be added to it. ``unique`` are the
    columns of the one step it reads that are its keys, each once.
    """

    name: str
    kind: StepKind
    sql: str
    reads: tuple[str, ...]
    within: tuple[str, tuple[str, ...]] | None = None
    unique: tuple[str, ...] = ()


class Script:
    """The steps of one refresh. ``relation`` names a source's rows at a version, or its changes;
    ``quote`` writes the name of a column of a table. ``loose`` are columns with values that are
    equal and not the same, floating point numbers."""

    def __init__(
        self,
        relation: Callable[[str, Version | Literal["changes"]], str],
        quote: Callable[[str], str],
    ) -> None:
        self.relation = relation
        self.quote = quote
        self.loose: frozenset[Col] = frozenset()
        self.steps: dict[str, Step] = {}
        self._states: dict[tuple[int, Version], str] = {}
        self._kept: list[Node] = []

    def add(
        self, kind: StepKind, sql: str, reads: Iterable[str] = (), unique: Iterable[str] = ()
    ) -> str:
        """A new step; its name."""
        name = f"sqb_{kind}_{len(self.steps) + 1}"
        self.steps[name] = Step(name, kind, sql, tuple(reads), unique=tuple(unique))
        return name

    def among(self, node: Node, rows: str, exprs: Sequence[Expr], keys: str) -> str:
        """The rows of a step whose key is among ``keys``."""
        name = self.add(
            "rows",
            f"{_select(_names(node), [], rows)} WHERE {member(exprs, keys)}",
            (rows, keys),
        )
        texts = tuple(text(expr) for expr in exprs)
        self.steps[name] = msgspec.structs.replace(self.steps[name], within=(keys, texts))
        return name

    def needed(self, *names: str) -> list[Step]:
        """The steps that these rest on, and they themselves, in an order that can be run."""
        wanted: set[str] = set()
        queue = list(names)
        while queue:
            name = queue.pop()
            if name not in wanted:
                wanted.add(name)
                queue += self.steps[name].reads
        return [step for name, step in self.steps.items() if name in wanted]

    def state(self, node: Node, version: Version) -> str:
        """A node's rows at a version."""
        key = (id(node), version)
        if key not in self._states:
            self._kept.append(node)  # an id is one node's only while that node lives
            if isinstance(node, Scan):
                self._states[key] = self.add("rows", self.scan(node, version))
            else:
                children = [self.state(child, version) for child in inputs(node)]
                self._states[key] = self.apply(at(node, version), children)
        return self._states[key]

    def scan(self, node: Scan, version: Version | Literal["changes"]) -> str:
        """The query that reads a table under the plan's own column names."""
        items = [f"{self.quote(physical)} AS {col.name}" for col, physical in node.columns]
        if version == "changes":
            items.append(WEIGHT)
        return f"SELECT {', '.join(items)} FROM {self.relation(node.source, version)}"

    def apply(self, node: Node, children: Sequence[str], weight: str | None = None) -> str:
        """A node over other relations than its own inputs; ``weight`` is a column handed through.

        Only nodes that treat each row of that input alone may carry a weight.
        """
        kind: StepKind = "change" if weight else "rows"
        twice = isinstance(node, Join) and node.mark is not None and not node.plain
        return self.add(kind, apply(node, children, weight), [*children] * (1 + twice))


def at(node: Node, version: Version) -> Node:
    """A node as it was at a version."""
    if isinstance(node, Filter) and node.before is not None and version == "old":
        return Filter(node.child, node.before)
    if isinstance(node, Project) and node.before is not None:
        return Project(node.child, node.before if version == "old" else node.items)
    return node


def apply(node: Node, children: Sequence[str], weight: str | None = None) -> str:
    """The query of a node over named relations."""
    carried = [weight] if weight else []
    match node:
        case Scan():
            raise TypeError("a scan reads a table")
        case Constants():
            rows = (f"({', '.join(text(expr) for expr in row)})" for row in node.rows)
            names = ", ".join(_names(node))
            return f"SELECT {names} FROM (VALUES {', '.join(rows)}) AS sqb_v({names})"
        case Single():
            value = _names(node.child)[0]
            return f"SELECT (SELECT {value} FROM {children[0]}) AS {node.column.name}"
        case Filter():
            return (
                f"{_select(_names(node.child), carried, children[0])} WHERE {text(node.predicate)}"
            )
        case Project():
            items = [f"{text(expr)} AS {col.name}" for col, expr in node.items]
            return _select(items, carried, children[0])
        case Explode():
            made = ", ".join(col.name for col in node.made)
            outer = "OUTER " if node.outer else ""
            head = _select([*_names(node.child), made], carried, children[0])
            return f"{head} LATERAL VIEW {outer}{text(node.generator)} sqb_made AS {made}"
        case Join():
            return _join(node, children, carried)
        case Aggregate():
            return _aggregate(node, children[0])
        case Window():
            items = [f"{_call(item.call)} AS {item.column.name}" for item in node.items]
            return _select([*_names(node.child), *items], [], children[0])
        case Distinct():
            names = ", ".join(_names(node))
            return f"SELECT DISTINCT {names} FROM {children[0]}"
        case SetOperation():
            word = node.kind.upper() + (" ALL" if node.all else "")
            pairs = zip(_names(node.left), node.columns, strict=True)
            left = _select([f"{mine} AS {col.name}" for mine, col in pairs], carried, children[0])
            right = _select(_names(node.right), carried, children[1])
            return f"{left} {word} {right}"
        case Top():
            head = _select(_names(node), [], children[0])
            return f"{head} ORDER BY {ordered(node.order)} LIMIT {node.count}"


def ordered(order: Iterable[Order]) -> str:
    """What ORDER BY says."""
    return ", ".join(
        f"{text(one.expr)} {'DESC' if one.descending else 'ASC'}"
        f" NULLS {'FIRST' if one.nulls_first else 'LAST'}"
        for one in order
    )


def text(expr: Expr, where: Where | None = None) -> str:
    """An expression as SQL; ``where`` says what a column is called."""
    name = where or (lambda col: col.name)
    return "".join(part if isinstance(part, str) else name(part) for part in expr.parts)


def condition(node: Join) -> str:
    """What a join matches on."""
    parts = [
        f"({text(e.left)}) {'IS NOT DISTINCT FROM' if e.null_safe else '='} ({text(e.right)})"
        for e in node.equalities
    ]
    parts += [f"({text(predicate)})" for predicate in node.residual]
    return " AND ".join(parts) or "TRUE"


def member(exprs: Sequence[Expr], keys: str) -> str:
    """Is this row's key among ``keys``? NULL is a key like any other."""
    same = [f"{keys}.k{i} IS NOT DISTINCT FROM ({text(expr)})" for i, expr in enumerate(exprs)]
    return f"EXISTS (SELECT 1 FROM {keys} WHERE {' AND '.join(same)})"


def keys_of(exprs: Sequence[Expr], where: Where | None = None) -> str:
    """A select list of key columns."""
    return ", ".join(f"{text(expr, where)} AS k{i}" for i, expr in enumerate(exprs))


def _names(node: Node) -> list[str]:
    return [col.name for col in output(node)]


def _select(items: Sequence[str], carried: Sequence[str], relation: str) -> str:
    return f"SELECT {', '.join([*items, *carried])} FROM {relation}"


#: No EXISTS for semi and anti joins: Spark 4.1 fails to plan one whose condition is never true.
_JOINS = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "full": "FULL JOIN",
    "semi": "SEMI JOIN",
    "anti": "ANTI JOIN",
}


def _join(node: Join, children: Sequence[str], carried: Sequence[str]) -> str:
    left, right = children
    if node.mark is not None:
        return _mark(node, node.mark, children, carried)
    head = _select(_names(node), carried, left)
    return f"{head} {_JOINS[node.kind]} {right} ON {condition(node)}"


def _mark(node: Join, mark: Col, children: Sequence[str], carried: Sequence[str]) -> str:
    """Each row with whether it has a match. No EXISTS in a select list: above and below unions
    Spark 4.1 fails on it (SPARK-59042)."""
    left, right = children
    names = _names(node.left)
    if node.plain:
        # values that are equal are one here, so that each row meets one at most
        keys = [f"{text(e.right)} AS sqb_m{n}" for n, e in enumerate(node.equalities)]
        same = [
            f"{text(e.left)} {'IS NOT DISTINCT FROM' if e.null_safe else '='} sqb_m{n}"
            for n, e in enumerate(node.equalities)
        ]
        return (
            f"{_select([*names, f'sqb_met IS NOT NULL AS {mark.name}'], carried, left)} LEFT JOIN"
            f" (SELECT DISTINCT {', '.join([*keys, 'TRUE AS sqb_met'])} FROM {right}) AS sqb_marks"
            f" ON {' AND '.join(same) or 'TRUE'}"
        )
    return " UNION ALL ".join(
        f"{_select([*names, f'{met} AS {mark.name}'], carried, left)}"
        f" {_JOINS[kind]} {right} ON {condition(node)}"
        for met, kind in (("TRUE", "semi"), ("FALSE", "anti"))
    )


def _aggregate(node: Aggregate, child: str) -> str:
    # grouped by names: a bare literal in GROUP BY would mean a position
    keys = [f"{text(expr)} AS {col.name}" for col, expr in node.keys]
    calls = [f"{_call(call)} AS {col.name}" for col, call in node.calls]
    if not keys:
        return f"SELECT {', '.join(calls)} FROM {child}"
    names = [col.name for col, _ in node.keys]
    below = _select([*_names(node.child), *keys], [], child)
    grouped = ", ".join(names)
    return f"SELECT {', '.join([*names, *calls])} FROM ({below}) AS sqb_g GROUP BY {grouped}"


def _call(call: Call) -> str:
    return text(call.text)
