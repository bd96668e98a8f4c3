"""One round of the algebra's test: a random plan or query, random tables, a random change."""

from __future__ import annotations

import random
from collections import Counter

import duckdb
import msgspec
from plans import (
    TABLES,
    Data,
    Judge,
    Plans,
    checked,
    checked_strategies,
    first_of,
    names,
    relation,
)
from sql_text import Queries

from sqb.refresh.block import Plan
from sqb.refresh.build import TableRef, build
from sqb.refresh.ir import Top, output
from sqb.refresh.scalars import bound, singles
from sqb.refresh.script import Script, Version
from sqb.sql.fragments import Unsupported
from sqb.sql.structure import structure
from sqb.sql.tokens import split


def plan_round(db: duckdb.DuckDBPyConnection, seed: int) -> Counter[str]:
    """A random plan: its changed keys and its exact change are those of a full evaluation."""
    rng = random.Random(seed)
    plan, data = Plans(rng).plan(rng.randrange(1, 4)), Data(rng)
    try:
        return checked(db, plan, data, rng)
    except AssertionError as error:
        raise AssertionError(f"plan {seed}") from error


def query_round(db: duckdb.DuckDBPyConnection, seed: int) -> Counter[str]:
    """A random query: its plan gives its rows, and every strategy leads to them."""
    rng = random.Random(f"query {seed}")
    sql, data = Queries(rng).query(), Data(rng)
    try:
        return checked_query(db, sql, data, rng)
    except AssertionError as error:
        raise AssertionError(f"query {seed}: {sql}") from error


def average_round(db: duckdb.DuckDBPyConnection, seed: int) -> Counter[str]:
    """Averages beside their sums and counts, as groups that are kept for a query have them."""
    rng = random.Random(f"average {seed}")
    rows, names = rng.choice(
        [
            ("t0 x", ["x.a", "x.b", "x.c"]),
            ("t0 x WHERE x.c > 1", ["x.a", "x.b"]),
            ("t0 x JOIN t1 y ON x.a = y.a", ["x.b", "y.b", "x.c"]),
            ("t1 y LEFT JOIN t2 z ON y.b = z.b", ["y.a", "y.b", "z.a"]),
        ]
    )
    value = rng.choice(["{0}", "{0} + {1}", "CASE WHEN {0} > 1 THEN {1} END", "abs({0})"])
    value = value.format(rng.choice(names), rng.choice(names))
    keys = rng.sample(names, rng.choice([0, 1, 1, 2]))
    listed = [f"{key} AS k{n}" for n, key in enumerate(keys)]
    sql = f"SELECT {', '.join([*listed, averaged(value)])} FROM {rows}"
    sql += f" GROUP BY {', '.join(keys)}" if keys else ""
    db.execute(TRY_SUM)
    try:
        return checked_query(db, sql, Data(rng), rng)
    except AssertionError as error:
        raise AssertionError(f"average {seed}: {sql}") from error


#: DuckDB has none, and its sums of small numbers do not overflow.
TRY_SUM = "CREATE OR REPLACE TEMP MACRO try_sum(x) AS SUM(x)"


def averaged(value: str) -> str:
    """What groups hold where a query averages a value."""
    test = f"CAST(({value}) AS DOUBLE) NOT BETWEEN -{1 << 52} AND {1 << 52}"
    return (
        f"COUNT(*) AS n, AVG({value}) AS m, COUNT({value}) AS c,"
        f" COUNT(CASE WHEN {test} THEN 1 END) AS l, TRY_SUM({value}) AS s"
    )


def checked_query(
    db: duckdb.DuckDBPyConnection, sql: str, data: Data, rng: random.Random
) -> Counter[str]:
    """A query that both dialects read: text against plan, then every way to refresh it."""
    places: list[int] = []

    def lookup(start: int) -> TableRef | None:
        name = sql[start : start + 2].lower()
        if name not in TABLES:
            return None
        places.append(start)
        return TableRef(name, TABLES[name])

    try:
        plan = build(sql, structure(split(sql)), lookup)
    except Unsupported as found:
        return Counter({f"refused: {found.what[:24]}": 1})
    data.load(db)
    script = Script(relation, str)
    judge = Judge(db, script)
    shown = names(plan.root)
    versions: tuple[Version, ...] = ("old", "new")
    for version in versions:
        try:
            text = Counter(db.execute(_at(sql, places, version)).fetchall())
        except duckdb.BinderException:
            return Counter({"not a query": 1})
        found = judge.rows(script.state(plan.root, version), shown)
        if isinstance(plan.root, Top) and first_of(judge, plan.root, version) is None:
            assert sum(found.values()) == sum(text.values()), version
        else:
            assert found == text, version
    fixed = _fixed(judge, script, plan)
    done = checked_strategies(db, plan, data, rng)
    if rng.random() < 0.3 and not isinstance(plan.root, Top):
        done += checked(db, plan.root, data, rng)
    if fixed is not None:
        done += checked_strategies(db, fixed, data, rng)
        done["bound"] += 1
    return done


def _at(sql: str, places: list[int], version: str) -> str:
    """The query with its tables as they are at a version."""
    for start in sorted(set(places), reverse=True):
        sql = f"{sql[:start]}{version}_{sql[start:]}"
    return sql


def _fixed(judge: Judge, script: Script, plan: Plan) -> Plan | None:
    """The plan with those sub-queries bound whose value is what it was; None: there are none."""
    values = {}
    for single in singles(plan.root):
        name = output(single)[0].name
        old, new = (judge.rows(script.state(single, v), name) for v in ("old", "new"))
        if old == new:
            ((value,),) = new
            values[single.column] = "CAST(NULL AS BIGINT)" if value is None else f"{value}"
    return msgspec.structs.replace(plan, root=bound(plan.root, values)) if values else None
