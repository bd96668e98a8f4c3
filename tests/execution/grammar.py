"""The grammar of random queries: which columns and values there are, and what is asked of them.

Everything follows from the random numbers it is given. What differs between engines and types
(decimals of every scale, NaN, -0.0, NULLs, timestamps, equal rows, strings that only compare as
equal) is met in every place that an expression can stand.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec

KINDS = {
    "int": "INT",
    "long": "BIGINT",
    "dec8": "DECIMAL(18,8)",
    "dec18": "DECIMAL(38,18)",
    "dbl": "DOUBLE",
    "str": "STRING",
    "day": "DATE",
    "ts": "TIMESTAMP",
}
VALUES = {
    "int": ["0", "1", "2", "3", "4"],
    "long": ["0", "-1", "7", "4000000000"],
    "dec8": ["0", "0.00000001", "-0.00000001", "12345.6", "99.5"],
    "dec18": ["0", "0.000000000000000001", "-3.5", "12345678.000000000000000009"],
    "dbl": ["0.0D", "-0.0D", "double('NaN')", "0.5D", "-2.25D", "1e300"],
    "str": ["''", "'a'", "'A'", "'b '", "'ä'"],
    "day": ["DATE'2026-01-01'", "DATE'2026-01-02'", "DATE'1969-12-31'"],
    "ts": ["TIMESTAMP'2026-01-01 00:00:00'", "TIMESTAMP'2026-01-01 00:00:00.000001'"],
}
#: Strings that compare as equal whatever their case: no table has them, queries make them. Which
#: of several equal ones is shown for a group is free, so nothing but comparing is done with them.
COLLATED = "ci"
_COLLATE = "COLLATE UTF8_LCASE"
_SUMMED = ("int", "long", "dec8", "dec18")
_WHOLE = ("int", "long")
_NUMBERS, _TIMES = frozenset({*_SUMMED, "dbl"}), frozenset({"day", "ts"})
TODAY = "current_date()"


def united(one: str, two: str) -> str | None:
    """What values of two kinds are that a set operation puts together; None: it does not.

    >>> united("int", "long"), united("day", "ts"), united("int", "dec8"), united("int", "str")
    ('long', 'ts', 'wide', None)
    """
    if one == two:
        return one
    if {one, two} == _TIMES:
        return "ts"
    if one in _SUMMED and two in _SUMMED:
        return "long" if {one, two} == {"int", "long"} else "wide"
    return None


class Column(msgspec.Struct, frozen=True):
    """A column: how it is named where it is read, and what it is."""

    name: str
    kind: str


class Queries:
    """Draws queries over tables and over models that were drawn before.

    Each is a text and the columns of its result.
    """

    def __init__(
        self, rng: random.Random, tables: dict[str, Sequence[Column]], folds: bool
    ) -> None:
        self.rng = rng
        #: Strings are met everywhere, and mostly compared by a collation.
        self.folds = folds
        #: What may be read, by its full name.
        self.tables = tables
        #: Models that may be read.
        self.models: dict[str, Sequence[Column]] = {}
        #: What a query may read by its name alone: a query of its own WITH.
        self.named: dict[str, Sequence[Column]] = {}
        self._names = 0

    def query(self, depth: int) -> tuple[str, list[Column]]:
        """A query whose result is one of its tables'."""
        make = self.rng.choice(
            [self.rows] * 3
            + [self.groups] * 4
            + [self.windows, self.distinct, self.sets, self.latest]
        )
        return make(depth)

    def first(self, text: str, columns: Sequence[Column]) -> str:
        """The first rows of a query by all that it gives, so that there is one right answer."""
        rng = self.rng
        if any(column.kind not in KINDS or column.kind == "dbl" for column in columns):
            return text
        ways = ["", " DESC", " NULLS LAST", " DESC NULLS FIRST"]
        order = ", ".join(f"{c.name}{rng.choice(ways)}" for c in rng.sample(columns, len(columns)))
        return f"{text} ORDER BY {order} LIMIT {rng.choice([1, 3, 6])}"

    def source(self, depth: int) -> tuple[str, list[Column]]:
        """Something to read: a table, a query, or several of them joined, and a filter."""
        text, columns = self.relation(depth)
        for _ in range(self.rng.choices([0, 1, 2], [5, 4, 1])[0]):
            other = self.relation(depth)
            if self.rng.random() < 0.1:
                other = self.join(*other, self.relation(1))
                other = (f"({other[0]})", other[1])
            text, columns = self.join(text, columns, other)
        if self.rng.random() < 0.1:
            text, columns = self.exploded(text, columns)
        conditions = [self.predicate(columns) for _ in range(self.rng.choice([0, 0, 1, 2]))]
        if self.rng.random() < 0.1:
            conditions.append(self.compared(columns))
        if self.rng.random() < 0.2:
            asked = self.exists(columns)
            forms = ["{0}", "({0} OR {1})", "CASE WHEN {0} THEN TRUE ELSE {1} END"]
            conditions.append(self.rng.choice(forms).format(asked, self.predicate(columns)))
        return text + (f" WHERE {' AND '.join(conditions)}" if conditions else ""), columns

    def relation(self, depth: int) -> tuple[str, list[Column]]:
        self._names += 1
        alias = f"a{self._names}"
        if self.named and self.rng.random() < 0.4:
            text, columns = self.rng.choice(list(self.named.items()))
        elif self.models and self.rng.random() < 0.1:
            text, columns = self.rng.choice(list(self.models.items()))
        elif depth > 1 and self.rng.random() < 0.6:
            text, columns = self.query(depth - 1)
            text = f"({text})"
        else:
            text, columns = self.rng.choice(list(self.tables.items()))
        return f"{text} {alias}", [Column(f"{alias}.{c.name}", c.kind) for c in columns]

    def join(
        self, left: str, mine: list[Column], other: tuple[str, list[Column]]
    ) -> tuple[str, list[Column]]:
        rng, (right, theirs) = self.rng, other
        kind = rng.choice(
            [
                "JOIN",
                "JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "LEFT SEMI JOIN",
                "LEFT ANTI JOIN",
            ]
        )
        pairs = [(a, b) for a in mine for b in theirs if a.kind == b.kind]
        if not pairs:
            return left, mine
        a, b = rng.choice(pairs)
        if self.folds:
            pairs = [pair for pair in pairs if pair[0].kind == "str"] or pairs
            a, b = rng.choice(pairs)
        folded = f" {_COLLATE}" if self.folds and a.kind == "str" else ""
        one, two = f"{a.name}{folded}", b.name
        if rng.random() < 0.2:
            one, two = self.unlike(mine, theirs)
        condition = f"{one} {rng.choice(['=', '=', '=', '<=>'])} {two}"
        if rng.random() < 0.25:
            condition += f" AND {self.predicate([*mine, *theirs])}"
        joined = f"{left} {kind} {right} ON {condition}"
        return joined, mine if "SEMI" in kind or "ANTI" in kind else [*mine, *theirs]

    def unlike(self, mine: list[Column], theirs: list[Column]) -> tuple[str, str]:
        """Two values of different types that Spark compares all the same."""
        rng = self.rng
        pairs = [
            (a, b)
            for a in mine
            for b in theirs
            if any(a.kind in like and b.kind in like for like in (_NUMBERS, _TIMES))
        ]
        if not pairs:
            return "1", "'1'"
        a, b = rng.choice(pairs)
        sides = [a.name, b.name]
        if a.kind in ("int", "long") and b.kind in ("int", "long") and rng.random() < 0.7:
            place = rng.randrange(2)
            sides[place] = f"CAST({sides[place]} AS STRING)"
        return sides[0], sides[1]

    def exploded(self, text: str, columns: list[Column]) -> tuple[str, list[Column]]:
        """A row for each of some values of a row, or for none of them."""
        rng = self.rng
        makers = [c for c in columns if c.kind in ("int", "str")]
        if not makers:
            return text, columns
        self._names += 1
        made, chosen = f"y{self._names}", rng.choice(makers)
        generator, kind = self.generator(chosen)
        outer = rng.choice(["", "OUTER "])
        view = f" LATERAL VIEW {outer}explode({generator}) v{self._names} AS {made}"
        return text + view, [*columns, Column(made, kind)]

    def generator(self, column: Column) -> tuple[str, str]:
        """An array that a column makes, and what is in it."""
        if column.kind == "str":
            return f"split({column.name}, '')", "str"
        ways = [f"sequence(0, {column.name})", f"array({column.name}, 2, 2)"]
        return self.rng.choice(ways), "int"

    def compared(self, columns: Sequence[Column]) -> str:
        """A value of each row beside that of a sub-query."""
        text, inner = self.relation(1)
        one = [c for c in columns if c.kind in _WHOLE]
        two = [c for c in inner if c.kind in _WHOLE]
        if not one or not two:
            return "TRUE"
        return f"{self.rng.choice(one).name} >= {self.value(columns, text, inner, two)}"

    def value(
        self,
        columns: Sequence[Column],
        text: str,
        inner: Sequence[Column],
        summed: Sequence[Column],
    ) -> str:
        """A sub-query with one value: of all rows, or of those that a row of ``columns`` meets."""
        rng = self.rng
        name = rng.choice(summed).name
        call = rng.choice(["count(*)", f"max({name})", f"min({name})", f"sum({name})"])
        pairs = [(a, b) for a in columns for b in inner if a.kind == b.kind]
        where = self.predicate(inner)
        if pairs and rng.random() < 0.7:
            a, b = rng.choice(pairs)
            where = f"{b.name} = {a.name}"
        return f"(SELECT {call} FROM {text} WHERE {where})"

    def exists(self, columns: Sequence[Column]) -> str:
        rng = self.rng
        text, inner = self.relation(1)
        pairs = [(a, b) for a in columns for b in inner if a.kind == b.kind]
        if not pairs:
            return "TRUE"
        a, b = rng.choice(pairs)
        if rng.random() < 0.4:
            word = rng.choice(["IN", "NOT IN"])
            return f"{a.name} {word} (SELECT {b.name} FROM {text} WHERE {self.predicate(inner)})"
        word = rng.choice(["EXISTS", "NOT EXISTS"])
        return f"{word} (SELECT 1 FROM {text} WHERE {a.name} = {b.name})"

    def rows(self, depth: int) -> tuple[str, list[Column]]:
        text, columns = self.source(depth)
        items = [self.scalar(c) for c in self._some(columns)]
        if self.rng.random() < 0.1:
            items.append((f"CASE WHEN {self.exists(columns)} THEN 1 ELSE 0 END", "int"))
        if self.rng.random() < 0.05:
            items.append((self.exists(columns), "bool"))
        if self.rng.random() < 0.05:
            other, inner = self.relation(1)
            summed = [c for c in inner if c.kind in _WHOLE]
            if summed:
                items.append((self.value(columns, other, inner, summed), "long"))
        makers = [c for c in columns if c.kind in ("int", "str")]
        if makers and self.rng.random() < 0.05:
            generator, kind = self.generator(self.rng.choice(makers))
            items.append((f"explode({generator})", kind))
        return self._select(items, text)

    def distinct(self, depth: int) -> tuple[str, list[Column]]:
        text, columns = self.source(depth)
        made, out = self._select([(c.name, c.kind) for c in self._some(columns, 2)], text)
        return made.replace("SELECT", "SELECT DISTINCT", 1), out

    def groups(self, depth: int) -> tuple[str, list[Column]]:
        rng = self.rng
        text, columns = self.source(depth)
        keys = [self.scalar(c, plain=0.8) for c in self._some(columns, 2)]
        calls = [self.aggregate(columns) for _ in range(rng.choice([1, 2, 3]))]
        if rng.random() < 0.5:
            calls.append(("count(*)", "long"))
        hidden = rng.random() < 0.1
        made, out = self._select(calls if hidden else [*keys, *calls], text)
        made += f" GROUP BY {self.grouping([key for key, _ in keys])}"
        if rng.random() < 0.2:
            made += f" HAVING {rng.choice(['count(*) > 1', calls[0][0] + ' IS NOT NULL'])}"
        return made, out

    def grouping(self, keys: Sequence[str]) -> str:
        """What rows are grouped by, sometimes with subtotals."""
        all_of = ", ".join(keys)
        if self.rng.random() > 0.08:
            return all_of
        sets = f"GROUPING SETS (({all_of}), ({keys[0]}))"
        # sqlglot reads no conditions in ROLLUP, unless they are in parentheses
        each = ", ".join(key if key.replace(".", "").isidentifier() else f"({key})" for key in keys)
        return self.rng.choice([f"ROLLUP ({each})", f"{all_of} WITH CUBE", sets])

    def sums(self, depth: int) -> tuple[str, list[Column]]:
        """Groups that a change can be merged into: sums with their counts, and that of all rows."""
        rng = self.rng
        text, columns = self.source(depth)
        keys = [self.scalar(c, plain=0.8) for c in self._some(columns, 2)]
        calls = [("count(*)", "long")]
        summed = [c for c in columns if c.kind in _SUMMED]
        for c in rng.sample(summed, min(len(summed), rng.choice([1, 2]))):
            total = "long" if c.kind in ("int", "long") else "wide"
            calls += [(f"sum({c.name})", total), (f"count({c.name})", "long")]
        if rng.random() < 0.3:
            calls.append((f"count_if({self.predicate(columns)})", "long"))
        made, out = self._select([*keys, *calls], text)
        return f"{made} GROUP BY {', '.join(key for key, _ in keys)}", out

    def aggregate(self, columns: Sequence[Column]) -> tuple[str, str]:
        rng = self.rng
        column = rng.choice(columns)
        name, kind = column.name, column.kind
        ways = [
            ("count(*)", "long"),
            (f"count({name})", "long"),
            (f"count(DISTINCT {name})", "long"),
        ]
        if kind in _SUMMED:
            # wide enough for every sum of the grammar, so that ANSI has nothing to say
            total = {"int": "long", "long": "long"}.get(kind, kind)
            ways += [(f"CAST(sum({name}) AS {KINDS[total]})", total)]
            if total == "long":
                ways += [(f"sum({name})", "long")] * 3
            else:
                ways += [(f"sum({name})", "wide")] * 3
            ways += [(f"avg({name})", "dbl" if total == "long" else "wide")]
        if kind not in ("dbl", COLLATED):
            # of 0.0 and -0.0 any is the largest
            ways += [(f"max({name})", kind), (f"min({name})", kind)]
        text, made = rng.choice(ways)
        if rng.random() < 0.1 and "(" in text and not text.startswith("CAST"):
            text += f" FILTER (WHERE {self.predicate(columns)})"
        return text, made

    def windows(self, depth: int) -> tuple[str, list[Column]]:
        rng = self.rng
        text, columns = self.source(depth)
        by = [c.name for c in self._some(columns, 2)]
        order = rng.choice(columns).name
        over = f"OVER (PARTITION BY {', '.join(by)}"
        value = rng.choice([c for c in columns if c.kind in _SUMMED] or [Column("1", "int")])
        call = rng.choice(
            [
                (f"rank() {over} ORDER BY {order})", "int"),
                (f"count(*) {over})", "long"),
                (
                    f"sum({value.name}) {over} ORDER BY {order})",
                    "wide" if "dec" in value.kind else "long",
                ),
                (f"max({order}) {over})", next(c.kind for c in columns if c.name == order)),
                (f"count(*) {over} ORDER BY {order} {self.frame(order, columns)})", "long"),
            ]
        )
        if call[1] in ("dbl", COLLATED):
            call = (f"dense_rank() {over} ORDER BY {order})", "int")
        items = [(c.name, c.kind) for c in self._some(columns, 3)]
        return self._select([*items, call], text)

    def frame(self, order: str, columns: Sequence[Column]) -> str:
        """A frame that rows with equal values share."""
        near = any(c.name == order and c.kind in _WHOLE for c in columns)
        ways = ["RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"]
        ways += ["RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING"] * near
        return self.rng.choice(ways)

    def latest(self, depth: int) -> tuple[str, list[Column]]:
        text, columns = self.source(depth)
        by, order = self.rng.choice(columns).name, self.rng.choice(columns).name
        rank = (f"rank() OVER (PARTITION BY {by} ORDER BY {order} DESC)", "int")
        kept = [(c.name, c.kind) for c in self._some(columns, 3)]
        inner, out = self._select([*kept, rank], text)
        names = ", ".join(c.name for c in out[:-1])
        return f"SELECT {names} FROM ({inner}) q WHERE {out[-1].name} = 1", out[:-1]

    def sets(self, depth: int) -> tuple[str, list[Column]]:
        rng = self.rng
        one, two = self.source(depth), self.source(depth)
        shared = [(a, b) for a in one[1] for b in two[1] if a.kind == b.kind]
        if rng.random() < 0.2:
            shared = [(a, b) for a in one[1] for b in two[1] if united(a.kind, b.kind)]
        if not shared:
            return self.rows(depth)
        pairs = rng.sample(shared, min(len(shared), rng.choice([1, 2])))
        word = rng.choice(
            ["UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"]
        )
        left, out = self._select([(a.name, a.kind) for a, _ in pairs], one[0])
        right, _ = self._select([(b.name, b.kind) for _, b in pairs], two[0])
        kinds = [united(a.kind, b.kind) or a.kind for a, b in pairs]
        return f"{left} {word} {right}", [
            Column(c.name, k) for c, k in zip(out, kinds, strict=True)
        ]

    # Pieces

    def _select(self, items: Sequence[tuple[str, str]], text: str) -> tuple[str, list[Column]]:
        named = [f"{item} AS x{n}" for n, (item, _) in enumerate(items)]
        out = [Column(f"x{n}", kind) for n, (_, kind) in enumerate(items)]
        return f"SELECT {', '.join(named)} FROM {text}", out

    def _some(self, columns: Sequence[Column], most: int = 4) -> list[Column]:
        count = self.rng.randrange(1, min(most, len(columns)) + 1)
        return self.rng.sample(list(columns), count)

    def scalar(self, column: Column, plain: float = 0.7) -> tuple[str, str]:
        name, kind = column.name, column.kind
        if kind == COLLATED or self.rng.random() < plain:
            return name, kind
        ways = [(f"CAST({name} AS STRING)", "str"), (f"{name} IS NULL", "bool")]
        if kind in ("int", "long"):
            ways += [
                (f"coalesce({name}, 0) + 1", kind),
                (f"CASE WHEN {name} > 1 THEN {name} END", kind),
            ]
        if kind in VALUES:
            ways += [(f"nullif({name}, {self.rng.choice(VALUES[kind])})", kind)]
        if kind == "str":
            ways += [(f"lower({name})", "str"), (f"concat({name}, 'x')", "str")]
            ways += [(f"{name} {_COLLATE}", COLLATED)] * 2 * self.folds
        if kind in ("ts", "day"):
            ways += [(f"date_trunc('MONTH', {name})", "ts")]
            ways += [(f"datediff({TODAY}, {name})", "int")]
        return self.rng.choice(ways)

    def predicate(self, columns: Sequence[Column]) -> str:
        rng = self.rng
        known = [c for c in columns if c.kind in VALUES]
        if not known:
            return f"{rng.choice(columns).name} IS NOT NULL"
        column = rng.choice(known)
        value = rng.choice(VALUES[column.kind])
        # Iceberg leaves out files by comparisons with numbers as if -0.0 were less than 0.0 and NaN
        # less than all: what they find would depend on what else is in the files
        name = f"({column.name} + 0D)" if column.kind == "dbl" else column.name
        simple = rng.choice(
            [
                f"{name} {rng.choice(['=', '<>', '<', '>=', '<=>'])} {value}",
                f"{column.name} IS {rng.choice(['', 'NOT '])}NULL",
                f"{name} IN ({', '.join(rng.sample(VALUES[column.kind], 2))})",
            ]
        )
        if column.kind in _TIMES and rng.random() < 0.3:
            simple = f"{name} {rng.choice(['<', '>='])} {TODAY}{rng.choice(['', ' - 1'])}"
        if column.kind == "str" and self.folds:
            simple = f"{column.name} {_COLLATE} {rng.choice(['=', '<>', '<'])} {value}"
        other = [c for c in known if c.kind == column.kind and c != column]
        if other and rng.random() < 0.3:
            simple = f"{column.name} {rng.choice(['<', '=', '<>'])} {rng.choice(other).name}"
        if rng.random() < 0.2:
            either = f"{simple} OR {rng.choice(known).name} IS NULL"
            return rng.choice([f"({either})", either])
        return simple
