"""Which versions of a table are taken for the unfinished work of a run of sqb."""

from __future__ import annotations

from typing import Any

import pytest

from sqb.lake.writers import writers_since


def version(number: int, run: str | None = None) -> dict[str, Any]:
    summary = {"operation": "append"} | ({"sqb.run-id": run} if run else {})
    return {"snapshot-id": 10 + number, "sequence-number": number, "summary": summary}


@pytest.mark.parametrize(
    ("versions", "current", "recorded", "writers"),
    [
        pytest.param([version(1, "a")], 11, 11, set(), id="nothing came since"),
        pytest.param([version(1, "a"), version(2, "b")], 12, 11, {"b"}, id="one run"),
        pytest.param(
            [version(1, "a"), version(2, "b"), version(3, "c")], 13, 11, {"b", "c"}, id="two runs"
        ),
        pytest.param([version(1, "a"), version(2)], 12, 11, set(), id="someone else"),
        pytest.param(
            [version(1, "a"), version(2), version(3, "c")], 13, 11, set(), id="someone between"
        ),
        pytest.param(
            [version(1, "a"), version(2, "b"), version(3)], 13, 11, set(), id="someone after"
        ),
        pytest.param(
            [version(1, "a"), version(2, "b")], 11, 12, set(), id="an older one is back"
        ),
        pytest.param(
            [version(1, "a"), version(2, "b"), version(3, "c")], 11, 12, set(),
            id="an older one is back after an unfinished one",
        ),
        pytest.param([version(2, "b")], 12, 11, set(), id="the recorded one has expired"),
        pytest.param([], None, 11, set(), id="no version at all"),
    ],
)  # fmt: skip
def test_writers_since(
    versions: list[dict[str, Any]], current: int | None, recorded: int, writers: set[str]
) -> None:
    document = {"current-snapshot-id": current, "snapshots": versions}
    assert writers_since(document, recorded) == writers
