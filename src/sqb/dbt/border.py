"""Where sqb's own models read what dbt builds: nodes of dbt as sources of sqb's."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqb.compile.nodes import DbtRefs, SourceTable
from sqb.dbt.nodes import DbtNode
from sqb.dbt.reader import DbtReader
from sqb.errors import SqbError
from sqb.project.config_values import CatalogConfig

_TYPES = ("model", "seed", "snapshot")


def dbt_refs(
    wanted: Collection[tuple[str, str]], reader: DbtReader, catalog: CatalogConfig
) -> DbtRefs:
    """What references mean in the dbt project, which must write to the same catalog."""
    theirs = reader.place.catalog
    if theirs is None or (theirs.uri, theirs.warehouse) != (catalog.uri, catalog.warehouse):
        raise SqbError(
            "B006",
            "models read what dbt builds, but dbt writes to another catalog than this project",
            file=str(reader.profiles),
            help="name dbt's Iceberg catalog in [catalog] of sqlbuild_project.toml",
        )
    return refs_of(wanted, reader.nodes)


def refs_of(wanted: Collection[tuple[str, str]], nodes: Mapping[str, DbtNode]) -> DbtRefs:
    """The nodes that are referred to, and all that can be read through views among them.

    >>> node = DbtNode("model.shop.a", "a", "model", "shop", "", "view", "dev", "a", "dev.a",
    ...     parents=("source.shop.raw.t",))
    >>> table = DbtNode("source.shop.raw.t", "t", "source", "shop", "", "", "raw", "t", "raw.t")
    >>> found = refs_of([("shop", "a")], {n.unique_id: n for n in (node, table)})
    >>> found.names, found.sources["model.shop.a"].through
    ({('shop', 'a'): 'model.shop.a'}, ('source.shop.raw.t',))
    """
    names: dict[tuple[str, str], str] = {}
    why: dict[tuple[str, str], str] = {}
    sources: dict[str, SourceTable] = {}
    for package, name in sorted(wanted):
        found = _find(package, name, nodes)
        if found is None:
            continue
        if found.relation is None:
            why[package, name] = f"`{name}` is {found.materialized or found.type}, not a relation"
            continue
        names[package, name] = found.unique_id
        _add(found, nodes, sources)
    return DbtRefs(sources, names, why)


def _find(package: str, name: str, nodes: Mapping[str, DbtNode]) -> DbtNode | None:
    for kind in _TYPES:
        found = nodes.get(f"{kind}.{package}.{name}")
        if found is not None:
            return found
    return None


def _add(start: DbtNode, nodes: Mapping[str, DbtNode], into: dict[str, SourceTable]) -> None:
    pending = [start]
    while pending:
        node = pending.pop()
        if node.unique_id in into or node.relation is None:
            continue
        schema, table = node.relation
        above = [nodes[parent] for parent in node.parents if parent in nodes]
        # what has no relation, such as a function, can't be observed
        known = all(parent.relation is not None for parent in above)
        is_view = node.type == "model" and node.materialized == "view"
        into[node.unique_id] = SourceTable(
            node.unique_id,
            schema,
            table,
            True,
            node.path,
            None,
            through=tuple(parent.unique_id for parent in above) if is_view and known else None,
        )
        if is_view:
            pending += above
