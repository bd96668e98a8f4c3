"""Age policies and the comparison with what was recorded."""

from __future__ import annotations

import pytest

from sqb.freshness.age import age_of
from sqb.freshness.compare import compare
from sqb.freshness.sighting import Age, Sighting
from sqb.identity.data_id import InputState
from sqb.project.source_specs import AgePolicy

HOUR_US = 3_600_000_000
POLICY = AgePolicy(warn_after=3600, error_after=7200)


@pytest.mark.parametrize(
    ("elapsed_us", "policy", "status"),
    [
        (0, POLICY, "pass"),
        (HOUR_US, POLICY, "pass"),
        (HOUR_US + 1, POLICY, "warn"),
        (2 * HOUR_US, POLICY, "warn"),
        (2 * HOUR_US + 1, POLICY, "error"),
        (-HOUR_US, POLICY, "pass"),
        (9 * HOUR_US, AgePolicy(warn_after=3600), "warn"),
        (9 * HOUR_US, AgePolicy(error_after=3600), "error"),
        (9 * HOUR_US, None, "pass"),
    ],
)
def test_only_what_is_older_than_a_limit_passes_it(
    elapsed_us: int, policy: AgePolicy | None, status: str
) -> None:
    age = age_of(1_000, 1_000 + elapsed_us, policy)
    assert age is not None
    assert age.status == status


def test_an_age_that_can_t_be_told_is_unknown_only_if_someone_asked() -> None:
    assert age_of(None, 0, POLICY) == Age("unknown")
    assert age_of(None, 0, None) is None


def sighting(value: str | None, kind: str = "timestamp", tolerance: int | None = None) -> Sighting:
    state = InputState("data", "schema")
    return Sighting("s", "column", kind, "pinned", state, value, tolerance=tolerance)


SIX, SEVEN = "2026-01-31T06:00:00+00:00", "2026-01-31T07:00:00+00:00"


@pytest.mark.parametrize(
    ("now", "before", "expected"),
    [
        (sighting(SIX), ("column", "timestamp", SIX), "unchanged"),
        (sighting(SEVEN), ("column", "timestamp", SIX), "changed"),
        (sighting(SEVEN, tolerance=3600), ("column", "timestamp", SIX), "tolerated"),
        (sighting(SEVEN, tolerance=3599), ("column", "timestamp", SIX), "changed"),
        (sighting(SIX, tolerance=3600), ("column", "timestamp", SEVEN), "changed"),
        (sighting(SIX), ("sql", "timestamp", SIX), "changed"),
        (sighting("7", "integer"), ("column", "integer", "7"), "unchanged"),
        (sighting("7", "integer"), ("column", "string", "7"), "changed"),
        (sighting(SIX), None, "changed"),
        (sighting(None), ("column", "timestamp", SIX), "unknown"),
    ],
)
def test_a_source_against_what_was_recorded(
    now: Sighting, before: tuple[str, str, str] | None, expected: str
) -> None:
    assert compare(now, before, with_state=True) == expected


def test_without_state_nothing_is_compared() -> None:
    assert compare(sighting(SIX), None, with_state=False) == "observed"
    assert compare(sighting(None), None, with_state=False) == "unknown"
