"""Planted mistakes: each breaks one rule of the algebra, and random plans must find it."""

from __future__ import annotations

import random
from collections.abc import Callable

import duckdb
import pytest
from plans import Data, Plans, checked

from sqb.refresh import delta, derive, restrict, script
from sqb.refresh.derive import Derivation
from sqb.refresh.ir import Equality, Join, Node, SetOperation
from sqb.refresh.script import WEIGHT

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
    patch.setattr(derive, "partitioned", lambda node, exprs: not _made(node, exprs))
    patch.setattr(restrict, "partitioned", lambda node, exprs: not _made(node, exprs))


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


#: Each with the seed that found it first; should plans be made otherwise, another one will.
MUTANTS: list[tuple[Callable[[Patch], None], int]] = [
    (changed_pairs_are_forgotten, 362),
    (old_images_are_ignored, 1),
    (the_other_side_is_not_looked_at, 21),
    (both_sides_are_joined_new, 21),
    (windows_are_cut_anywhere, 42),
    (null_is_no_key, 4),
    (any_expression_is_a_full_joins_key, 88),
    (the_right_branch_of_a_set_operation_is_forgotten, 26),
    (an_unmatched_condition_is_dropped_from_restricted_rows, 21),
    (signs_are_lost_in_a_sum, 3),
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
