"""What upkeep may remove of a table, decided on metadata alone."""

from __future__ import annotations

from typing import Any

import pytest

from sqb.upkeep.needed import Needs, Removable, is_due, pays_off, removable

#: Five rebuilds, a minute apart: snapshot 1 was current from 60 s to 120 s, and so on.
MINUTE = 60_000


def table(count: int = 5, **more: Any) -> dict[str, Any]:
    snapshots = [
        {"snapshot-id": n, "timestamp-ms": n * MINUTE, "sequence-number": n, "summary": {}}
        for n in range(1, count + 1)
    ]
    log = [{"snapshot-id": s["snapshot-id"], "timestamp-ms": s["timestamp-ms"]} for s in snapshots]
    refs = {"main": {"snapshot-id": count, "type": "branch"}}
    return {
        "snapshots": snapshots,
        "snapshot-log": log,
        "refs": refs,
        "current-snapshot-id": count,
        "metadata-log": [],
        **more,
    }


def gone(document: dict[str, Any], *, keep: int = 1, **facts: Any) -> list[int]:
    needs = Needs(frozenset(facts.get("needed", ())), facts.get("since", 100) * MINUTE)
    older = facts.get("older_than")
    limit = None if older is None else older * MINUTE
    return list(removable(document, needs, keep=keep, older_than_ms=limit).snapshots)


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[int]]] = {
    "only the current one is kept at the least": (table(), {}, [1, 2, 3, 4]),
    "the newest are kept by count": (table(), {"keep": 3}, [1, 2]),
    "a count beyond all keeps all": (table(), {"keep": 20}, []),
    "what stopped being current within the grace stays": (table(), {"since": 3}, [1, 2]),
    "the moment of the grace itself is over": (table(), {"since": 4}, [1, 2, 3]),
    "what a record names stays": (table(), {"needed": [2]}, [1, 3, 4]),
    "a name for another table means nothing": (table(), {"needed": [99]}, [1, 2, 3, 4]),
    "the janitor's age outdoes the count": (table(), {"keep": 20, "older_than": 3}, [1, 2]),
    "the janitor's age does not outdo the grace": (
        table(),
        {"keep": 20, "older_than": 100, "since": 3},
        [1, 2],
    ),
    "an empty table has nothing": ({"snapshots": None, "metadata-log": []}, {}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_what_may_go(name: str) -> None:
    document, facts, expected = CASES[name]
    assert gone(document, **facts) == expected


def test_tags_and_branches_keep_their_snapshots() -> None:
    document = table()
    document["refs"] |= {
        "sqb_clone_1": {"snapshot-id": 1, "type": "tag"},
        "audit": {"snapshot-id": 3, "type": "branch"},
    }
    assert gone(document) == [2, 4]


def test_a_branch_keeps_its_own_history_up_to_main() -> None:
    document = table()
    for id_, parent in ((2, 1), (5, 2), (3, 2), (4, 3)):
        document["snapshots"][id_ - 1]["parent-snapshot-id"] = parent
    document["refs"]["side"] = {"snapshot-id": 4, "type": "branch"}
    assert gone(document) == [1, 2]


def test_a_compacted_snapshot_stays_with_those_behind_it() -> None:
    document = table()
    for id_, parent in ((5, 4), (4, 3)):
        document["snapshots"][id_ - 1] |= {
            "parent-snapshot-id": parent,
            "summary": {"operation": "replace"},
        }
    assert gone(document) == [1, 2]


def test_a_snapshot_that_the_log_forgot_ended_when_its_successor_came() -> None:
    document = table()
    document["snapshot-log"] = document["snapshot-log"][3:]
    # 1, 2 and 3 were all replaced at minute 4 at the latest
    assert gone(document, since=3) == []
    assert gone(document, since=4) == [1, 2, 3]


def test_a_snapshot_that_came_back_is_counted_from_its_last_turn() -> None:
    document = table()
    document["snapshot-log"] += [
        {"snapshot-id": 1, "timestamp-ms": 6 * MINUTE},
        {"snapshot-id": 5, "timestamp-ms": 9 * MINUTE},
    ]
    assert gone(document, since=8) == [2, 3, 4]


def log(count: int) -> list[dict[str, Any]]:
    return [{"metadata-file": f"m{n}", "timestamp-ms": n * MINUTE} for n in range(1, count + 1)]


@pytest.mark.parametrize(
    ("count", "since", "expected"),
    [
        (20, 1000, 0),
        (25, 1000, 5),
        # m3 was replaced by what is logged four places on, at the latest
        (40, 7, 3),
        (40, 4, 0),
    ],
)
def test_old_metadata_files_go_but_for_the_newest(count: int, since: int, expected: int) -> None:
    document = table(1) | {"metadata-log": log(count)}
    found = removable(document, Needs(frozenset(), since * MINUTE), keep=1)
    assert found.metadata == tuple(f"m{n}" for n in range(1, expected + 1))


@pytest.mark.parametrize(
    ("snapshots", "logged", "due"), [(30, 0, False), (31, 0, True), (1, 60, False), (1, 61, True)]
)
def test_a_table_is_looked_at_when_it_has_grown(snapshots: int, logged: int, due: bool) -> None:
    assert is_due(table(snapshots) | {"metadata-log": log(logged)}, keep=20) is due


def test_little_is_left_for_a_later_build() -> None:
    assert not pays_off(table(40), Removable((1, 2, 3)))
    assert pays_off(table(40), Removable((1, 2, 3, 4)))
    assert pays_off(table(40), Removable((), tuple(f"m{n}" for n in range(20))))
