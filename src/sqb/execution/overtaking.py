"""Someone else published first: seen before the work, or when it is to be published."""

from __future__ import annotations

from collections.abc import Mapping

from sqb.errors import SqbError
from sqb.execution.events import Rows
from sqb.execution.outcome import Outcome
from sqb.execution.run import Published, Run
from sqb.identity.data_id import InputState
from sqb.lake.catalog import Head
from sqb.lake.publish import Overtaken
from sqb.planning.situation import bound
from sqb.state.record import decode, untouched


def refuse_overtaken(run: Run, name: str, base: Head | None) -> None:
    """Raise ``Overtaken`` if ``base`` is not what the plan saw, compactions and properties aside.

    Between plan and work lies the time that Spark and the upstream models take: a build that
    published meanwhile would be overwritten with what was planned before it.
    """
    expected = run.expected(name)
    planned = run.heads.get((expected.namespace, expected.relation))
    if base is None or base == planned:
        return
    if planned is None or planned.kind != base.kind:
        raise Overtaken(base)
    before, now = run.facts.get(planned.location), run.facts.get(base.location)
    same = before.uuid == now.uuid and before.data_snapshot_id == now.data_snapshot_id
    if not same or before.shape != now.shape:
        raise Overtaken(base)


def adopt(run: Run, name: str, states: Mapping[str, InputState], overtaken: Overtaken) -> Outcome:
    """Someone published first: take their result if it is the same, else fail and name them."""
    expected, winner = run.expected(name), overtaken.winner
    record = None
    if winner is not None:
        facts = run.facts.get(winner.location)
        record = decode(facts.stamp)
        ours = {n: s.data for n, s in states.items()}
        if (
            record is not None
            and record.uuid == facts.uuid
            and untouched(record, facts)
            and (record.query, record.config) == (expected.query, expected.config)
            and {c.name: c.data for c in record.inputs} == ours
            and record.constants == bound(expected, run.situation.constants)
        ):
            return Outcome(Published(winner, facts, record), "current", Rows(0, 0, record.rows))
    who = f"build {record.run}" if record is not None else "someone else"
    raise SqbError(
        "L003",
        f"`{name}` was changed by {who} while this build ran",
        file=expected.path,
        help="nothing was overwritten; run `sqb build` again to build on top of it",
        exit_code=1,
    )
