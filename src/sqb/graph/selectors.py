"""The selector language: names, globs, methods, graph operators, unions and intersections.

A selection that matches nothing is an error, never "everything".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from sqb.errors import SqbError, did_you_mean
from sqb.graph.graph import Graph

_METHODS = ("tag", "path", "source", "seed")
_TERM = re.compile(r"^(?P<up>\d*\+)?(?P<core>[^+]+?)(?P<down>\+\d*)?$")


class Selectable(msgspec.Struct, frozen=True):
    """What a selector can see of a node."""

    name: str
    type: str
    path: str
    tags: tuple[str, ...]


def select(
    nodes: Mapping[str, Selectable],
    graph: Graph,
    include: Sequence[str],
    exclude: Sequence[str] = (),
) -> set[str]:
    """The names of buildable nodes (not sources) that the selectors pick."""
    buildable = {name for name, node in nodes.items() if node.type != "source"}
    chosen = set(buildable)
    if include:
        chosen = _union(nodes, graph, include) & buildable
        if not chosen:
            raise _nothing(nodes, include)
    if exclude:
        chosen -= _union(nodes, graph, exclude)
        if not chosen:
            raise SqbError(
                "S001",
                f"nothing is left after --exclude {' '.join(exclude)}",
                help="`sqb ls` shows what a selection holds",
            )
    return chosen


def select_sources(
    nodes: Mapping[str, Selectable],
    graph: Graph,
    include: Sequence[str],
    exclude: Sequence[str] = (),
) -> list[str]:
    """The names of sources that the selectors pick; a model or seed stands for those above it."""
    sources = {name for name, node in nodes.items() if node.type == "source"}
    chosen = set(sources)
    if include:
        matched = _union(nodes, graph, include)
        chosen = (matched | graph.ancestors(matched)) & sources
        if not chosen:
            text = " ".join(include)
            raise SqbError(
                "S001",
                f"the selection `{text}` holds no source",
                help=did_you_mean(text.strip("+"), nodes) or "`sqb lineage` shows what is read",
            )
    if exclude:
        chosen -= _union(nodes, graph, exclude)
        if not chosen:
            raise SqbError(
                "S001",
                f"nothing is left after --exclude {' '.join(exclude)}",
                help="`sqb freshness` without options shows all sources",
            )
    return sorted(chosen)


def _nothing(nodes: Mapping[str, Selectable], include: Sequence[str]) -> SqbError:
    text = " ".join(include)
    bare = text.strip("+0123456789")
    hint = did_you_mean(bare, (n.name for n in nodes.values() if n.type != "source"))
    if bare.startswith("source:") and not text.endswith("+"):
        hint = f"a source alone is nothing to build; what reads it is `{text}+`"
    return SqbError(
        "S001", f"the selection `{text}` matched nothing", help=hint or "`sqb ls` lists all nodes"
    )


def _union(nodes: Mapping[str, Selectable], graph: Graph, expressions: Iterable[str]) -> set[str]:
    out: set[str] = set()
    for expression in expressions:
        for term in expression.split():
            parts = [_term(nodes, graph, part) for part in term.split(",") if part]
            if not parts:
                raise SqbError("S002", f"the selector `{term}` can't be understood")
            out |= set.intersection(*parts)
    return out


def _term(nodes: Mapping[str, Selectable], graph: Graph, term: str) -> set[str]:
    if "~" in term:
        first, _, last = term.partition("~")
        if not first or not last or "~" in last:
            raise SqbError("S002", f"`{term}`: write `a~b`, all paths between a and b")
        starts, ends = _term(nodes, graph, first), _term(nodes, graph, last)
        return graph.descendants(starts) & graph.ancestors(ends)
    match = _TERM.match(term)
    if match is None:
        raise SqbError(
            "S002",
            f"the selector `{term}` can't be understood",
            help="examples: orders, stg_*, +orders, orders+, 2+orders, tag:daily, path:marts, a~b",
        )
    matched = _method(nodes, match["core"])
    if not matched:
        return set()
    out = set(matched)
    if match["up"]:
        out |= graph.ancestors(matched, _depth(match["up"]))
    if match["down"]:
        out |= graph.descendants(matched, _depth(match["down"]))
    return out


def _depth(operator: str) -> int | None:
    digits = operator.strip("+")
    return int(digits) if digits else None


def _method(nodes: Mapping[str, Selectable], core: str) -> set[str]:
    method, colon, value = core.partition(":")
    if not colon:
        if core in nodes:
            return {core}
        return {n for n in nodes if fnmatchcase(n, core)}
    if method not in _METHODS or not value:
        raise SqbError(
            "S002",
            f"`{core}`: there is no selector method `{method}`",
            help=did_you_mean(method, _METHODS) or f"methods are {', '.join(_METHODS)}",
        )
    if method == "tag":
        return {n.name for n in nodes.values() if value in n.tags}
    if method == "path":
        return {n.name for n in nodes.values() if _below(n.path, value)}
    return {n.name for n in nodes.values() if n.type == method and fnmatchcase(n.name, value)}


def _below(path: str, wanted: str) -> bool:
    """Is ``path`` the wanted file or folder, seen from the project or from ``models/``?"""
    wanted = wanted.strip("/")
    for candidate in (path, path.partition("/")[2]):
        if candidate == wanted or candidate.startswith(wanted + "/"):
            return True
        if fnmatchcase(candidate, wanted):
            return True
    return False
