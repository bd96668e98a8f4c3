"""Random plans over three small tables, random changes to them, and DuckDB to judge the algebra."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import duckdb
import msgspec
import sqlglot

from sqb.refresh.build import Plan, TableRef, build
from sqb.refresh.changes import TableChange
from sqb.refresh.derive import Derivation, NotDerivable, candidates
from sqb.refresh.ir import (
    Aggregate,
    Call,
    Col,
    Distinct,
    Equality,
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
    WindowItem,
    column,
    inputs,
    output,
)
from sqb.refresh.netting import Forbidden, Target
from sqb.refresh.prune import pruned
from sqb.refresh.restrict import restrict
from sqb.refresh.script import Script, member, ordered
from sqb.refresh.signed import signed_change
from sqb.refresh.strategies import Situation, TopMerge, choose
from sqb.sql.structure import structure
from sqb.sql.tokens import split

Row = tuple[object, ...]
TABLES = {"t0": ("a", "b", "c"), "t1": ("a", "b"), "t2": ("a", "b", "c")}


Schema = Mapping[str, Mapping[str, str]]
NUMBERS: Schema = {table: dict.fromkeys(names, "INTEGER") for table, names in TABLES.items()}


class Data:
    """The tables before and after, and change sets that lead from one to the other."""

    def __init__(
        self,
        rng: random.Random,
        only: str | None = None,
        schema: Schema = NUMBERS,
        row: Callable[[random.Random, str], Row] | None = None,
        most: int = 8,
    ) -> None:
        self.schema = schema
        self.old: dict[str, list[Row]] = {}
        self.new: dict[str, list[Row]] = {}
        self.changes: dict[str, list[Row]] = {}
        make = row or _row
        for table in schema:
            old = [make(rng, table) for _ in range(rng.randrange(most))]
            old += [rng.choice(old) for _ in range(rng.randrange(3)) if old]
            how = only or rng.choice(["none", "none", "append", "mixed", "mixed", "clear"])
            gone: list[Row] = []
            come: list[Row] = []
            if how == "clear":
                gone = list(old)
            if how == "mixed":
                gone = [row for row in old if rng.random() < 0.3]
            if how in ("append", "mixed"):
                come = [make(rng, table) for _ in range(rng.randrange(1, 4))]
                come += [rng.choice(old) for _ in range(rng.randrange(2)) if old]
            left = Counter(old)
            left.subtract(Counter(gone))
            self.old[table] = old
            self.new[table] = list((left + Counter(come)).elements())
            signed: list[Row] = [(*row, 1) for row in come] + [(*row, -1) for row in gone]
            if signed and not only and rng.random() < 0.4:  # carried over by a rewritten file
                for kept in rng.sample(old, min(2, len(old))):
                    signed += [(*kept, 1), (*kept, -1)]
            self.changes[table] = signed

    @property
    def changed(self) -> frozenset[str]:
        return frozenset(table for table, rows in self.changes.items() if rows)

    def load(self, db: duckdb.DuckDBPyConnection) -> None:
        for table, kinds in self.schema.items():
            sides = {"new": self.new, "old": self.old, "changes": self.changes}
            for side, rows in sides.items():
                cols = {**kinds, "__w": "INTEGER"} if side == "changes" else kinds
                empty = f"({', '.join(['NULL'] * len(cols))})"
                values = ", ".join(str(row).replace("None", "NULL") for row in rows[table])
                items = ", ".join(
                    f"CAST({name} AS {kind}) AS {name}" for name, kind in cols.items()
                )
                db.execute(
                    f"CREATE OR REPLACE TEMP TABLE {side}_{table} AS SELECT {items}"
                    f" FROM (VALUES {values or empty}) AS v({', '.join(cols)})"
                    f" WHERE {bool(rows[table])}"
                )


def _row(rng: random.Random, table: str) -> Row:
    width = len(TABLES[table])
    return tuple(None if rng.random() < 0.15 else rng.randrange(5) for _ in range(width))


class Plans:
    """Makes plans bottom-up; every column gets a name of its own."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._made = 0

    def fresh(self) -> Col:
        self._made += 1
        return Col(f"c{self._made}")

    def plan(self, depth: int) -> Node:
        rng = self.rng
        if depth == 0 or rng.random() < 0.1:
            return self.scan()
        make = rng.choice(
            [self.filter, self.project, self.aggregate, self.window, self.distinct]
            + [self.join] * 5
            + [self.set_operation] * 2
        )
        return make(depth - 1)

    def scan(self) -> Node:
        table = self.rng.choice(list(TABLES))
        return Scan(table, tuple((self.fresh(), name) for name in TABLES[table]))

    def filter(self, depth: int) -> Node:
        child = self.plan(depth)
        now = self.predicate(output(child))
        chance = random.Random(f"{self._made} {now}")  # leaves the plans as they are without it
        return Filter(
            child, now, self.predicate(output(child), chance) if chance.random() < 0.3 else None
        )

    def project(self, depth: int) -> Node:
        child = self.plan(depth)
        cols = output(child)
        count = self.rng.randrange(1, len(cols) + 1)
        items = [(self.fresh(), self.scalar(self.rng.choice(cols))) for _ in range(count)]
        chance = random.Random(f"{self._made} {items}")
        before = None
        if chance.random() < 0.15:
            again = [(col, self.scalar(chance.choice(cols), rng=chance)) for col, _ in items]
            before = tuple(again)
        return Project(child, tuple(items), before)

    def aggregate(self, depth: int) -> Node:
        child = self.plan(depth)
        cols, rng = output(child), self.rng
        keys = rng.sample(cols, min(len(cols), rng.choice([0, 1, 1, 1, 2])))
        grouped = tuple((self.fresh(), self.scalar(col)) for col in keys)
        node: Node = Aggregate(
            child, grouped, tuple(self.call(cols) for _ in range(rng.choice([1, 2])))
        )
        if rng.random() < 0.2:
            node = Filter(node, self.predicate(output(node)[-1:]))
        return node

    def call(self, cols: Sequence[Col]) -> tuple[Col, Call]:
        col = self.rng.choice(cols)
        function, text = self.rng.choice(
            [
                ("count", Expr(("COUNT(*)",))),
                ("sum", Expr(("CAST(SUM(", col, ") AS INTEGER)"))),
                ("min", Expr(("MIN(", col, ")"))),
                ("max", Expr(("MAX(", col, ")"))),
                ("count_distinct", Expr(("COUNT(DISTINCT ", col, ")"))),
            ]
        )
        return self.fresh(), Call(function, text)

    def window(self, depth: int) -> Node:
        child = self.plan(depth)
        cols, rng = output(child), self.rng
        items: list[WindowItem] = []
        for _ in range(rng.choice([1, 1, 2])):
            by = tuple(
                column(col) for col in rng.sample(cols, min(len(cols), rng.choice([0, 1, 1, 2])))
            )
            order, value = rng.choice(cols), rng.choice(cols)
            parts: list[str | Col] = ["PARTITION BY "] if by else []
            for n, expr in enumerate(by):
                parts += [", "] if n else []
                parts += expr.parts
            text: tuple[str | Col, ...] = rng.choice(
                [
                    ("COUNT(*) OVER (", *parts, ")"),
                    ("CAST(SUM(", value, ") OVER (", *parts, ") AS INTEGER)"),
                    ("RANK() OVER (", *parts, " ORDER BY ", order, " NULLS LAST)"),
                    (
                        "CAST(SUM(",
                        value,
                        ") OVER (",
                        *parts,
                        " ORDER BY ",
                        order,
                        " NULLS LAST) AS INTEGER)",
                    ),
                ]
            )
            items.append(WindowItem(self.fresh(), by, Call("window", Expr(text))))
        return Window(child, tuple(items))

    def distinct(self, depth: int) -> Node:
        return Distinct(self.plan(depth))

    def join(self, depth: int) -> Node:
        rng = self.rng
        left, right = self.plan(depth), self.plan(rng.randrange(depth + 1))
        chance = random.Random(f"{self._made} {depth}")
        if chance.random() < 0.1:
            return self.beside(left, right, chance)
        kind = rng.choice(["inner", "inner", "left", "full", "semi", "anti"])
        pairs: list[Equality] = []
        if rng.random() < 0.9 or kind == "full":
            pairs = [
                Equality(
                    self.scalar(rng.choice(output(left)), plain=0.8),
                    self.scalar(rng.choice(output(right)), plain=0.8),
                    rng.random() < 0.15,
                )
                for _ in range(2 if rng.random() < 0.25 else 1)
            ]
        residual: list[Expr] = []
        if rng.random() < 0.25:
            a, b = rng.choice(output(left)), rng.choice(output(right))
            residual.append(Expr((a, rng.choice([" < ", " <> ", " >= "]), b)))
        if kind in ("semi", "anti") and chance.random() < 0.4:
            name = f"{self._made}_{depth}"  # leaves the plans as they are without it
            mark, number = Col(f"m{name}"), Col(f"n{name}")
            marked = Join("mark", left, right, tuple(pairs), tuple(residual), mark)
            items = [(col, column(col)) for col in output(left)]
            items.append((number, Expr(("CASE WHEN ", mark, " THEN 1 ELSE 0 END"))))
            return Project(marked, tuple(items))
        return Join(kind, left, right, tuple(pairs), tuple(residual))

    def beside(self, left: Node, right: Node, rng: random.Random) -> Node:
        """The value of a sub-query beside each row, and perhaps a filter by it."""
        value = rng.choice(output(right))
        parts = rng.choice([("MAX(", value, ")"), ("COUNT(*)",), ("MIN(", value, ")")])
        total = Aggregate(right, (), ((self.fresh(), Call("max", Expr(parts))),))
        col = self.fresh()
        node: Node = Join("inner", left, Single(total, col))
        if rng.random() < 0.7:
            return Filter(node, Expr((rng.choice(output(left)), " <= ", col)))
        return node

    def set_operation(self, depth: int) -> Node:
        rng = self.rng
        left, right = self.plan(depth), self.plan(rng.randrange(depth + 1))
        width = min(len(output(left)), len(output(right)), 3)
        sides: list[Node] = []
        for side in (left, right):
            items = [(self.fresh(), column(col)) for col in rng.sample(output(side), width)]
            sides.append(Project(side, tuple(items)))
        kind = rng.choice(["union", "union", "except", "intersect"])
        cols = tuple(self.fresh() for _ in range(width))
        return SetOperation(kind, rng.random() < 0.5, sides[0], sides[1], cols)

    def scalar(self, col: Col, plain: float = 0.6, rng: random.Random | None = None) -> Expr:
        rng = rng or self.rng
        if rng.random() < plain:
            return column(col)
        parts: tuple[str | Col, ...] = rng.choice(
            [
                (col, " + 1"),
                ("COALESCE(", col, ", 0)"),
                ("CASE WHEN ", col, " > 2 THEN ", col, " END"),
            ]
        )
        return Expr(parts)

    def predicate(self, cols: Sequence[Col], rng: random.Random | None = None) -> Expr:
        rng = rng or self.rng
        a, b = rng.choice(cols), rng.choice(cols)
        parts: tuple[str | Col, ...] = rng.choice(
            [
                (a, " > 1"),
                (a, " = 2"),
                (a, " IS NULL"),
                (a, " <= ", b),
                (a, " <> 3 OR ", b, " IS NULL"),
            ]
        )
        return Expr(parts)


