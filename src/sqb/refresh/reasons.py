"""Why a way of refreshing a table does not apply: stable codes, each with a sentence."""

from __future__ import annotations

import msgspec

#: The version of the rules: a table that was made under other ones is rebuilt when it is stale.
RULES = "1"


class Rejected(msgspec.Struct, frozen=True):
    """A way that does not apply: a stable code and a sentence."""

    name: str
    code: str
    why: str


class Refused(Exception):  # noqa: N818 - an outcome, not a failure
    """The table can't be refreshed by rows: a stable code and a sentence."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(f"{code}: {why}")
        self.code = code
        self.why = why
