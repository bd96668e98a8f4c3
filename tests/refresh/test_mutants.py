"""Planted mistakes: each breaks one rule, and random plans or small queries must find it."""

from __future__ import annotations

import random
from collections.abc import Callable

import duckdb
import msgspec
import pytest
from plans import Data, Plans, checked
from rounds import TRY_SUM, averaged, checked_query

from sqb.refresh import (
    delta,
    derive,
    restrict,
    script,
    selects,
    signed,
    strategies,
    subqueries,
)
from sqb.refresh.derive import Derivation
from sqb.refresh.ir import Equality, Join, Node, SetOperation, column
from sqb.refresh.script import WEIGHT, Script
from sqb.sql import places
from sqb.sql.conditions import Conditions
from sqb.sql.structure import _Reader as Reader

Patch = pytest.MonkeyPatch


def changed_pairs_are_forgotten(patch: Patch) -> None:
    whole = Derivation._pairs

    def pairs(self, node, exprs, left, right):  # type: ignore[no-untyped-def]
        if left and right:
            found = whole(self, node, exprs, left, right)
            return self.script.add("keys", f"SELECT * FROM {found} WHERE FALSE", [found])
        return whole(self, node, exprs, left, right)

    patch.setattr(Derivation, "_pairs", pairs)


def old_images_are_ignored(patch: Patch) -> None:
    whole = Derivation._distinct

    def distinct(self, exprs, relation):  # type: ignore[no-untyped-def]
        only = self.script.add("change", f"SELECT * FROM {relation} WHERE {WEIGHT} > 0", [relation])
        return whole(self, exprs, only)

    patch.setattr(Derivation, "_distinct", distinct)


def the_other_side_is_not_looked_at(patch: Patch) -> None:
    def one_sided(self, node: Join, exprs, exact, *, left):  # type: ignore[no-untyped-def]
        found = self.keys(node.left if left else node.right, exprs, exact=exact)
        items = ", ".join(f"NULL AS k{i}" for i in range(len(exprs)))
        return found or self.script.add("keys", f"SELECT {items} WHERE FALSE")

    patch.setattr(Derivation, "_one_sided", one_sided)


def both_sides_are_joined_new(patch: Patch) -> None:
    def join_delta(known, node: Join):  # type: ignore[no-untyped-def]
        left, right = known.delta(node.left), known.delta(node.right)
        parts = []
        if left:
            parts.append(delta.joined(known, node, left, known.script.state(node.right, "new")))
        if right:
            parts.append(delta.joined(known, node, known.script.state(node.left, "new"), right))
        return delta._all(known, node, parts)

    patch.setattr(delta, "join_delta", join_delta)


def windows_are_cut_anywhere(patch: Patch) -> None:
    patch.setattr(derive, "partitioned", lambda node, exprs, _: not _made(node, exprs))
    patch.setattr(restrict, "partitioned", lambda node, exprs, _: not _made(node, exprs))


def _made(node, exprs) -> bool:  # type: ignore[no-untyped-def]
    made = {item.column for item in node.items}
    return any(expr.columns & made for expr in exprs)


def null_is_no_key(patch: Patch) -> None:
    def member(exprs, keys: str) -> str:  # type: ignore[no-untyped-def]
        same = " AND ".join(f"{keys}.k{i} = ({script.text(e)})" for i, e in enumerate(exprs))
        return f"EXISTS (SELECT 1 FROM {keys} WHERE {same})"

    patch.setattr(script, "member", member)


def any_expression_is_a_full_joins_key(patch: Patch) -> None:
    def every(node: Join) -> list[Equality]:
        return list(node.equalities)

    patch.setattr(derive, "plain_equalities", every)
    patch.setattr(restrict, "plain_equalities", every)


def the_right_branch_of_a_set_operation_is_forgotten(patch: Patch) -> None:
    whole = Derivation.by_rule

    def by_rule(self, node: Node, exprs, exact):  # type: ignore[no-untyped-def]
        if isinstance(node, SetOperation) and self.moves(node.left):
            left, _ = derive.positions(node)
            return self.keys(node.left, derive.through(exprs, left), exact=exact)
        return whole(self, node, exprs, exact)

    patch.setattr(Derivation, "by_rule", by_rule)


def an_unmatched_condition_is_dropped_from_restricted_rows(patch: Patch) -> None:
    whole = restrict._follow

    def follow(target, node: Join, left: str, version):  # type: ignore[no-untyped-def]
        fewer = Join(node.kind, node.left, node.right, node.equalities[:1], node.residual)
        rows = whole(target, fewer, left, version)
        return target.add("rows", f"SELECT DISTINCT * FROM {rows}", [rows])

    patch.setattr(restrict, "_follow", follow)