class Judge:
    """Runs a script's steps on DuckDB."""

    def __init__(
        self, db: duckdb.DuckDBPyConnection, script: Script, *, translate: bool = False
    ) -> None:
        self.db = db
        self.script = script
        self.translate = translate
        self._run: set[str] = set()

    def make(self, name: str) -> None:
        for step in self.script.needed(name):
            if step.name not in self._run:
                sql = to_duckdb(step.sql) if self.translate else step.sql
                self.db.execute(f"CREATE OR REPLACE TEMP TABLE {step.name} AS {sql}")
                self._run.add(step.name)

    def rows(self, name: str, columns: str, where: str = "TRUE") -> Counter[Row]:
        self.make(name)
        found = self.db.execute(f"SELECT {columns} FROM {name} WHERE {where}").fetchall()
        return Counter(found)

    def outside(self, name: str, columns: str, exprs: Iterable[Expr], keys: str) -> Counter[Row]:
        self.make(keys)
        return self.rows(name, columns, f"NOT {member(tuple(exprs), keys)}")


def to_duckdb(sql: str) -> str:
    """The user's own words are Spark's."""
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


def relation(source: str, version: str) -> str:
    return f"{version}_{source}"


def checked(
    db: duckdb.DuckDBPyConnection,
    plan: Node,
    data: Data,
    rng: random.Random,
    *,
    translate: bool = False,
) -> Counter[str]:
    """Every way to bring the plan's rows from old to new gives the new ones; counts of ways."""
    data.load(db)
    script = Script(relation, str)
    judge = Judge(db, script, translate=translate)
    old = frozenset(data.old) if rng.random() < 0.8 else frozenset()
    derivation = Derivation(script, data.changed, old)
    shown = names(plan)
    before = judge.rows(script.state(plan, "old"), shown)
    after = judge.rows(script.state(plan, "new"), shown)
    done: Counter[str] = Counter()
    for key in _keys_to_try(plan, rng):
        try:
            found = derivation.keys(plan, key)
        except NotDerivable as error:
            done[error.code] += 1
            continue
        if found is None:
            assert before == after
            continue
        kept = judge.outside(script.state(plan, "old"), shown, key, found)
        inner = judge.rows(restrict(script, plan, key, found, "new"), shown)
        assert kept + inner == after, key
        assert inner == judge.rows(script.state(plan, "new"), shown, member(key, found)), key
        done["keys"] += 1
    try:
        change = derivation.delta(plan)
    except NotDerivable as error:
        done[error.code] += 1
        return done
    out = Counter(before)
    if change is not None:
        for row, times in judge.rows(change, f"{shown}, __w").items():
            out[row[:-1]] += int(str(row[-1])) * times
    assert all(weight >= 0 for weight in out.values())
    assert +out == after
    done["delta"] += 1
    return done


