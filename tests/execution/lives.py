"""Random tables, random models and random histories: the material of the engine loop.

Everything follows from a seed. Models read tables and each other, as tables and as views, and know
what day it is.
"""

from __future__ import annotations

import random

import msgspec
from grammar import KINDS, TODAY, VALUES, Column, Queries

_MODES = ("copy-on-write", "merge-on-read")
_DAYS = ("2026-01-01", "2026-01-02", "2026-01-03")


class Table(msgspec.Struct, frozen=True):
    """A source table."""

    name: str
    columns: tuple[Column, ...]
    mode: str
    version: int
    partitioned: bool

    def created(self) -> str:
        """The statement that makes it."""
        columns = ", ".join(f"{c.name} {KINDS[c.kind]}" for c in self.columns)
        by = " PARTITIONED BY (g)" if self.partitioned else ""
        modes = ", ".join(f"'write.{w}.mode'='{self.mode}'" for w in ("delete", "update", "merge"))
        return (
            f"CREATE TABLE raw.{self.name} ({columns}) USING iceberg{by}"
            f" TBLPROPERTIES ('format-version'='{self.version}', {modes})"
        )


class Life:
    """The tables, queries and history that follow from one seed."""

    def __init__(self, seed: int, models: int) -> None:
        self.rng = random.Random(seed)
        #: In one life of four strings are met everywhere, and mostly compared by a collation.
        self.folds = self.rng.random() < 0.25
        self.tables = [self._table(n) for n in range(3)]
        self.today = _DAYS[1]
        columns = {f"raw.{table.name}": table.columns for table in self.tables}
        self.asked = Queries(self.rng, columns, self.folds)
        self.queries: dict[str, str] = {}
        self.views: set[str] = set()
        for number in range(models):
            self._model(f"m{number}")
        self.with_state = {
            name for name in self.queries if name not in self.views and self.rng.random() < 0.25
        }

    def _table(self, number: int) -> Table:
        rng = self.rng
        kinds = rng.sample(sorted(set(KINDS) - {"int"}), 3)
        if self.folds and "str" not in kinds:
            kinds[0] = "str"
        columns = [Column("k", "int"), Column("g", "int")]
        columns += [Column(f"c{n}", kind) for n, kind in enumerate(kinds)]
        return Table(
            f"t{number}",
            tuple(columns),
            rng.choice(_MODES),
            rng.choice([2, 2, 3]),
            rng.random() < 0.2,
        )

    def _model(self, name: str) -> None:
        """One more model; those whose columns are as plain as a table's may be read by later ones.

        Only some are views: what is compared is a table with its query.
        """
        rng, asked = self.rng, self.asked
        within = ""
        if rng.random() < 0.15:
            text, columns = asked.query(1)
            within = f"WITH w AS ({text}) "
            asked.named["w"] = columns
        make = asked.sums if rng.random() < 0.2 else asked.query
        text, columns = make(rng.choice([1, 1, 2]))
        asked.named.clear()
        if rng.random() < 0.1:
            self.views.add(name)
        elif rng.random() < 0.15:
            text = asked.first(text, columns)
        self.queries[name] = within + text
        if all(column.kind in KINDS for column in columns):
            asked.models[f"lake.dev.{name}"] = columns

    def forget(self, name: str) -> list[str]:
        """Leave a model out from now on, with all that read it; their names."""
        found = [name]
        for reader, sql in self.queries.items():
            if any(f"lake.dev.{one} " in sql for one in found):
                found.append(reader)
        for one in found:
            del self.queries[one]
        return found

    def spelled(self, name: str) -> str:
        """The query of a model with the queries of views in it, as it is on this day."""
        sql = self.now(self.queries[name])
        for view in self.views:
            if f"lake.dev.{view} " in sql:
                sql = sql.replace(f"lake.dev.{view} ", f"({self.spelled(view)}) ")
        return sql

    def now(self, sql: str) -> str:
        """A statement as it is on this day."""
        return sql.replace(TODAY, f"DATE'{self.today}'")

    # What happens

    def beginning(self) -> list[str]:
        """Tables with their first rows; one in ten has none."""
        out: list[str] = []
        for table in self.tables:
            out.append(table.created())
            if self.rng.random() < 0.9:
                out.append(self._insert(table, self.rng.randrange(5, 12)))
        return out

    def step(self) -> list[str]:
        """Commits to some of the tables."""
        rng = self.rng
        if rng.random() < 0.2:
            self.today = rng.choice(_DAYS)
        changed = rng.sample(self.tables, rng.choice([1, 2, 2, 3]))
        first = [self._change(table) for table in changed]
        return first + [self._change(rng.choice(changed)) for _ in range(rng.choice([0, 0, 1, 2]))]

    def _change(self, table: Table) -> str:
        rng, name = self.rng, f"raw.{table.name}"
        how = rng.choices(
            ["insert", "update", "delete", "merge", "compact", "rollback", "overwrite", "clear"],
            [6, 4, 4, 3, 1, 1, 1, 0.5],
        )[0]
        if how == "insert":
            return self._insert(table, rng.randrange(1, 4))
        if how == "update":
            column = rng.choice(table.columns)
            value = self._value(column.kind)
            return f"UPDATE {name} SET {column.name} = {value} WHERE {self._where(table)}"
        if how == "delete":
            return f"DELETE FROM {name} WHERE {self._where(table)}"
        if how == "merge":
            keys = rng.sample(range(7), 3)
            rows = ", ".join(f"({key}, {self._value('int')})" for key in keys)
            matched = rng.choice(["DELETE", "UPDATE SET g = s.g"])
            return (
                f"MERGE INTO {name} t USING (SELECT * FROM VALUES {rows} AS v(k, g)) s"
                f" ON t.k <=> s.k WHEN MATCHED AND s.k < 3 THEN {matched}"
                " WHEN NOT MATCHED THEN INSERT (k, g) VALUES (s.k, s.g)"
            )
        if how == "compact":
            option = "options => map('rewrite-all', 'true')"
            return f"CALL lake.system.rewrite_data_files(table => 'raw.{table.name}', {option})"
        if how == "rollback":
            return f"ROLLBACK {table.name} {rng.random()}"
        if how == "overwrite":
            return f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE NOT ({self._where(table)})"
        return f"DELETE FROM {name}"

    def _insert(self, table: Table, count: int) -> str:
        rows = [
            "(" + ", ".join(self._value(column.kind) for column in table.columns) + ")"
            for _ in range(count)
        ]
        if self.rng.random() < 0.4:
            rows.append(self.rng.choice(rows))
        return f"INSERT INTO raw.{table.name} VALUES {', '.join(rows)}"

    def _value(self, kind: str) -> str:
        if self.rng.random() < 0.15:
            return f"CAST(NULL AS {KINDS[kind]})"
        return f"CAST({self.rng.choice(VALUES[kind])} AS {KINDS[kind]})"

    def _where(self, table: Table) -> str:
        """A condition for a statement; Iceberg refuses to find files by NaN."""
        found = self.now(self.asked.predicate(table.columns))
        return found if "NaN" not in found else self._where(table)
