"""How old a source is, and whether that is too old."""

from __future__ import annotations

from sqb.freshness.sighting import Age
from sqb.project.source_specs import AgePolicy

_MICROSECONDS = 1_000_000


def age_of(moment_us: int | None, now_us: int, policy: AgePolicy | None) -> Age | None:
    """The age of data that last changed at ``moment_us``; None if nobody asked and none is known.

    A limit is passed by what is older, not by what is exactly as old.

    >>> policy = AgePolicy(warn_after=60, error_after=120)
    >>> age_of(0, 60_000_000, policy).status, age_of(0, 60_000_001, policy).status
    ('pass', 'warn')
    """
    if moment_us is None:
        return Age("unknown") if policy is not None else None
    elapsed = now_us - moment_us
    seconds = elapsed // _MICROSECONDS
    if policy is not None:
        for status, limit in (("error", policy.error_after), ("warn", policy.warn_after)):
            if limit is not None and elapsed > limit * _MICROSECONDS:
                return Age(status, seconds, limit)  # type: ignore[arg-type]
    return Age("pass", seconds)
