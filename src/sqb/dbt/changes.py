"""What differs between a node as it was built and as it is now, beside its text. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

#: The order in which causes are told.
KINDS = ("macro", "var", "env", "config", "source", "ref")


class Change(msgspec.Struct, frozen=True):
    """One thing beside the text that differs: ``macro``, ``cents_to_units``."""

    kind: str
    name: str


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Change, ...]:
    """The parts that differ, the likeliest cause first.

    >>> changes({"var:a": "1", "config:x": "1"}, {"var:a": "2", "macro:m": "1", "config:x": "1"})
    (Change(kind='macro', name='m'), Change(kind='var', name='a'))
    """
    differing = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    found = [Change(*key.split(":", 1)) for key in differing]
    order = {kind: i for i, kind in enumerate(KINDS)}

    def rank(change: Change) -> tuple[bool, int, bool, str]:
        # another materialization brings its own macros; what is built in changes with an upgrade
        first = change == Change("config", "materialized")
        return not first, order.get(change.kind, len(order)), change.name == "dbt", change.name

    return tuple(sorted(found, key=rank))
