"""Bound constants: values that are fixed for a run and part of what a result was computed from."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from sqb.errors import SqbError

#: The environment variable that sets the clock of a command, an ISO instant.
CLOCK = "SQB_NOW"


def clock(environ: Mapping[str, str]) -> datetime:
    """The moment of the command.

    >>> clock({"SQB_NOW": "2026-01-31T06:00:00Z"}).isoformat()
    '2026-01-31T06:00:00+00:00'
    """
    text = environ.get(CLOCK)
    if not text:
        return datetime.now(timezone.utc)
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError as error:
        raise SqbError(
            "C008",
            f"{CLOCK}={text} is not an ISO instant",
            help=f"for example {CLOCK}=2026-01-31T06:00:00Z",
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)


def bound_constants(moment: datetime, zone: str) -> dict[str, str]:
    """What ``current_date()`` and its kin are at ``moment`` in a session's time zone.

    >>> from datetime import datetime, timezone
    >>> bound_constants(datetime(2026, 1, 31, 23, tzinfo=timezone.utc), "Asia/Tokyo")
    {'current_date': '2026-02-01'}
    """
    try:
        local = moment.astimezone(timezone.utc if zone == "UTC" else ZoneInfo(zone))
    except (KeyError, ValueError, OSError) as error:
        raise SqbError(
            "C004",
            f"spark.sql.session.timeZone = {zone} is not a known time zone",
            help="use a region such as Europe/Berlin, or UTC",
        ) from error
    return {"current_date": local.date().isoformat()}
