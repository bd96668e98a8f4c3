"""A directed acyclic graph of names, and the walks that planning and running need."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from heapq import heapify, heappop, heappush


class CycleError(Exception):
    """The graph is not acyclic; ``path`` is a circle in which each name reads the next."""

    def __init__(self, path: list[str]) -> None:
        super().__init__(" -> ".join(path))
        self.path = path


class Graph:
    """Names with their parents. Parents that are not nodes themselves are refused."""

    def __init__(self, parents: Mapping[str, Sequence[str]]) -> None:
        self.parents = parents

    @cached_property
    def children(self) -> dict[str, list[str]]:
        """For each name, those that read it, in the order of the nodes."""
        out: dict[str, list[str]] = {name: [] for name in self.parents}
        for name, parents in self.parents.items():
            for parent in parents:
                out[parent].append(name)
        return out

    @cached_property
    def order(self) -> list[str]:
        """All names, parents first, alphabetical where the edges leave a choice.

        >>> Graph({"c": ["a"], "b": ["a"], "a": []}).order
        ['a', 'b', 'c']
        """
        missing = {name: len(parents) for name, parents in self.parents.items()}
        ready = [name for name, count in missing.items() if count == 0]
        heapify(ready)
        out: list[str] = []
        while ready:
            name = heappop(ready)
            out.append(name)
            for child in self.children[name]:
                missing[child] -= 1
                if missing[child] == 0:
                    heappush(ready, child)
        if len(out) < len(self.parents):
            raise CycleError(self._cycle({n for n, count in missing.items() if count > 0}))
        return out

    def ancestors(self, names: Iterable[str], depth: int | None = None) -> set[str]:
        """``names`` and everything above them, at most ``depth`` edges away."""
        return _reach(names, self.parents, depth)

    def descendants(self, names: Iterable[str], depth: int | None = None) -> set[str]:
        """``names`` and everything below them, at most ``depth`` edges away."""
        return _reach(names, self.children, depth)

    def _cycle(self, among: set[str]) -> list[str]:
        """One circle in the part of the graph that has no order; always starts at the same node."""
        name = min(among)
        path = [name]
        seen = {name: 0}
        while True:
            name = min(p for p in self.parents[name] if p in among)
            if name in seen:
                return [*path[seen[name] :], name]
            seen[name] = len(path)
            path.append(name)


def _reach(names: Iterable[str], edges: Mapping[str, Sequence[str]], depth: int | None) -> set[str]:
    distance = dict.fromkeys(names, 0)
    queue = deque(distance)
    while queue:
        name = queue.popleft()
        if depth is not None and distance[name] >= depth:
            continue
        for neighbour in edges[name]:
            if neighbour not in distance:
                distance[neighbour] = distance[name] + 1
                queue.append(neighbour)
    return set(distance)