def checked_strategies(
    db: duckdb.DuckDBPyConnection,
    plan: Plan,
    data: Data,
    rng: random.Random,
    *,
    translate: bool = False,
) -> Counter[str]:
    """Every strategy that applies leads from the old rows to the new ones; counts of each."""
    data.load(db)
    plan = msgspec.structs.replace(plan, root=pruned(plan.root))
    script = Script(relation, str)
    judge = Judge(db, script, translate=translate)
    shown = names(plan.root)
    before = judge.rows(script.state(plan.root, "old"), shown)
    after = judge.rows(script.state(plan.root, "new"), shown)
    made = f"CREATE OR REPLACE TEMP TABLE target AS SELECT {shown} FROM"
    db.execute(f"{made} {script.state(plan.root, 'old')}")
    kinds = [str(kind).lower() for kind in db.table("target").types]
    every = {Col(f"c{number}"): "bigint" for number in range(1000)}
    types = every | _averaged(plan.root) | dict(zip(output(plan.root), kinds, strict=True))
    ways = {name: _way(rows) for name, rows in data.changes.items()}
    old = frozenset(data.schema) if rng.random() < 0.8 else frozenset()
    choice = choose(Situation(plan, ways, types, old), script)
    certain = first_of(judge, plan.root, "new") if isinstance(plan.root, Top) else after
    cols = tuple(col.name for col in output(plan.root))
    done: Counter[str] = Counter()
    for option in choice.options:
        target = Target("target", cols, tuple(kinds), small=rng.random() < 0.5)
        found = signed_change(option, script, plan.root, target)
        broken = [one for one in found.unless if judge.rows(found.change, "*", one.rows)]
        if broken:
            assert isinstance(option, TopMerge), broken
            assert_refused(judge, plan.root, before, broken[0], certain)
            done[f"refused: {broken[0].code}"] += 1
            continue
        out = Counter(before)
        for row, times in judge.rows(found.change, f"{shown}, __w, __n").items():
            assert times == 1, "netted rows are all different"
            weight, copies = int(str(row[-2])), int(str(row[-1]))
            out[row[:-2]] += weight
            assert weight > 0 or certain is None or copies == certain[row[:-2]], option
        assert all(weight >= 0 for weight in out.values()), option
        if certain is None:
            assert out == before, "which rows are first is not certain"
            assert_first(judge, plan.root, out)
            done[f"{option.name} kept"] += 1
            continue
        assert +out == certain, option
        done[option.name] += 1
    if not choice.options:
        done[f"full: {choice.rejected[-1].code}"] += 1
    return done


