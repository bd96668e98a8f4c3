"""Which way a table goes, decided from facts: history is never rebuilt by our own decision."""

from __future__ import annotations

from typing import Any

import pytest

from sqb.refresh.kinds import FORWARD, HISTORY, Kind, Lost, Standing, kept_by, kind_of, way_of

LOG, SCD2, TRACKED = Kind("append"), Kind("scd2"), Kind("tracked")
SYNC, KEEP = Kind("merge"), Kind("merge", keeps=True)
ALL = (LOG, SCD2, TRACKED, SYNC, KEEP)


def standing(kind: Kind, **facts: Any) -> Standing:
    """A table of that kind that nobody touched."""
    kept = HISTORY if kind.holds_history else ""
    given = {"there": True, "known": True, "untouched": True, "was": kind.name, "same": True}
    return Standing(**(given | {"kept": kept} | facts))


@pytest.mark.parametrize("kind", ALL)
def test_what_is_not_there_is_built_and_what_the_user_wants_rebuilt_is_rebuilt(kind: Kind) -> None:
    assert way_of(kind, "relation_missing", Standing()) == "build"
    assert way_of(kind, "full_refresh", standing(kind, untouched=False)) == "rebuild"
    assert way_of(kind, "source_changed", standing(kind)) == "carry"
    assert way_of(kind, "forced", standing(kind)) == "carry"


#: What happened to a table, and what that means where it holds history.
LOSSES = [
    ({"known": False, "was": "", "kept": "", "same": False}, "STAMP_UNREADABLE"),
    ({"untouched": False}, "TARGET_MODIFIED_OUTSIDE"),
]


@pytest.mark.parametrize("kind", ALL)
@pytest.mark.parametrize(("facts", "code"), LOSSES)
def test_a_loss_rebuilds_what_is_just_its_query_and_stops_the_rest(
    kind: Kind, facts: dict[str, Any], code: str
) -> None:
    if not kind.holds_history:
        assert way_of(kind, "relation_changed", standing(kind, **facts)) == "rebuild"
        return
    with pytest.raises(Lost) as lost:
        way_of(kind, "relation_changed", standing(kind, **facts))
    assert lost.value.code == code


def test_a_table_with_history_does_not_become_another_kind() -> None:
    for kind in (Kind("table"), Kind("view"), SYNC, TRACKED, SCD2, KEEP):
        with pytest.raises(Lost):
            way_of(kind, "config_changed", standing(LOG, same=False))
    with pytest.raises(Lost):
        way_of(SYNC, "config_changed", standing(KEEP, same=False))
    # what is just its query may become anything
    for kind in ALL:
        was = {"was": "table", "same": False, "kept": ""}
        assert way_of(kind, "config_changed", standing(kind, **was)) == "rebuild"


CHANGED = [
    (LOG, None, "carry", HISTORY),
    (SCD2, None, "carry", HISTORY),
    (KEEP, "forward", "carry", HISTORY),
    (LOG, "full", "rebuild", HISTORY),
    (KEEP, "full", "rebuild", HISTORY),
    (SYNC, None, "rebuild", ""),
    (SYNC, "forward", "carry", FORWARD),
    (SYNC, "full", "rebuild", ""),
    (TRACKED, "forward", "rebuild", ""),
]


@pytest.mark.parametrize(("kind", "replay", "way", "kept"), CHANGED)
def test_a_new_definition(kind: Kind, replay: str | None, way: str, kept: str) -> None:
    options = {"deletes": "keep" if kind.keeps else "sync", "replay_on_change": replay}
    made = kind_of(kind.name, options)
    facts = standing(kind, same=False)
    found = way_of(made, "query_changed", facts)
    assert found == way
    assert kept_by(made, found, facts) == kept


def test_a_forwarded_table_stays_marked_until_it_is_rebuilt() -> None:
    facts = standing(SYNC, kept=FORWARD)
    assert kept_by(SYNC, "carry", facts) == FORWARD
    assert kept_by(SYNC, "rebuild", facts) == ""
