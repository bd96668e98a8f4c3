"""Values that freshness strategies ask for: from records, from the cache, or from Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from sqb.execution.sources import SourceLook
from sqb.freshness.cache import ValueCache
from sqb.freshness.sighting import Sighting
from sqb.freshness.values import Answer
from sqb.hashing import digest
from sqb.identity.data_id import observed_value, value_data
from sqb.state.record import Record


def standing_values(
    look: SourceLook,
    names: Iterable[str],
    session: str,
    recorded: Iterable[Record],
    cache: ValueCache,
) -> tuple[dict[str, Answer], list[str]]:
    """The values that still stand, and the sources whose value has to be asked for."""
    found: dict[str, Answer] = {}
    missing: list[str] = []
    records: list[Record] | None = None
    for name in names:
        if name not in look.compiled.probes or look.physical(name).data is None:
            continue
        at = look.version_read(name)
        known = cache.get(value_key(look, name, session)) if at else None
        if known is not None:
            found[name] = Answer(*known)
            continue
        if at:
            records = list(recorded) if records is None else records
            value = _consumed_value(look, name, session, at, records)
            if value is not None:
                found[name] = Answer(value)
                continue
        missing.append(name)
    return found, missing


def value_key(look: SourceLook, name: str, session: str) -> str:
    """The key of a value in the cache."""
    return digest(look.spec_of(name, session), look.version_read(name))


def _consumed_value(
    look: SourceLook, name: str, session: str, at: str, records: Iterable[Record]
) -> str | None:
    """The value that a reader consumed when it was read from the very versions of now."""
    for record in records:
        if record.seen.get(name) != at:
            continue
        data = record.read().get(name, "")
        value = observed_value(data)
        columns = look.physical(name).declared
        if value is not None and data == value_data(look.spec_of(name, session), columns, *value):
            return value[1]
    return None


#: Starts Spark if need be and gives the values of these sources.
Ask = Callable[[SourceLook, list[str]], Mapping[str, Answer]]


def observe_sources(
    look: SourceLook,
    wanted: Iterable[str],
    session: str,
    recorded: Mapping[str, Record],
    cache: ValueCache,
    now_us: int,
    ask: Ask,
) -> dict[str, Sighting]:
    """Every source as it is now; only for ``wanted`` ones a value may be asked for."""
    answers, missing = standing_values(look, wanted, session, recorded.values(), cache)
    if missing:
        asked = ask(look, missing)
        for name, answer in asked.items():
            if answer.lasting and look.version_read(name):
                cache.add(value_key(look, name, session), answer.value, answer.why)
        cache.save()
        answers |= asked
    return {
        name: look.sight(name, now_us, session, answers.get(name)) for name in look.compiled.sources
    }
