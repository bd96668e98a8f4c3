"""Pass 4: what the plan should say about the sources of the selection."""

from __future__ import annotations

from collections.abc import Mapping

from sqb.freshness.sighting import Sighting
from sqb.identity.data_id import UNKNOWN
from sqb.planning.cascade import Verdict
from sqb.planning.plan import PlanWarning
from sqb.planning.situation import Situation

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def freshness_warnings(
    situation: Situation, verdicts: Mapping[str, Verdict]
) -> tuple[PlanWarning, ...]:
    """Sources that are old, that can't be observed, or whose rows moved unseen."""
    out: list[PlanWarning] = []
    for name, sighting in situation.sightings.items():
        told = (_age(sighting), _unknown(sighting), _unseen(situation, sighting, verdicts))
        found = [warning for warning in told if warning is not None]
        if found and not situation.selected.isdisjoint(situation.graph.descendants([name])):
            out += found
    return tuple(out)


def age_text(seconds: int) -> str:
    """An age in words.

    >>> age_text(45), age_text(5400), age_text(3 * 86_400), age_text(-5)
    ('45s', '1h 30m', '3d', '0s')
    """
    parts: list[str] = []
    for size, unit in _UNITS:
        number, seconds = divmod(max(seconds, 0), size)
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts[:2]) or f"{seconds}s"


def _age(sighting: Sighting) -> PlanWarning | None:
    age = sighting.age
    if age is None or age.seconds is None or age.limit is None:
        return None
    text = f"source `{sighting.name}` is {age_text(age.seconds)} old"
    if age.status == "error":
        text += f", more than error_after ({age_text(age.limit)}): what reads it is blocked"
    else:
        text += f", more than warn_after ({age_text(age.limit)})"
    return PlanWarning("S307", sighting.name, text)


def _unknown(sighting: Sighting) -> PlanWarning | None:
    if sighting.state is None or sighting.state.data != UNKNOWN:
        return None
    text = f"source `{sighting.name}` can't be observed: {sighting.why}"
    if not sighting.watched:
        text += "; give it a freshness strategy (column or sql)"
    return PlanWarning("S306", sighting.name, f"{text}. What reads it runs on every build")


def _unseen(
    situation: Situation, sighting: Sighting, verdicts: Mapping[str, Verdict]
) -> PlanWarning | None:
    """Current readers of a source that was written to without moving its value."""
    if not sighting.at:
        return None
    stay = [
        name
        for name in situation.expected
        if name in situation.selected
        and not verdicts[name].runs
        and not verdicts[name].blocked
        and (record := situation.recorded.get(name)) is not None
        and record.materialized != "view"
        and record.seen.get(sighting.name, sighting.at) != sighting.at
    ]
    if not stay:
        return None
    others = f" and {len(stay) - 1} more stay as they are" if len(stay) > 1 else " stays as it is"
    return PlanWarning(
        "S305",
        sighting.name,
        f"source `{sighting.name}` was written to, but its freshness value ({sighting.value}) "
        f"gives no reason to run: `{stay[0]}`{others}",
    )
