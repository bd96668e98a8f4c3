"""``sqb lineage``: what a model, seed or source reads, and what reads it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import SELECTION, Call, offer
from sqb.cli.call import command as sqb_command
from sqb.errors import SqbError, did_you_mean

if TYPE_CHECKING:
    from sqb.api import Project

_DIRECTIONS = {"upstream": ("upstream",), "downstream": ("downstream",)}


def lineage(call: Call, *, name: str, direction: str, depth: int | None) -> None:
    """Print the tree, or the nodes and edges."""
    call.no_selection("lineage")
    project = call.project()
    types = {n.name: n.type for n in project.selectable().values()}
    places = {s.place: s.name for s in project.compiled.sources.values()}
    name = places.get(name, name) if name not in types else name
    if name not in types:
        raise SqbError(
            "S001",
            f"there is no model, seed or source named `{name}`",
            help=did_you_mean(name, types) or "`sqb ls` lists all nodes",
        )
    directions = _DIRECTIONS.get(direction, ("upstream", "downstream"))
    if call.out.json:
        call.out.document(_document(project, types, name, direction, directions, depth))
        return
    out = call.out
    for way in directions:
        edges = _edges(project, way)
        out.important(f"{out.style(name, bold=True)} {out.style(types[name], dim=True)}, {way}:")
        lines = list(_tree(name, edges, depth, {name}, ""))
        for branch, node, note in lines:
            out.important(f"{out.style(branch, dim=True)}{node}{_mark(call, types[node], note)}")
        if not lines:
            out.important(out.style("└── nothing", dim=True))
        if way != directions[-1]:
            out.important()


def _mark(call: Call, kind: str, note: str) -> str:
    text = " ".join(part for part in (kind if kind != "model" else "", note) if part)
    return call.out.style(f"  {text}", dim=True) if text else ""


def _edges(project: Project, way: str) -> Mapping[str, Sequence[str]]:
    return project.visible.parents if way == "upstream" else project.visible.children


def _tree(
    name: str,
    edges: Mapping[str, Sequence[str]],
    depth: int | None,
    seen: set[str],
    indent: str,
) -> Iterator[tuple[str, str, str]]:
    """Lines of branch, node and note; what was shown before is not unfolded again."""
    if depth == 0:
        return
    neighbours = sorted(set(edges[name]))
    for node in neighbours:
        last = node == neighbours[-1]
        branch = indent + ("└── " if last else "├── ")
        if node in seen:
            yield branch, node, "(shown above)" if edges[node] else ""
            continue
        seen.add(node)
        yield branch, node, ""
        below = None if depth is None else depth - 1
        yield from _tree(node, edges, below, seen, indent + ("    " if last else "│   "))


def _document(
    project: Project,
    types: Mapping[str, str],
    name: str,
    direction: str,
    directions: Sequence[str],
    depth: int | None,
) -> dict[str, Any]:
    graph = project.visible
    found = {name}
    if "upstream" in directions:
        found |= graph.ancestors([name], depth)
    if "downstream" in directions:
        found |= graph.descendants([name], depth)
    order = [node for node in graph.order if node in found]
    return {
        "schema_version": 1,
        "name": name,
        "direction": direction,
        "depth": depth,
        "nodes": [{"name": node, "type": types[node]} for node in order],
        "edges": [
            {"from": parent, "to": node}
            for node in order
            for parent in sorted(set(graph.parents[node]))
            if parent in found
        ],
    }


_function = click.argument("name", shell_complete=offer("any"))(
    click.option(
        "--direction",
        envvar="SQB_DIRECTION",
        type=click.Choice(["upstream", "downstream", "both"]),
        default="both",
        show_default=True,
        help="Which way to look.",
    )(
        click.option(
            "--depth",
            envvar="SQB_DEPTH",
            type=click.IntRange(min=1),
            metavar="N",
            help="How many steps to go; all without it.",
        )(lineage)
    )
)

command = sqb_command(
    "lineage",
    help="Show what a model, seed or source reads and what reads it.",
    example="""
sqb lineage fct_orders
sqb lineage raw.orders --direction downstream --depth 2
""",
    hides=(*SELECTION, "verbose"),
)(_function)
