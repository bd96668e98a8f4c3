"""The sources of a dbt project as ``freshness`` sees them: what moved, how old it is.

Change is told by the snapshot of an Iceberg table, which is exact and free. Age is told by
``loaded_at_field`` or ``loaded_at_query`` where one is declared, else by the time of the last
commit. Where a source has no snapshots, the same value tells both.
"""

from __future__ import annotations

import re

import msgspec

from sqb.dbt.nodes import DbtNode
from sqb.errors import SqbError
from sqb.freshness.age import age_of
from sqb.freshness.sighting import Sighting
from sqb.freshness.values import Answer, Probe, moment_us
from sqb.hashing import digest
from sqb.identity.data_id import UNKNOWN, InputState, source_data, value_data
from sqb.lake.metadata import TableFacts
from sqb.project.source_specs import AgePolicy, Freshness

_PERIODS = {"minute": 60, "hour": 3_600, "day": 86_400}
_NAME = re.compile(r"[A-Za-z_]\w*")
_THIS = re.compile(r"\{\{\s*this\s*\}\}")
_MILLISECOND = 1000


class Watch(msgspec.Struct, frozen=True):
    """How one source is looked at. ``why``: what is declared, but can't be asked."""

    name: str
    place: tuple[str, str]
    freshness: Freshness
    probe: Probe | None = None
    why: str = ""

    @property
    def question(self) -> str:
        """What its value is the answer to."""
        return digest(self.probe.kind, self.probe.sql) if self.probe is not None else ""


def watch(node: DbtNode) -> Watch:
    """A source of the manifest in the words of ``freshness``.

    >>> from sqb.dbt.nodes import Freshness as Declared
    >>> declared = Declared(loaded_at_field="loaded_at", error_after=(2, "hour"))
    >>> found = watch(DbtNode("source.a.raw.t", "raw.t", "source", "a", "m.yml", schema="raw",
    ...     alias="t", relation_name="raw.t", freshness=declared))
    >>> found.freshness.strategy, found.freshness.age_policy.error_after, found.probe.sql
    ('column', 7200, 'SELECT max(loaded_at) FROM raw.t')
    """
    place = node.schema, node.alias
    declared = node.freshness
    if declared is None:
        return Watch(node.unique_id, place, Freshness())
    policy = None
    if declared.warn_after or declared.error_after:
        policy = AgePolicy(
            _seconds(node, "warn_after", declared.warn_after),
            _seconds(node, "error_after", declared.error_after),
        )
    relation = node.relation_name or ".".join(place)
    field, query = declared.loaded_at_field, declared.loaded_at_query
    if query:
        sql = _THIS.sub(lambda _: relation, query).strip().rstrip(";")
        freshness = Freshness("sql", "timestamp", query=sql, age_policy=policy)
        if "{{" in sql or "{%" in sql:
            why = "its loaded_at_query has Jinja, which only dbt can render"
            return Watch(node.unique_id, place, freshness, why=why)
        return Watch(node.unique_id, place, freshness, Probe(sql, "timestamp"))
    if field:
        where = f" WHERE {declared.filter}" if declared.filter else ""
        sql = f"SELECT max({field}) FROM {relation}{where}"
        if _NAME.fullmatch(field):
            freshness = Freshness(
                "column", "timestamp", field, filter=declared.filter, age_policy=policy
            )
        else:
            freshness = Freshness("sql", "timestamp", query=sql, age_policy=policy)
        return Watch(node.unique_id, place, freshness, Probe(sql, "timestamp"))
    return Watch(node.unique_id, place, Freshness(age_policy=policy))


def needs_value(watch: Watch, facts: TableFacts | None) -> bool:
    """Does someone have to be asked for a value: for an age, or because there is no snapshot?"""
    if watch.probe is None:
        return False
    return watch.freshness.age_policy is not None or not has_versions(facts)


def has_versions(facts: TableFacts | None) -> bool:
    """Does a relation tell by itself when its rows changed?"""
    return facts is not None and facts.kind == "table" and bool(facts.uuid)


def sight(watch: Watch, facts: TableFacts | None, answer: Answer | None, now_us: int) -> Sighting:
    """One source now; ``facts`` None: no table of the lake, ``answer`` None: nobody was asked.

    A source that can't be seen is unknown, not missing: dbt may reach what sqb does not.
    """
    policy, place = watch.freshness.age_policy, ".".join(watch.place)
    value = answer.value if answer is not None else None
    moment = moment_us(value) if value is not None else None
    if facts is not None and has_versions(facts):
        if watch.freshness.strategy == "adapter" and facts.data_timestamp_ms is not None:
            moment = facts.data_timestamp_ms * _MILLISECOND
        data = source_data(facts.uuid, facts.shape, facts.data_snapshot_id)
        state = InputState(data, facts.shape, place=place)
        told = watch.why or (answer.why if answer is not None else "")
        age = age_of(moment, now_us, policy)
        return Sighting(watch.name, "adapter", "snapshot", "pinned", state, data, told, age=age)
    if value is not None:
        data = value_data(watch.question, "", "timestamp", value)
        state = InputState(data, "", place=place)
        age = age_of(moment, now_us, policy)
        strategy = watch.freshness.strategy
        return Sighting(
            watch.name, strategy, "timestamp", "observed", state, value, age=age, watched=True
        )
    return Sighting(
        watch.name,
        watch.freshness.strategy,
        "snapshot",
        "unknown",
        InputState(UNKNOWN, "", place=place),
        why=_unseen(watch, facts, answer),
        age=age_of(None, now_us, policy),
        watched=True,
    )


def _unseen(watch: Watch, facts: TableFacts | None, answer: Answer | None) -> str:
    what = "the catalog shows no Iceberg table of its name"
    if facts is not None and facts.kind == "view":
        what = "it is a view"
    told = watch.why or (answer.why if answer is not None else "")
    return f"{what}, and {told or 'no loaded_at_field or loaded_at_query says how fresh it is'}"


def _seconds(node: DbtNode, key: str, threshold: tuple[int, str] | None) -> int | None:
    if threshold is None:
        return None
    number, period = threshold
    if period not in _PERIODS:
        raise SqbError(
            "B008",
            f"`{key}` of source `{node.name}` has the period `{period}`",
            file=node.path,
            help="a period is minute, hour or day",
        )
    return number * _PERIODS[period]
