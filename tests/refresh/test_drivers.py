"""Which tables drive a log, and which ones it only looks things up in; which columns are dated."""

from __future__ import annotations

import pytest
from plans import plan_of

from sqb.refresh.dated import dated_columns
from sqb.refresh.drivers import lookups
from sqb.refresh.ir import Expr, scans
from sqb.refresh.script import text

#: A query, the columns that are unique, the tables that changed, and those that are lookups.
CASES = [
    ("SELECT t0.b FROM t0 JOIN t1 ON t1.a = t0.a", {"t1": "a"}, "t0 t1", "t1"),
    ("SELECT t0.b FROM t1 JOIN t0 ON t1.a = t0.a", {"t1": "a"}, "t0 t1", "t1"),
    ("SELECT t0.b FROM t0, t1 WHERE t1.a = t0.a", {"t1": "a"}, "t1", "t1"),
    ("SELECT t0.b FROM t0 JOIN t1 ON t1.a = t0.a", {}, "t0 t1", ""),
    # two columns make the key
    ("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a AND t1.b = t0.b", {"t1": "a b"}, "t1", "t1"),
    ("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a", {"t1": "a b"}, "t1", ""),
    # a chain of lookups
    (
        "SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a JOIN t2 ON t2.c = t1.b",
        {"t1": "a", "t2": "c"},
        "t0 t1 t2",
        "t1 t2",
    ),
    # the side that is preserved brings rows of its own
    ("SELECT 1 AS x FROM t1 LEFT JOIN t0 ON t1.a = t0.a", {"t1": "a"}, "t0 t1", ""),
    ("SELECT 1 AS x FROM t0 LEFT JOIN t1 ON t1.a = t0.a", {"t1": "a"}, "t0 t1", "t1"),
    ("SELECT 1 AS x FROM t0 FULL JOIN t1 ON t1.a = t0.a", {"t1": "a"}, "t0 t1", ""),
    # a table that is also read elsewhere
    (
        "SELECT t0.b FROM t0 JOIN t1 ON t1.a = t0.a UNION ALL SELECT b FROM t1",
        {"t1": "a"},
        "t0 t1",
        "",
    ),
    # what is made from many rows is no lookup
    (
        "SELECT 1 AS x FROM t0 JOIN (SELECT a, max(b) AS n FROM t1 GROUP BY a) AS s ON s.a = t0.a",
        {"t1": "a"},
        "t0 t1",
        "",
    ),
    # renamed on the way
    (
        "SELECT 1 AS x FROM t0 JOIN (SELECT a AS k, b FROM t1 WHERE b > 0) AS s ON s.k = t0.a",
        {"t1": "a"},
        "t1",
        "t1",
    ),
    ("SELECT a FROM t0 WHERE EXISTS (SELECT 1 FROM t1 WHERE t1.a = t0.a)", {"t1": "a"}, "t1", ""),
]


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(("sql", "keys", "changed", "wanted"), CASES)
def test_a_lookup_is_joined_on_a_key_that_is_unique_in_it(
    sql: str, keys: dict[str, str], changed: str, wanted: str, declared: bool
) -> None:
    known = {name: frozenset(columns.split()) for name, columns in keys.items()}

    def unique(name: str, columns: frozenset[str], *_: object) -> bool:
        return not declared and name in known and known[name] <= columns

    found = lookups(plan_of(sql).root, changed.split(), known if declared else {}, unique)
    begins = set() if declared else {scans(plan_of(sql).root)[0].source}
    assert found == frozenset(wanted.split()) - begins, "a query begins with what drives it"


@pytest.mark.parametrize(
    ("declared", "changed", "wanted"),
    [
        ("t0 t1", "t0 t1", "t1"),  # as written: the first drives
        ("t0", "t0 t1", "t0"),
        ("t1", "t0 t1", "t1"),
        ("", "t0 t1", ""),  # nobody knows: no row is left out
        ("", "t1", ""),
        ("t1", "t0", ""),
    ],
)
def test_of_tables_that_each_could_be_looked_up_in_the_declared_ones_are(
    declared: str, changed: str, wanted: str
) -> None:
    root = plan_of("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a").root
    keys = dict.fromkeys(declared.split(), frozenset("a"))
    found = lookups(root, changed.split(), keys, lambda _name, columns, *_: columns == {"a"})
    assert found == frozenset(wanted.split())


