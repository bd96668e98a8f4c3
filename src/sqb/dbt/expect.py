"""dbt's nodes as the planning core expects them, and records in the same sense of identity.

Ephemeral models are not there: they have no relation, and their readers' identity has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sqb.dbt.nodes import BUILT, DbtNode
from sqb.graph.graph import Graph
from sqb.identity.expected import Expected
from sqb.identity.hashes import Hashes
from sqb.state.record import Record


def planned_type(node: DbtNode) -> str:
    """The node's type in plans.

    >>> planned_type(DbtNode("unit_test.shop.m.t", "t", "unit_test", "shop", ""))
    'dbt_test'
    """
    return "dbt_test" if node.type == "unit_test" else f"dbt_{node.type}"


def is_planned(node: DbtNode) -> bool:
    """Is it built, with a fingerprint of its own?"""
    return node.type in BUILT and not node.is_ephemeral


def expect(nodes: Iterable[DbtNode], mode: str) -> dict[str, Expected]:
    """Every model, seed, snapshot and function, in the order given: parents first.

    ``query`` and ``config`` are the node's text and all beside it, in the sense of ``mode``;
    ``local`` and ``version`` are those of the full identity, whatever the mode, as in records.
    """
    out: dict[str, Expected] = {}
    for node in nodes:
        if not is_planned(node):
            continue
        schema, alias = node.relation or ("", "")
        query, config = node.hashes.definition(mode)
        out[node.unique_id] = Expected(
            name=node.unique_id,
            type=planned_type(node),
            path=node.path,
            materialized=node.materialized,
            namespace=schema,
            relation=alias,
            tags=node.tags,
            inputs=node.parents,
            query=query,
            config=config,
            local=node.hashes.full,
            version=node.hashes.versions[-1],
        )
    return out


def recorded_as(record: Record, mode: str) -> Record:
    """A record with the definition that ``mode`` compares; every row has all of them."""
    if record.hashes is None:
        return record
    query, config = record.hashes.definition(mode)
    return msgspec.structs.replace(record, query=query, config=config)


def graph_of(nodes: Mapping[str, DbtNode]) -> Graph:
    """What is planned and the sources, without ephemeral models and tests."""
    shown = {n: node for n, node in nodes.items() if is_planned(node) or node.type == "source"}
    return Graph({n: [p for p in node.parents if p in shown] for n, node in shown.items()})


def same_identity(node: DbtNode, record: Record, mode: str) -> bool:
    """Is a test the one that a record speaks of?"""
    before = record.hashes or Hashes(record.query, normalised=record.local, full=record.local)
    return before.definition(mode) == node.hashes.definition(mode)
