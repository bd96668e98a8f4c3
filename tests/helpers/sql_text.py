"""Random queries as text that Spark and DuckDB read alike, over the three tables of ``plans``."""

from __future__ import annotations

import random
from collections.abc import Callable

from plans import TABLES

#: Columns that a block sees, as they are written there.
Seen = list[str]


class Queries:
    """Makes queries; everything is a whole number, every result has a name."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._made = 0
        self.ctes: dict[str, int] = {}

    def name(self, stem: str) -> str:
        self._made += 1
        return f"{stem}{self._made}"

    def chance(self, share: float) -> bool:
        return self.rng.random() < share

    def query(self) -> str:
        """A whole query."""
        depth = self.rng.choice([1, 1, 2, 2, 3])
        head: list[str] = []
        for _ in range(self.rng.choice([0, 0, 0, 1, 1, 2])):
            width = self.rng.randrange(1, 4)
            body = self.body(depth - 1, width)
            name = self.name("w")
            names = ", ".join(f"n{i}" for i in range(width))
            head.append(f"{name}({names}) AS ({body})")
            self.ctes[name] = width
        width = self.rng.randrange(1, 4)
        body = self.body(depth, width)
        if self.chance(0.1):
            body += " ORDER BY 1"
        else:
            body += self.first(width)
        return (f"WITH {', '.join(head)} " if head else "") + body

    def first(self, width: int) -> str:
        """Now and then the first rows only, most often by an order that leaves nothing open."""
        draw = random.Random(f"{self._made} {width}")  # leaves the queries as they are without it
        if draw.random() > 0.2:
            return ""
        places = draw.sample(range(1, width + 1), width if draw.random() < 0.7 else 1)
        ways = ["ASC NULLS FIRST", "DESC NULLS LAST", "ASC NULLS LAST", "DESC NULLS FIRST"]
        order = ", ".join(f"{place} {draw.choice(ways)}" for place in places)
        return f" ORDER BY {order} LIMIT {draw.choice([1, 2, 3, 5])}"

    def body(self, depth: int, width: int) -> str:
        if depth > 0 and self.chance(0.2):
            word = self.rng.choice(
                ["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT"]
            )
            left, right = self.body(depth - 1, width), self.body(depth - 1, width)
            if self.chance(0.3):
                right = f"({right})"
            return f"{left} {word} {right}"
        return self.select(depth, width)

    # FROM

    def relation(self, depth: int) -> tuple[str, str, list[str]]:
        """A relation as text, the name it has, and its columns."""
        rng = self.rng
        alias = self.name("r")
        word = rng.choice([" AS ", " "])
        if depth > 0 and self.chance(0.25):
            width = rng.randrange(1, 4)
            names = [f"n{i}" for i in range(width)]
            return f"({self.body(depth - 1, width)}){word}{alias}({', '.join(names)})", alias, names
        if self.ctes and self.chance(0.5):
            cte = rng.choice(list(self.ctes))
            names = [f"n{i}" for i in range(self.ctes[cte])]
            return (cte, cte, names) if self.chance(0.2) else (f"{cte}{word}{alias}", alias, names)
        if self.chance(0.04):
            return f"(VALUES (1, 2), (3, NULL)){word}{alias}(a, b)", alias, ["a", "b"]
        table = rng.choice(list(TABLES))
        shown = table.upper() if self.chance(0.1) else table
        return f"{shown}{word}{alias}", alias, list(TABLES[table])

    def from_clause(self, depth: int) -> tuple[str, Seen, list[str]]:
        """FROM as text, the columns there are, and what joins leave to WHERE."""
        rng = self.rng
        text, alias, names = self.relation(depth)
        seen = [f"{alias}.{name}" for name in names]
        used, later = {alias}, list[str]()
        for _ in range(rng.choice([0, 0, 1, 1, 2])):
            more, other, theirs = self.relation(depth)
            if other in used:
                continue
            used.add(other)
            columns = [f"{other}.{name}" for name in theirs]
            kind = rng.choice(
                [
                    "JOIN",
                    "JOIN",
                    "JOIN",
                    "LEFT JOIN",
                    "RIGHT JOIN",
                    "FULL OUTER JOIN",
                    "SEMI JOIN",
                    "ANTI JOIN",
                    ",",
                    "CROSS JOIN",
                    "USING",
                    "NATURAL",
                ]
            )
            mine, yours = rng.choice(seen), rng.choice(columns)
            shared = [n for n in theirs if sum(s.split(".")[-1] == n for s in seen) == 1]
            if kind == "NATURAL" and all("." in one for one in seen) and len(used) == 2 and shared:
                word = rng.choice(["NATURAL JOIN", "NATURAL LEFT JOIN"])
                text += f" {word} {more}"
            elif kind == "USING" and shared and all("." in one for one in seen):
                word = rng.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
                column = rng.choice(shared)
                text += f" {word} {more} USING ({column})"
                if self.chance(0.6):
                    seen = [column, *(s for s in seen if not s.endswith(f".{column}"))]
                    columns = [c for c in columns if not c.endswith(f".{column}")]
            elif kind == ",":
                text += f", {more}"
                if self.chance(0.8):
                    later.append(f"{mine} = {yours}")
            elif kind == "CROSS JOIN":
                text += f" CROSS JOIN {more}"
            else:
                word = "JOIN" if kind in ("USING", "NATURAL") else kind
                text += f" {word} {more} ON {self.on(seen, columns, word)}"
                columns = [] if word in ("SEMI JOIN", "ANTI JOIN") else columns
                if "," not in text and self.chance(0.1):
                    text = f"({text})"
            seen += columns
        return text, seen, later

    def on(self, left: Seen, right: Seen, word: str) -> str:
        rng = self.rng
        parts = [f"{rng.choice(left)} = {rng.choice(right)}"]
        if self.chance(0.2):
            parts.append(f"{rng.choice(left)} = {rng.choice(right)} + 1")
        if self.chance(0.25):
            parts.append(f"{rng.choice(left)} {rng.choice(['<', '<>', '>='])} {rng.choice(right)}")
        if self.chance(0.15):
            parts.append(f"{rng.choice(right)} > 1")
        if self.chance(0.1) and word != "FULL OUTER JOIN":
            parts = parts[1:] or ["1 = 1"]
        rng.shuffle(parts)
        return " AND ".join(parts)

    # Expressions

    def scalar(self, seen: Seen) -> str:
        a, b = self.rng.choice(seen), self.rng.choice(seen)
        if self.chance(0.55):
            return a
        return self.rng.choice(
            [
                f"{a} + 1",
                f"COALESCE({a}, {b})",
                f"CASE WHEN {a} > 2 THEN {b} ELSE 0 END",
                f"{a} - {b}",
                f"abs({a})",
                f"COALESCE({a}, 0)",
                f"({a} + {b}) * 2",
                "3",
            ]
        )

    def predicate(self, seen: Seen, depth: int) -> str:
        rng = self.rng
        a, b = rng.choice(seen), rng.choice(seen)
        if depth > 0 and self.chance(0.45):
            return self.among_others(self.asking(seen, depth), a)
        return rng.choice(
            [
                f"{a} > 1",
                f"{a} = 2",
                f"{a} IS NULL",
                f"{a} <= {b}",
                f"{a} BETWEEN 1 AND 3",
                f"({a} <> 3 OR {b} IS NULL)",
                f"{a} = 1 OR {b} > 2",
                f"{a} = 3 AND {b} > 0 OR {b} IS NULL",
                f"{a} IN (0, 2, 3)",
                f"NOT {a} = {b}",
                f"(({a} = {b} AND {a} > 1) OR ({a} = {b} AND {b} < 3))",
            ]
        )

    def asking(self, seen: Seen, depth: int) -> str:
        """A condition with a sub-query."""
        rng = self.rng
        a = rng.choice(seen)
        text, inner, later = self.from_clause(depth - 1)
        b, c = rng.choice(inner), rng.choice(inner)
        tied = [f"{b} = {rng.choice(seen)}"] if self.chance(0.6) else []
        if tied and self.chance(0.2):
            tied.append(f"{c} {rng.choice(['<', '<>'])} {rng.choice(seen)}")
        own = [self.predicate(inner, depth - 1)] if self.chance(0.4) else []
        where = [*tied, *own, *later]
        rest = f" FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else "")
        word = rng.choice(["", "NOT "])
        if self.chance(0.35):
            return f"{word}EXISTS (SELECT 1{rest})"
        if self.chance(0.5):
            if not tied and self.chance(0.4):
                rest += f" GROUP BY {c} HAVING COUNT(*) > 1"
            return f"{a} {word}IN (SELECT {c}{rest})"
        call = rng.choice(["MIN", "MAX", "COUNT", "SUM"])
        value = rng.choice([f"{call}({c})", f"{call}({c}) - 1", "COUNT(*)"])
        return f"{a} {rng.choice(['<', '=', '>='])} (SELECT {value}{rest})"

    def among_others(self, condition: str, column: str) -> str:
        """A condition as it is, or as a part of another one."""
        draw = random.Random(f"{self._made} {condition}")  # leaves the rest as it is without it
        forms = ["{0}", "{0}", "({0} OR {1} = 2)", "({1} > 3 OR ({1} < 3 AND {0}))"]
        forms += ["CASE WHEN {0} THEN {1} < 3 ELSE {1} > 1 END"]
        return draw.choice(forms).format(condition, column)

    def call(self, seen: Seen) -> str:
        a, b = self.rng.choice(seen), self.rng.choice(seen)
        return self.rng.choice(
            [
                "COUNT(*)",
                f"SUM({a})",
                f"MIN({a})",
                f"MAX({a})",
                f"COUNT({a})",
                f"COUNT(DISTINCT {a})",
                f"SUM(CASE WHEN {a} > 1 THEN {b} ELSE 0 END)",
                f"COUNT(*) FILTER (WHERE {a} > 1)",
            ]
        )

    # SELECT

    def select(self, depth: int, width: int) -> str:
        text, seen, where = self.from_clause(depth)
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            where.append(self.predicate(seen, depth))
        rest = f" FROM {text}" + (f" WHERE {' AND '.join(where)}" if where else "")
        if self.chance(0.1):
            rest += " -- a comment, with GROUP BY\n"
        shape: Callable[[int, Seen, int], tuple[str, str]] = self.rng.choice(
            [self.plain, self.plain, self.grouped, self.grouped, self.windowed]
        )
        items, after = shape(width, seen, depth)
        word = "DISTINCT " if shape == self.plain and self.chance(0.15) else ""
        return f"SELECT {word}{items}{rest}{after}"

    def items(self, exprs: list[str]) -> str:
        word = self.rng.choice([" AS ", " "])
        return ", ".join(f"{expr}{word}{self.name('o')}" for expr in exprs)

    def plain(self, width: int, seen: Seen, depth: int) -> tuple[str, str]:
        exprs = [self.scalar(seen) for _ in range(width)]
        if depth > 0 and self.chance(0.12):
            text, inner, later = self.from_clause(depth - 1)
            b = self.rng.choice(inner)
            tied = [f"{b} = {self.rng.choice(seen)}", *later]
            value = self.rng.choice([f"SUM({b})", "COUNT(*)", f"MAX({b}) + COUNT({b})"])
            exprs[-1] = f"(SELECT {value} FROM {text} WHERE {' AND '.join(tied)})"
        if width > 1 and self.chance(0.1):  # a result that names one before it
            return f"{exprs[0]} AS z1, " + self.items(["z1 + 1", *exprs[2:]]), ""
        return self.items(exprs), ""

    def grouped(self, width: int, seen: Seen, _depth: int) -> tuple[str, str]:
        rng = self.rng
        count = rng.choice([0, 1, 1, 1, 2]) if width > 1 or self.chance(0.5) else 0
        keys = [self.scalar(seen) for _ in range(count)]
        keys = [key for key in dict.fromkeys(keys) if key != "3"]
        shown = keys[: width - 1] if self.chance(0.9) else []
        exprs = list(shown)
        while len(exprs) < width:
            one, two = self.call(seen), self.call(seen)
            forms = [one, one, f"{one} + {two}", f"COALESCE({one}, 0)"]
            if keys:
                forms += [f"{one} + COALESCE({keys[0]}, 0)", f"abs({keys[0]})"]
                forms += [f"SUM({one}) OVER (PARTITION BY {keys[0]})"]
            exprs.append(rng.choice(forms))
        having = f" HAVING {self.call(seen)} > 1" if self.chance(0.2) else ""
        if not keys:
            return self.items(exprs), ""
        names = [self.name("g") for _ in shown]
        listed = [f"{e} AS {n}" for e, n in zip(shown, names, strict=True)]
        items = ", ".join([*listed, self.items(exprs[len(shown) :])])
        by = ", ".join(keys)
        everything = len(shown) == len(keys)
        windowed = "OVER" in items
        if everything and self.chance(0.2):
            by = ", ".join(str(n + 1) for n in range(len(keys)))
        elif everything and self.chance(0.15):
            by = ", ".join(names)
        elif everything and self.chance(0.1) and not windowed and "abs" not in items:
            by = "ALL"
        elif len(keys) == 2 and self.chance(0.3) and not windowed:
            by = rng.choice(
                [
                    f"GROUPING SETS (({keys[0]}, {keys[1]}), ({keys[0]}))",
                    f"{keys[0]}, ROLLUP ({keys[1]})",
                    f"{keys[0]}, CUBE ({keys[1]})",
                ]
            )
        return items, f" GROUP BY {by}{having}"

    def windowed(self, width: int, seen: Seen, _depth: int) -> tuple[str, str]:
        rng = self.rng
        exprs = [self.scalar(seen) for _ in range(width - 1)]
        by, order, value = (rng.choice(seen) for _ in range(3))
        over = f"PARTITION BY {by}" if self.chance(0.9) else ""
        call = rng.choice(
            [
                f"COUNT(*) OVER ({over})",
                f"SUM({value}) OVER ({over})",
                f"RANK() OVER ({over} ORDER BY {order})",
                f"SUM({value}) OVER ({over} ORDER BY {order})",
            ]
        )
        if rng.random() < 0.2:
            return self.items([*exprs, value]), f" QUALIFY {call} > 1"
        return self.items([*exprs, call]), ""