def signs_are_lost_in_a_sum(patch: Patch) -> None:
    whole = delta.difference

    def difference(known, node: Node) -> str:  # type: ignore[no-untyped-def]
        made = whole(known, node)
        step = known.script.steps[made]
        sql = step.sql.replace("-1 AS", "1 AS")
        known.script.steps[made] = type(step)(made, step.kind, sql, step.reads)
        return made

    patch.setattr(delta, "difference", difference)


def the_value_of_a_sub_query_is_never_another(patch: Patch) -> None:
    patch.setattr(
        delta,
        "one_row",
        lambda known, node: known.script.add(
            "change",
            f"SELECT *, 1 AS {WEIGHT} FROM {known.script.state(node, 'new')} WHERE FALSE",
            [known.script.state(node, "new")],
        ),
    )


def a_moved_column_is_not_computed_again(patch: Patch) -> None:
    patch.setattr(delta, "otherwise", lambda _: "FALSE")
    patch.setattr(derive, "otherwise", lambda _: "FALSE")


#: Each with the seed that found it first; should plans be made otherwise, another one will.
MUTANTS: list[tuple[Callable[[Patch], None], int]] = [
    (changed_pairs_are_forgotten, 362),
    (old_images_are_ignored, 1),
    (the_other_side_is_not_looked_at, 21),
    (both_sides_are_joined_new, 21),
    (windows_are_cut_anywhere, 42),
    (null_is_no_key, 4),
    (any_expression_is_a_full_joins_key, 81),
    (the_right_branch_of_a_set_operation_is_forgotten, 26),
    (an_unmatched_condition_is_dropped_from_restricted_rows, 21),
    (signs_are_lost_in_a_sum, 3),
    (the_value_of_a_sub_query_is_never_another, 169),
    (a_moved_column_is_not_computed_again, 85),
]


@pytest.mark.parametrize(("mutant", "first"), MUTANTS, ids=[m.__name__ for m, _ in MUTANTS])
def test_a_planted_mistake_is_found(
    mutant: Callable[[Patch], None], first: int, monkeypatch: Patch
) -> None:
    mutant(monkeypatch)
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        for seed in (first, *range(600)):
            rng = random.Random(seed)
            plan, data = Plans(rng).plan(rng.randrange(1, 4)), Data(rng)
            try:
                checked(db, plan, data, rng)
            except AssertionError:
                return
    pytest.fail("not found")


def null_is_no_member(patch: Patch) -> None:
    def plain(_, node, inside, pairs):  # type: ignore[no-untyped-def]
        tied = inside.tied
        for mine, theirs in pairs:
            tied = subqueries._same(tied, mine, theirs, node, inside.node)
        return [(inside.node, tied)]

    patch.setattr(subqueries, "_not_in_joins", plain)


def nothing_comes_of_no_rows(patch: Patch) -> None:
    def within(node, exprs, _):  # type: ignore[no-untyped-def]
        return all(expr.columns <= {col for col, _ in node.keys} for expr in exprs)

    patch.setattr(restrict, "grouped", within)


def a_mark_is_a_match(patch: Patch) -> None:
    whole = script._join

    def join(node: Join, children, carried):  # type: ignore[no-untyped-def]
        if node.mark is None:
            return whole(node, children, carried)
        kept = msgspec.structs.replace(node, kind="semi", mark=None)
        return whole(kept, children, carried).replace(
            " FROM", f", TRUE AS {node.mark.name} FROM", 1
        )

    patch.setattr(script, "_join", join)


def the_count_of_nothing_is_null(patch: Patch) -> None:
    patch.setattr(subqueries, "_of_nothing", lambda _, col: column(col))


def a_key_is_found_inside_other_words(patch: Patch) -> None:
    patch.setattr(places, "_closed", lambda _: True)


def what_one_alternative_asks_for_holds(patch: Patch) -> None:
    whole = Conditions._in_all

    def in_all(self):  # type: ignore[no-untyped-def]
        self.stop = next(i for i in range(self.at, self.stop) if self.tokens.raws[i] == "OR")
        return whole(self)

    patch.setattr(Conditions, "_in_all", in_all)


def a_sum_of_nothing_is_zero(patch: Patch) -> None:
    patch.setattr(signed, "_has_values", lambda *_: {})


def a_group_that_is_left_out_keeps_its_value(patch: Patch) -> None:
    whole = selects._aggregate

    def aggregate(block, child, below, groups, _, *more, **sets):  # type: ignore[no-untyped-def]
        return whole(block, child, below, groups, range(len(groups)), *more, **sets)

    patch.setattr(selects, "_aggregate", aggregate)


def sub_queries_in_parentheses_are_taken_for_true(patch: Patch) -> None:
    whole = Conditions._turned

    def turned(self):  # type: ignore[no-untyped-def]
        found = whole(self)
        return found and type(found)(query=found.query, values=found.values)

    patch.setattr(Conditions, "_turned", turned)