def _ranked(judge: Judge, root: Node, version: Literal["old", "new"]) -> list[Row]:
    """All rows that the first ones are taken from, behind their ranks."""
    assert isinstance(root, Top)
    rows = judge.script.state(root.child, version)
    judge.make(rows)
    sql = f"SELECT RANK() OVER (ORDER BY {ordered(root.order)}), {names(root)} FROM {rows}"
    return judge.db.execute(sql).fetchall()


def assert_first(judge: Judge, root: Node, rows: Counter[Row]) -> None:
    """No row that is left out comes before one of these."""
    assert isinstance(root, Top)
    ranked = _ranked(judge, root, "new")
    ranks = {row[1:]: int(str(row[0])) for row in ranked}
    out = Counter(row[1:] for row in ranked)
    out.subtract(rows)
    assert sum(rows.values()) == min(root.count, len(ranked))
    assert all(copies >= 0 for copies in out.values())
    assert max(ranks[row] for row in rows) <= min(ranks[row] for row in +out)


def first_of(judge: Judge, root: Node, version: Literal["old", "new"]) -> Counter[Row] | None:
    """The first rows of an order; None where several choices are right."""
    assert isinstance(root, Top)
    ranked = _ranked(judge, root, version)
    inside = sorted((row for row in ranked if row[0] <= root.count), key=lambda row: row[0])
    last = {row[1:] for row in inside if row[0] == inside[-1][0]}
    if len(inside) > root.count and len(last) > 1:
        return None
    return Counter(row[1:] for row in inside[: root.count])