#: A query, columns that only happen to be unique, declared keys, and what is a lookup then.
BY_CHANCE = [
    # t1 has several rows for one of t0: that its own lookup is met by a unique column says nothing
    (
        "SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a JOIN t2 ON t2.c = t1.b",
        {"t1": "b", "t2": "c"},
        {},
        "t2",
    ),
    (
        "SELECT 1 AS x FROM t0 LEFT JOIN t1 ON t1.a = t0.a JOIN t2 ON t2.c = t1.b",
        {"t1": "b", "t2": "c"},
        {},
        "t2",
    ),
    # nor does it where what is between them happens to be unique
    (
        "SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a JOIN t2 ON t2.a = t1.b",
        {"t1": "b", "t2": "a"},
        {"t2": "a"},
        "t2",
    ),
    # both could be looked up in the other: all drive
    ("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a", {"t0": "a", "t1": "a"}, {}, ""),
    # groups are unique by their keys, so what meets them may only happen to be
    (
        "SELECT 1 AS x FROM t0 JOIN (SELECT a, max(b) AS m FROM t1 GROUP BY a) s ON s.a = t0.a",
        {"t0": "a"},
        {},
        "",
    ),
    (
        "SELECT 1 AS x FROM t0 JOIN (SELECT a, max(b) AS m FROM t1 GROUP BY a) s ON s.a = t0.a",
        {},
        {"t0": "a"},
        "t0",
    ),
    # one row for each of what it is joined to, so far; that has several: it could be either
    ("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a", {"t0": "a"}, {}, ""),
    # what can only be looked up in does not drive because others could be either
    (
        "SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a LEFT JOIN t2 ON t2.c = t0.b",
        {"t0": "a", "t1": "a", "t2": "c"},
        {"t0": "a", "t1": "a"},
        "t1 t2",
    ),
    (
        "SELECT 1 AS x FROM t2 RIGHT JOIN (t0 JOIN t1 ON t1.a = t0.a) ON t2.c = t0.b",
        {},
        {"t0": "a", "t1": "a", "t2": "c"},
        "t1 t2",
    ),
    # an exploded row is several
    (
        "SELECT 1 AS x FROM t0 JOIN (SELECT a, explode(b) AS y FROM t1) s ON s.a = t0.a",
        {"t1": "a"},
        {"t1": "a"},
        "",
    ),
    # a lookup of what a row is exploded to
    (
        "SELECT 1 AS x FROM (SELECT explode(b) AS y FROM t0) s JOIN t1 ON t1.a = s.y",
        {"t1": "a"},
        {},
        "t1",
    ),
]


@pytest.mark.parametrize(("sql", "chance", "keys", "wanted"), BY_CHANCE)
def test_what_only_happens_to_be_unique_is_no_lookup(
    sql: str, chance: dict[str, str], keys: dict[str, str], wanted: str
) -> None:
    declared = {name: frozenset(columns.split()) for name, columns in keys.items()}

    def unique(name: str, columns: frozenset[str], *_: object) -> bool:
        return chance.get(name) in columns

    found = lookups(plan_of(sql).root, ("t0", "t1", "t2"), declared, unique)
    assert found == frozenset(wanted.split())


def test_a_lookup_is_unique_as_the_join_compares_it() -> None:
    root = plan_of("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a <=> t0.a").root
    asked: list[frozenset[str]] = []

    def unique(name: str, _columns: frozenset[str], null_safe: frozenset[str], *_: object) -> bool:
        asked.append(null_safe)
        return name == "t1"

    assert lookups(root, ("t0", "t1"), {}, unique) == {"t1"}
    assert set(asked) == {frozenset("a")}, "NULL is a value there"
    root = plan_of("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a").root
    for mine, theirs, wanted in (("string", "int", set()), ("bigint", "int", {"t1"})):
        kinds = {"t1": mine, "t0": theirs}
        found = lookups(
            root, ("t1",), {}, unique, lambda node, _, of=kinds: of[scans(node)[0].source]
        )
        assert found == wanted, "'1' and '01' are one number"


@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a AND t1.b IS NULL", "b IS NULL"),
        ("SELECT 1 AS x FROM t0 JOIN t1 ON t1.a = t0.a WHERE t1.b IS NULL", "b IS NULL"),
        ("SELECT 1 AS x FROM t0 LEFT JOIN t1 ON t1.a = t0.a AND t1.b IS NULL", "b IS NULL"),
        ("SELECT 1 AS x FROM t0 LEFT JOIN t1 ON t1.a = t0.a AND t1.b > t0.b", ""),
        ("SELECT 1 AS x FROM t0 LEFT JOIN t1 ON t1.a = t0.a WHERE t1.b IS NULL", ""),
        (
            "SELECT 1 AS x FROM t0 JOIN (SELECT a AS k FROM t1 WHERE b IS NULL) s ON s.k = t0.a",
            "b IS NULL",
        ),
    ],
)
def test_a_lookup_is_unique_among_the_rows_that_are_met(sql: str, wanted: str) -> None:
    asked: dict[str, str] = {}

    def unique(
        name: str, _columns: frozenset[str], _nulls: frozenset[str], where: tuple[Expr, ...]
    ) -> bool:
        asked[name] = " and ".join(text(expr) for expr in where)
        return name == "t1"

    assert lookups(plan_of(sql).root, ("t0", "t1"), {}, unique) == {"t1"}
    assert asked["t1"] == wanted


DATED = [
    ("SELECT a, DATE'{}' AS d, b FROM t0", "d"),
    ("SELECT a, b FROM t0 WHERE c < DATE'{}'", ""),
    ("WITH s AS (SELECT a, DATE'{}' AS d FROM t0) SELECT a, d, a AS e, d AS f FROM s", "d f"),
    ("SELECT a, max(DATE'{}') AS d, count(*) AS n FROM t0 GROUP BY a", "d"),
    ("SELECT a, DATE'{}' AS d FROM t0 UNION ALL SELECT a, b FROM t1", "d"),
    ("SELECT a, (SELECT max(b) FROM t1 WHERE b < DATE'{}') AS m FROM t0", "m"),
    ("SELECT a, v.d FROM t0 CROSS JOIN (VALUES (DATE'{}')) AS v(d)", "d"),
]


@pytest.mark.parametrize(("sql", "wanted"), DATED)
def test_columns_that_depend_on_the_moment(sql: str, wanted: str) -> None:
    one, other = (plan_of(sql.format(day)) for day in ("2001-01-01", "2002-02-02"))
    flags = dated_columns(one.root, other.root)
    assert [n for n, dated in zip(one.names, flags, strict=True) if dated] == wanted.split()