def rows_that_tie_are_not_looked_for(patch: Patch) -> None:
    patch.setattr(strategies, "ties", lambda *_: False)


def a_full_table_holds_all_rows(patch: Patch) -> None:
    whole = signed.first_rows_change

    def first_rows(*arguments):  # type: ignore[no-untyped-def]
        found = whole(*arguments)
        return type(found)(found.change, found.unless[:1])

    patch.setattr(signed, "first_rows_change", first_rows)


def a_table_of_first_rows_takes_whatever_comes(patch: Patch) -> None:
    whole = Script.add

    def add(self, kind, sql, *more):  # type: ignore[no-untyped-def]
        return whole(self, kind, sql.replace("sqb_e IS NULL OR sqb_r <= sqb_e", "TRUE"), *more)

    patch.setattr(Script, "add", add)


def null_is_last_in_every_order(patch: Patch) -> None:
    whole = Reader._sorted
    patch.setattr(
        Reader, "_sorted", lambda self: msgspec.structs.replace(whole(self), nulls_first=False)
    )


def a_group_keeps_its_average(patch: Patch) -> None:
    patch.setattr(signed, "average", lambda total, count, _: f"{total} / {count} * 0")


FIRST = "SELECT x.a, x.b FROM t0 x ORDER BY a ASC NULLS FIRST, b ASC NULLS FIRST"
QUERY_MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (null_is_no_member, "SELECT x.a FROM t0 x WHERE x.a NOT IN (SELECT y.b FROM t1 y)"),
    (null_is_no_member, "SELECT x.a FROM t0 x WHERE x.b = 1 OR x.a NOT IN (SELECT y.b FROM t1 y)"),
    (
        a_mark_is_a_match,
        "SELECT x.a, EXISTS (SELECT 1 FROM t1 y WHERE y.a = x.a AND y.b > x.b) AS m FROM t0 x",
    ),
    (
        the_count_of_nothing_is_null,
        "SELECT x.a, (SELECT COUNT(*) FROM t1 y WHERE y.a = x.a) AS n FROM t0 x",
    ),
    (
        a_key_is_found_inside_other_words,
        "SELECT 2 * x.a + x.b AS k, x.a AS o FROM t0 x GROUP BY x.a + x.b, x.a, x.b",
    ),
    (
        what_one_alternative_asks_for_holds,
        "SELECT x.a FROM t0 x, t1 y WHERE (x.a = y.a AND x.b > 1) OR (x.b = y.b AND y.a < 3)",
    ),
    (a_sum_of_nothing_is_zero, "SELECT SUM(x.b) AS s FROM t0 x WHERE x.a > 2"),
    (
        a_group_that_is_left_out_keeps_its_value,
        "SELECT x.a, x.b, COUNT(*) AS n FROM t0 x GROUP BY GROUPING SETS ((x.a, x.b), (x.a))",
    ),
    (
        sub_queries_in_parentheses_are_taken_for_true,
        "SELECT x.a FROM t0 x WHERE NOT (EXISTS (SELECT 1 FROM t1 y WHERE y.a = x.a))",
    ),
    (
        rows_that_tie_are_not_looked_for,
        "SELECT x.a > 1 AS p, x.b FROM t0 x ORDER BY p DESC NULLS LAST LIMIT 2",
    ),
    (
        a_group_keeps_its_average,
        f"SELECT x.a, {averaged('x.b')} FROM t0 x GROUP BY x.a",
    ),
    (
        nothing_comes_of_no_rows,
        "SELECT 3 AS k, s.n, y.b FROM (SELECT COUNT(*) AS n FROM t2 z) s LEFT JOIN t1 y ON y.a = n",
    ),
    (a_full_table_holds_all_rows, f"{FIRST} LIMIT 2"),
    (a_table_of_first_rows_takes_whatever_comes, f"{FIRST} LIMIT 4"),
    (null_is_last_in_every_order, f"{FIRST} LIMIT 1"),
]


@pytest.mark.parametrize(
    ("mutant", "sql"), QUERY_MUTANTS, ids=[mutant.__name__ for mutant, _ in QUERY_MUTANTS]
)
def test_a_planted_misreading_is_found(
    mutant: Callable[[Patch], None], sql: str, monkeypatch: Patch
) -> None:
    with duckdb.connect(":memory:", config={"threads": 1}) as db:
        db.execute(TRY_SUM)
        for seed in range(4):
            rng = random.Random(seed)
            assert checked_query(db, sql, Data(rng), rng)
        mutant(monkeypatch)
        for seed in range(60):
            rng = random.Random(seed)
            try:
                checked_query(db, sql, Data(rng), rng)
            except AssertionError:
                return
    pytest.fail("not found")
