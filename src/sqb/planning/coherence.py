"""Pass 3: can the selection be built at all, and what should the user know about it?"""

from __future__ import annotations

from collections.abc import Mapping

from sqb.errors import SqbError
from sqb.planning.cascade import Verdict
from sqb.planning.plan import DEFINITION_REASONS, PlanWarning
from sqb.planning.situation import Situation


def check(situation: Situation, verdicts: Mapping[str, Verdict]) -> None:
    """Refuse a selection that reads what does not exist. Nothing has been touched yet."""
    missing: dict[str, None] = {}
    for name, expected in situation.expected.items():
        if name not in situation.selected:
            continue
        for i, parent in enumerate(expected.inputs):
            if parent not in situation.expected:
                if parent not in situation.sources:
                    sighting = situation.sightings.get(parent)
                    what = (
                        f"source `{parent}`: {sighting.why}"
                        if sighting
                        else (f"source table `{parent}` does not exist")
                    )
                    raise SqbError(
                        "S303",
                        f"{what}, and `{name}` reads it",
                        file=expected.path,
                        line=expected.lines[i] if expected.lines else None,
                        help="load it first, or correct its name in the query or in sources/*.yml",
                    )
            elif (
                verdicts[name].runs
                and parent not in situation.selected
                and parent not in situation.relations
                and situation.expected[parent].relation
            ):
                missing[parent] = None
    if missing:
        names = ", ".join(sorted(missing))
        raise SqbError(
            "S301",
            f"the selection needs {len(missing)} upstream(s) that were never built: {names}",
            help="select them too: --select +NAME takes everything above a model along",
        )


def warnings(situation: Situation, verdicts: Mapping[str, Verdict]) -> tuple[PlanWarning, ...]:
    """What the plan should say besides its nodes."""
    out: list[PlanWarning] = []
    for name in situation.expected:
        if name not in situation.selected:
            continue
        stale = sorted(verdicts[name].stale_above)
        if stale:
            out.append(
                PlanWarning(
                    "S302",
                    name,
                    f"`{name}` rests on {len(stale)} stale upstream(s) outside the selection: "
                    f"{', '.join(stale)}; --select +{name} builds them too",
                )
            )
        out += _forwarded(situation, name, verdicts[name])
        volatile = situation.expected[name].volatile
        if volatile and verdicts[name].runs:
            calls = ", ".join(f"{v}()" for v in volatile)
            out.append(
                PlanWarning(
                    "S304",
                    name,
                    f"`{name}` uses {calls}: a value that differs on every run "
                    "never makes a model stale",
                )
            )
        stateless = situation.expected[name].stateless
        if stateless:
            why = f"`row_state auto` of `{name}` has no effect: {stateless}"
            out.append(PlanWarning("S312", name, why))
    return tuple(out)


def _forwarded(situation: Situation, name: str, verdict: Verdict) -> list[PlanWarning]:
    """A merge that keeps rows of an older definition is not what its query gives."""
    expected, record = situation.expected[name], situation.recorded.get(name)
    if expected.materialized != "merge" or record is None or record.kept == "history":
        return []
    moves = verdict.reason in DEFINITION_REASONS and expected.replay == "forward"
    if not verdict.runs or not (moves or record.kept == "forward"):
        return []
    message = f"`{name}` keeps rows of an older definition: it need not be what its query gives"
    return [PlanWarning("S311", name, message)]
