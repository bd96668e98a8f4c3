"""What one look at a source gave: the state that readers compare, its value, its age."""

from __future__ import annotations

from typing import Literal

import msgspec

from sqb.identity.data_id import InputState

#: How readers of a source are told what it is: at exactly one version, by a value that was asked
#: for, or not at all.
Reading = Literal["pinned", "observed", "unknown"]
AgeStatus = Literal["pass", "warn", "error", "unknown"]


class Age(msgspec.Struct, frozen=True):
    """How old a source is, against its policy; ``seconds`` None if that can't be told."""

    status: AgeStatus
    seconds: int | None = None
    limit: int | None = None


class Physical(msgspec.Struct, frozen=True):
    """A source as its place shows it, whatever its freshness strategy says.

    ``data`` None: it is not there. ``schema`` moves whenever its columns may have moved,
    ``declared`` only when they are known to have. ``why`` tells why it is not there or can't be
    observed. ``moment_us`` is when its data last changed.
    """

    data: str | None
    schema: str = ""
    declared: str = ""
    place: str = ""
    reading: Reading = "unknown"
    moment_us: int | None = None
    why: str = ""


class Sighting(msgspec.Struct, frozen=True):
    """One source at one moment.

    ``state`` None: it does not exist. ``value`` is its data version as users see it, ``at`` the
    version of what the value was read from (empty: it can't be named, the value is asked for each
    time). ``tolerance`` in seconds.
    """

    name: str
    strategy: str
    kind: str
    reading: Reading
    state: InputState | None
    value: str | None = None
    why: str = ""
    at: str = ""
    age: Age | None = None
    tolerance: int | None = None
    watched: bool = False
