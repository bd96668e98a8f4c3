"""What dbt has to do: the facts of a dbt project through the planning core, in dbt's words.

Pure: the same facts give the same plan. What is decided how is the core's; here stands only what
is true of dbt: a reader of what runs always runs, tests guard what is below them, and a view can't
become a table by itself.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from sqb.dbt.expect import expect, graph_of, recorded_as
from sqb.dbt.nodes import TESTS, DbtNode
from sqb.dbt.owed import barred_below, ground, plan_tests, unit_tests_alone, wanted_models
from sqb.dbt.plan import MODELS, DbtPlan
from sqb.dbt.settings import DbtSettings
from sqb.dbt.watch import sight, watch
from sqb.dbt.words import drop_view, planned_nodes, stale_above
from sqb.errors import SqbError
from sqb.freshness.sighting import Sighting
from sqb.lake.metadata import TableFacts
from sqb.planning import coherence
from sqb.planning.cascade import Verdict, cascade
from sqb.planning.freshness import freshness_warnings
from sqb.planning.plan import Cause
from sqb.planning.situation import Situation
from sqb.state.record import Record

#: Materializations that dbt-spark can't make where an Iceberg view has the name.
_NO_VIEWS = frozenset({"table", "incremental", "snapshot", "seed"})


class Seen(msgspec.Struct, frozen=True):
    """A dbt project at one moment.

    ``nodes`` are all, parents first; ``rows`` the newest state row of each; ``relations`` what
    stands where the nodes build, ``sightings`` the sources. A relation that only dbt can describe
    has facts without a ``uuid``.
    """

    target: str
    nodes: Mapping[str, DbtNode]
    rows: Mapping[str, Record]
    relations: Mapping[str, TableFacts]
    sightings: Mapping[str, Sighting]


class Wish(msgspec.Struct, frozen=True):
    """What the user asked for.

    ``selected`` are the unique ids that dbt gives for the selection, ``selector`` its arguments.
    ``defer``: what is missing may be read elsewhere. ``force``: what is current runs too.
    """

    selected: tuple[str, ...]
    command: str = "build"
    selector: str = ""
    full_refresh: bool = False
    defer: bool = False
    force: bool = False


def decide(seen: Seen, wish: Wish, settings: DbtSettings) -> DbtPlan:
    """The plan; raises if the selection reads what was never built."""
    mode, nodes = settings.identity, seen.nodes
    situation, verdicts = judge(seen, wish, settings)
    if not wish.defer:
        _refuse_missing(situation, verdicts, wish)
    flag = wish.full_refresh or (
        settings.replay_on_change == "full"
        and any(v.runs and situation.expected[n].type in MODELS for n, v in verdicts.items())
    )
    planned = planned_nodes(situation, verdicts, nodes, mode, full_refresh=flag)
    on = ground(seen.rows, seen.relations, situation.sources)
    by_name = {node.name: node for node in planned}
    tests = plan_tests(nodes, _tested(wish), by_name, seen.rows, on, mode)
    in_the_way = _in_the_way(seen)
    return DbtPlan(
        target=seen.target,
        nodes=planned,
        tests=tests,
        warnings=(
            *stale_above(situation, verdicts, nodes, defer=wish.defer),
            *freshness_warnings(situation, verdicts),
            *unit_tests_alone(tests),
        ),
        resources=sum(1 for name in wish.selected if _takes(wish, nodes.get(name))),
        selector=wish.selector,
        full_refresh=flag,
        drop_views={
            node.name: drop_view(nodes[node.name])
            for node in planned
            if node.action == "run" and node.name in in_the_way
        },
    )


def judge(seen: Seen, wish: Wish, settings: DbtSettings) -> tuple[Situation, dict[str, Verdict]]:
    """The core's verdict on every node, with what tests want and hold back."""
    mode = settings.identity
    situation = situation_of(seen, wish, settings)
    on = ground(seen.rows, seen.relations, situation.sources)
    every_test = [node for node in seen.nodes.values() if node.type in TESTS]
    tested = _tested(wish)
    chosen = [test for test in every_test if test.unique_id in tested]
    wanted = wanted_models(chosen, seen.rows, on, mode)
    situation = msgspec.structs.replace(situation, wanted=wanted)
    verdicts = cascade(situation)
    # a test that runs now, or whose model does, is for dbt to heed
    others = [
        test
        for test in every_test
        if test.unique_id not in tested and not _any_runs(test, verdicts)
    ]
    barred = barred_below(others, seen.rows, on, mode, situation.graph)
    if barred:
        situation = msgspec.structs.replace(situation, barred={**barred, **situation.barred})
        verdicts = cascade(situation)
    return situation, verdicts


def situation_of(seen: Seen, wish: Wish, settings: DbtSettings) -> Situation:
    """The project as the planning core takes it."""
    mode = settings.identity
    expected = expect(seen.nodes.values(), mode)
    sightings = {
        name: seen.sightings.get(name) or sight(watch(node), None, None, 0)
        for name, node in seen.nodes.items()
        if node.type == "source"
    }
    in_the_way = () if settings.replace_views else _in_the_way(seen)
    return Situation(
        target=seen.target,
        graph=graph_of(seen.nodes),
        expected=expected,
        recorded={n: recorded_as(seen.rows[n], mode) for n in expected if n in seen.rows},
        known=frozenset(n for n in expected if n in seen.rows),
        relations=seen.relations,
        sources={n: s.state for n, s in sightings.items() if s.state is not None},
        selected=frozenset(
            n for n in wish.selected if n in expected and _takes(wish, seen.nodes[n])
        ),
        constants={},
        force=wish.force,
        full_refresh=wish.full_refresh,
        sightings=sightings,
        eager=True,
        # the plain rule takes a table that dbt made by hand for what it is
        overlook_writes=mode == "checksum",
        barred={name: Cause(name, "view_in_the_way") for name in in_the_way},
    )


def _refuse_missing(situation: Situation, verdicts: Mapping[str, Verdict], wish: Wish) -> None:
    try:
        coherence.check(situation, verdicts)
    except SqbError as error:
        if wish.command == "run":
            error.help = f"{error.help}; seeds and snapshots are made by `sqb dbt build`"
        raise


def _takes(wish: Wish, node: DbtNode | None) -> bool:
    """Does the command handle a node at all? ``dbt run`` is for models alone."""
    return wish.command == "build" or (node is not None and node.type == "model")


def _tested(wish: Wish) -> frozenset[str]:
    return frozenset(wish.selected) if wish.command == "build" else frozenset()


def _in_the_way(seen: Seen) -> frozenset[str]:
    """Nodes at whose place a view stands that dbt does not see."""
    return frozenset(
        name
        for name, facts in seen.relations.items()
        if facts.kind == "view" and facts.uuid
        if name in seen.nodes and seen.nodes[name].materialized in _NO_VIEWS
    )


def _any_runs(test: DbtNode, verdicts: Mapping[str, Verdict]) -> bool:
    return any(parent in verdicts and verdicts[parent].runs for parent in test.parents)