def assert_refused(
    judge: Judge, root: Node, before: Counter[Row], why: Forbidden, certain: Counter[Row] | None
) -> None:
    """First rows are refused for a reason: several are right, or one of them went."""
    assert isinstance(root, Top)
    assert why.code == "LIMIT_ORDER", why
    if "both sides" in why.why:
        assert certain is None
        return
    old, new = (judge.rows(judge.script.state(root.child, v), names(root)) for v in ("old", "new"))
    assert sum(before.values()) == root.count
    assert any(new[row] < old[row] for row in before)


def _averaged(node: Node) -> dict[Col, str]:
    """The types of averages, which are not whole numbers as all else is."""
    found = {col: kind for child in inputs(node) for col, kind in _averaged(child).items()}
    if isinstance(node, Aggregate):
        found |= {col: "double" for col, call in node.calls if call.function == "avg"}
    return found


def _way(rows: Sequence[Row]) -> TableChange:
    if not rows:
        return TableChange("none", 1, 1)
    return TableChange("append" if all(row[-1] == 1 for row in rows) else "changelog", 1, 2)


def _keys_to_try(plan: Node, rng: random.Random) -> list[tuple[Expr, ...]]:
    pair = tuple(column(col) for col in rng.sample(output(plan), min(2, len(output(plan)))))
    return [*((expr,) for expr in candidates(plan)), pair]


def plan_of(sql: str) -> Plan:
    """The plan of a query over the three tables."""

    def lookup(start: int) -> TableRef | None:
        name = sql[start : start + 2].lower()
        return TableRef(name, TABLES[name]) if name in TABLES else None

    return build(sql, structure(split(sql)), lookup)


def names(node: Node) -> str:
    return ", ".join(col.name for col in output(node))
