"""The nodes of a dbt project as sqb plans them: compact values that are kept between commands.

Exposures, analyses, metrics and operations are left out: nothing that sqb runs depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sqb.identity.hashes import Hashes

#: What is built and has a relation, and what is checked.
BUILT = frozenset({"model", "seed", "snapshot", "function"})
TESTS = frozenset({"test", "unit_test"})


class Freshness(msgspec.Struct, frozen=True, array_like=True):
    """How a source's age is told, in dbt's words; thresholds are ``(count, period)``."""

    loaded_at_field: str | None = None
    loaded_at_query: str | None = None
    filter: str | None = None
    warn_after: tuple[int, str] | None = None
    error_after: tuple[int, str] | None = None


class DbtNode(msgspec.Struct, frozen=True, array_like=True):
    """One node.

    ``reads`` are the nodes that its text names; ``parents`` the same with ephemeral models replaced
    by what those read. ``relation_name`` is the name as dbt writes it into SQL, None for what has
    no relation. ``attached`` is the node that a test checks, if it is one node's test.
    """

    unique_id: str
    name: str
    type: str
    package: str
    path: str
    materialized: str = ""
    schema: str = ""
    alias: str = ""
    relation_name: str | None = None
    reads: tuple[str, ...] = ()
    parents: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    hashes: Hashes = Hashes("")
    file_format: str = ""
    full_refresh: bool | None = None
    version: str | None = None
    attached: str | None = None
    severity: str = ""
    freshness: Freshness | None = None

    @property
    def relation(self) -> tuple[str, str] | None:
        """Schema and name of its relation; None for what has none, such as a function.

        >>> DbtNode("model.shop.a", "a", "model", "shop", "models/a.sql").relation is None
        True
        """
        if self.relation_name is None or self.type == "function":
            return None
        return self.schema, self.alias

    @property
    def is_ephemeral(self) -> bool:
        """Whether it only lives in the text of those that read it."""
        return self.type == "model" and self.materialized == "ephemeral"

    @property
    def label(self) -> str:
        """Its name for people, with the version if it has one.

        >>> DbtNode("m", "dim", "model", "shop", "", version="2").label
        'dim.v2'
        """
        return f"{self.name}.v{self.version}" if self.version is not None else self.name


def through_ephemeral(
    reads: Mapping[str, tuple[str, ...]], ephemeral: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Each node's parents with ephemeral models replaced by what they read, in order.

    >>> through_ephemeral({"c": ("e", "a"), "e": ("a", "b"), "a": (), "b": ()}, ["e"])["c"]
    ('a', 'b')
    """
    hidden = frozenset(ephemeral)
    if not hidden:
        return dict(reads)
    memo: dict[str, tuple[str, ...]] = {}

    def seen_through(start: str) -> tuple[str, ...]:
        # Without recursion: chains of ephemeral models have no bound.
        stack = [start]
        while stack:
            node = stack[-1]
            above = [n for n in reads.get(node, ()) if n in hidden]
            waiting = [n for n in above if n not in memo and n not in stack]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            found: dict[str, None] = {}
            for parent in reads.get(node, ()):
                for name in memo.get(parent, ()) if parent in hidden else (parent,):
                    found[name] = None
            memo[node] = tuple(found)
        return memo[start]

    return {node: memo[node] if node in memo else seen_through(node) for node in reads}
