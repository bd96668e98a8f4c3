"""The sources of a dbt project now: their snapshots, and values that are asked for when needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from sqb.dbt.nodes import DbtNode
from sqb.dbt.warehouse import Asking
from sqb.dbt.watch import Watch, has_versions, needs_value, sight, watch
from sqb.freshness.cache import ValueCache
from sqb.freshness.sighting import Sighting
from sqb.freshness.values import Answer, evaluate
from sqb.hashing import digest
from sqb.lake.metadata import TableFacts


def sight_all(
    nodes: Mapping[str, DbtNode],
    wanted: Collection[str],
    facts: Mapping[str, TableFacts],
    cache: Path,
    now_us: int,
    asking: Callable[[], Asking],
    tell: Callable[[Exception], str],
    say: Callable[[str], None],
) -> dict[str, Sighting]:
    """Every source; values are asked for of ``wanted`` ones alone.

    A value stands while the snapshot that it was read from does, so it is asked for once.
    """
    watches = {name: watch(node) for name, node in nodes.items() if node.type == "source"}
    known = ValueCache(cache)
    answers: dict[str, Answer] = {}
    missing: dict[str, Watch] = {}
    for name, found in watches.items():
        if name not in wanted or not needs_value(found, facts.get(name)):
            continue
        key = _key(found, facts.get(name))
        kept = known.get(key) if key is not None else None
        if kept is not None:
            answers[name] = Answer(*kept)
        else:
            missing[name] = found
    if missing:
        probes = {name: w.probe for name, w in missing.items() if w.probe is not None}
        names = ", ".join(nodes[name].name for name in probes)
        say(f"asking Spark how fresh these are: {names}")
        asked = evaluate(probes, lambda sql: asking().rows(sql), tell)
        for name, answer in asked.items():
            key = _key(missing[name], facts.get(name))
            if key is not None and answer.lasting:
                known.add(key, answer.value, answer.why)
        known.save()
        answers |= asked
    return {
        name: sight(found, facts.get(name), answers.get(name), now_us)
        for name, found in watches.items()
    }


def _key(watched: Watch, facts: TableFacts | None) -> str | None:
    """What a value is the value of; None where that can't be told."""
    if facts is None or not has_versions(facts):
        return None
    return digest(watched.question, facts.uuid, facts.shape, str(facts.data_snapshot_id))
