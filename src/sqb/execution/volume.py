"""How many bytes lie behind names, asked of the lake: what Spark's start is tuned by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqb.compile.nodes import SourceTable
from sqb.identity.expected import Expected
from sqb.lake.catalog import Head
from sqb.lake.facts import FactsCache
from sqb.planning.volume import input_bytes


def bytes_behind(
    names: Sequence[str],
    expected: Mapping[str, Expected],
    sources: Mapping[str, SourceTable],
    heads: Mapping[tuple[str, str], Head],
    facts: FactsCache,
    *,
    built: bool = False,
) -> int | None:
    """The bytes that reading ``names`` reads; None if that is not known.

    ``built``: these nodes are about to be built, so what they read counts and not what they hold.
    """
    sizes: dict[str, int | None] = {}
    inputs = {name: tuple(node.inputs) for name, node in expected.items()}

    def visit(name: str) -> None:
        node = expected.get(name)
        place = (node.namespace, node.relation) if node else _place(sources, name)
        head = heads.get(place) if place is not None else None
        if head is not None and head.kind == "table" and not (built and name in names):
            sizes[name] = facts.get(head.location).total_bytes
        elif node is not None:
            for parent in node.inputs:
                if parent not in seen:
                    seen.add(parent)
                    visit(parent)
        elif head is None or head.kind != "table":
            sizes[name] = None

    seen = set(names)
    for name in names:
        visit(name)
    if built:
        return input_bytes(names, inputs, sizes)
    # not the name of any node: they are quoted words, and this is none
    return input_bytes([""], {**inputs, "": names}, sizes)


def _place(sources: Mapping[str, SourceTable], name: str) -> tuple[str, str] | None:
    source = sources.get(name)
    return (source.namespace, source.table) if source is not None else None
